"""Traces in Perfetto's own engine: counts, sums, flows, counters and tracks are those of the event model."""

import unittest
from collections import defaultdict

from perfetto_engine import ask, need_perfetto
from sample_traces import TRACES, Traces

# What the viewer draws beside the rows of the model.
DERIVED = ("range", "quality")


class PerfettoEngine(Traces):
    def ask(self, name, *queries):
        return ask(self.engine, self.path(name, ".pftrace"), *queries)

    @classmethod
    def setUpClass(cls):
        cls.engine = need_perfetto()
        super().setUpClass()

    def test_its_error_statistics_are_zero(self):
        for name in TRACES:
            (errors,) = self.ask(name, "select name, value from stats where value > 0 and severity in ('error', 'data_loss')")
            self.assertEqual(errors, [], name)

    def test_counts_and_sums_of_slices_are_those_of_the_model(self):
        for name in TRACES:
            (rows,) = self.ask(name, f"select name, count(*) n, sum(dur) ns from slice where category not in {DERIVED} group by name")
            self.assertEqual({row["name"]: [row["n"], row["ns"]] for row in rows}, self.expected(name)["slices"], name)

    def test_flows_and_counters_are_those_of_the_model(self):
        for name in TRACES:
            flows, counters = self.ask(name, "select count(*) n from flow",
                                       "select t.name, c.value from counter c join counter_track t on t.id = c.track_id order by c.ts")
            expected = self.expected(name)
            self.assertEqual(flows[0]["n"], expected["flows"], name)
            values = defaultdict(list)
            for row in counters:
                values[row["name"]].append(row["value"])
            self.assertEqual(values, expected["counters"], name)

    def test_flows_lead_from_the_call_to_what_it_launched(self):
        (rows,) = self.ask("graph", "select o.name out, i.category cat, extract_arg(o.arg_set_id, 'debug.correlation') a, "
                           "extract_arg(i.arg_set_id, 'debug.correlation') b from flow f join slice o on o.id = f.slice_out "
                           "join slice i on i.id = f.slice_in")
        self.assertGreater(len(rows), 0)
        for row in rows:
            self.assertEqual(row["a"], row["b"])
            self.assertIn(row["cat"], ("kernel", "memcpy", "memset"))
        self.assertIn("cudaGraphLaunch", {row["out"] for row in rows})

    def test_tracks_have_their_names_below_their_parents(self):
        processes, tracks = self.ask(
            "sample", "select p.pid, t.tid, t.name from thread t join process p using (upid) where t.name is not null order by 1, 2",
            "select p.name parent, t.name from track t join track p on t.parent_id = p.id order by p.name, t.name")
        self.assertIn({"pid": 4242, "tid": 4243, "name": "main"}, processes)
        self.assertIn({"pid": 5151, "tid": 5152, "name": "thread 5152"}, processes)
        below = [(row["parent"], row["name"]) for row in tracks]
        self.assertEqual(below, [("GPU 0", "ranges (layer/stage)"), ("GPU 0", "stream 7"), ("GPU 0", "stream 7 lane 2"),
                                 ("GPU 0", "stream 8"), ("GPU 1", "ranges (layer/stage)"), ("GPU 1", "stream 7")])

    def test_the_verdict_stands_at_the_start(self):
        (rows,) = self.ask("sample", "select s.name, s.ts, (select min(ts) from slice) first, "
                           "extract_arg(s.arg_set_id, 'debug.verdict') verdict from slice s where category = 'quality'")
        expected = self.expected("sample")["verdict"]
        self.assertEqual([(row["name"], row["verdict"], row["ts"]) for row in rows], [(f"quality: {expected}", expected, rows[0]["first"])])

    def test_details_have_stable_keys(self):
        (rows,) = self.ask("sample", "select extract_arg(arg_set_id, 'debug.correlation') correlation, "
                           "extract_arg(arg_set_id, 'debug.grid') grid, extract_arg(arg_set_id, 'debug.block') block, "
                           "extract_arg(arg_set_id, 'debug.regs') regs, extract_arg(arg_set_id, 'debug.step') step, "
                           "extract_arg(arg_set_id, 'debug.layer') layer, extract_arg(arg_set_id, 'debug.stage') stage "
                           "from slice where category = 'kernel' and name like 'void gemm%'")
        self.assertEqual(rows, [{"correlation": 1, "grid": "132x2x1", "block": "128x1x1", "regs": 255, "step": 3, "layer": 1,
                                 "stage": "attention"}])

    def test_each_of_the_five_traps_is_measured_right(self):
        (rows,) = self.ask("traps", f"select name, ts, dur, depth, track_id from slice where category not in {DERIVED}")
        found = {row["name"]: row for row in rows}
        self.assertEqual({name: (row["ts"], row["dur"]) for name, row in found.items()}, {
            "overlaps next": (1000, 10), "overlaps last": (1005, 5), "long": (1100, 100), "one ns into long": (1199, 101),
            "ends at 1500": (1400, 100), "no length": (1500, 0), "begins at 1500": (1500, 100),
            "operator": (2000, 100), "launch before its operator": (1999, 51),
            "around": (3000, 900), "never closed": (3100, 6900), "ends before it begins": (3500, 0)})
        self.assertNotEqual(found["overlaps next"]["track_id"], found["overlaps last"]["track_id"])
        self.assertNotEqual(found["launch before its operator"]["track_id"], found["operator"]["track_id"])


if __name__ == "__main__":
    unittest.main()
