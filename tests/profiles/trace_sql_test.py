"""Traces in SQLite against the event model."""

import json
import sqlite3
import unittest

from sample_traces import TRACES, Traces


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
