"""Traces of every preset in Perfetto's own engine: no error, and every slice and counter of the SQLite file is there."""

import os
import re
import sqlite3
import sys
import unittest

from program import ProgramTest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../profiles"))
from perfetto_engine import ERRORS, ask, need_perfetto

STEPS = 3
SLICES = "select name, count(*) n, sum(dur) ns from slice where category in ('operator', 'step_span', 'layer_span', 'stage_span') group by name"
COUNTERS = "select t.name, count(*) n, sum(c.value) total from counter c join counter_track t on t.id = c.track_id group by t.name"
MODEL_SLICES = "select coalesce(text, value) name, count(*), sum(end - start) from NVTX_EVENTS left join StringIds on textId = id group by 1"
MODEL_COUNTERS = "select StringIds.value, count(*), sum(COUNTER.value) from COUNTER join StringIds on seriesId = id group by 1"


class PresetsInPerfetto(ProgramTest):
    def presets(self):
        listed = self.run_program("list", "presets").stdout
        names = re.findall(r"^  (\w+) +\S", listed, re.MULTILINE)
        self.assertGreaterEqual(set(names), {"causal", "vector", "flash", "bigcode", "bigcode2", "bigcode3", "native"})
        return [name for name in names if name != "speculate"]  # native with guesses, which steps of these phases have none of

    def test_engine_holds_what_sqlite_holds(self):
        engine = need_perfetto()
        for phase in ("prefill", "decode"):
            for preset in self.presets():
                with self.subTest(preset=preset, phase=phase):
                    trace, database = self.path("t.pftrace"), self.path("t.sqlite")
                    self.run_program("trace", "-m", "synthetic:tiny", "--phase", phase, "--batch", "2", "--length", "16", "--threads", "1",
                                     "--steps", STEPS, "--pairs", "0", "--arm", preset, "--out", trace, "--out", database)
                    self.compare(ask(engine, trace, ERRORS, SLICES, COUNTERS), database)

    def compare(self, answers, path):
        errors, slices, counters = answers
        self.assertEqual(errors, [])
        with sqlite3.connect(path) as database:
            expected = {name: (count, ns) for name, count, ns in database.execute(MODEL_SLICES)}
            self.assertEqual({row["name"]: (row["n"], row["ns"]) for row in slices}, expected)
            self.assertEqual(expected["step"][0], STEPS)
            self.assertGreater(len(expected), 10, "a preset runs more than ten kinds of operators and stages")
            expected = {name: (count, total) for name, count, total in database.execute(MODEL_COUNTERS)}
            self.assertEqual({row["name"]: (row["n"], row["total"]) for row in counters}, expected)


if __name__ == "__main__":
    unittest.main()
