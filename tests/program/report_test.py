"""report, compare --out and history, from outside: what they write, and what they refuse in one sentence."""

import csv
import io
import json
import os
import sqlite3
import unittest

from program import ProgramTest

SMALL = ["-m", "synthetic:tiny", "--arm", "causal", "--arm", "bigcode", "--batch", "1", "--launches", "2", "--blocks", "1", "--threads", "1"]


class Reports(ProgramTest):
    def sweep(self, *arguments, lengths="8,16"):
        return self.run_json("sweep", "--store", self.store, *SMALL, "--length", lengths, *arguments)

    def names(self, *parts):
        return sorted(os.listdir(self.path(*parts)))

    def text(self, *parts):
        with open(self.path(*parts), encoding="utf-8") as file:
            return file.read()

    def add_traces(self):
        """An account for each arm in the first cell; the second arm's attention takes half as long."""
        with sqlite3.connect(self.store) as database:
            [cell] = database.execute("SELECT min(id) FROM cells").fetchone()
            for arm, attention in zip([row[0] for row in database.execute("SELECT id FROM arms ORDER BY id LIMIT 2")], (8000, 4000), strict=True):
                database.execute("INSERT INTO traces VALUES (?, ?, 'a.pftrace', 'decodelab trace', 'ok', '', 1, 4, ?, 100, 0, 0, 0)", (cell, arm, attention + 2100))
                for place, (name, ns) in enumerate({"attention": attention, "mlp": 2000}.items()):
                    database.execute("INSERT INTO trace_shares VALUES (?, ?, ?, 'stage', ?, ?, 0, 1, 0, 0, 0)", (cell, arm, place, name, ns))

    def test_are_written_in_the_formats_and_against_the_baseline_that_are_asked_for(self):
        rows = self.sweep("--phase", "decode", "--name", "first")["rows"]
        self.add_traces()
        report = ["report", "first", "--store", self.store]
        self.run_program(*report, "--out", self.path("all"))
        self.assertEqual(self.names("all"), ["blocks.csv", "cells.csv", "figures", "report.html", "report.json", "report.md", "traces.csv"])
        self.run_program(*report, "--out", self.path("some"), "--format", "md,json", "--baseline", "bigcode")
        self.assertEqual(self.names("some"), ["report.json", "report.md"])
        against = json.loads(self.text("some", "report.json"))["rows"]
        self.assertAlmostEqual(against[0]["time_ratio"], 1 / rows[1]["time_ratio"], places=9)
        self.assertEqual(against[1]["time_ratio"], 1)
        self.assert_one_sentence(self.run_program(*report, "--out", self.path("x"), "--baseline", "flush", expect=2), "flush", "causal, bigcode")
        self.assert_one_sentence(self.run_program(*report, "--out", self.path("x"), "--format", "html,pdf", expect=2), "pdf", "html,md,json,csv,svg,png")
        self.assert_one_sentence(self.run_program(*report, expect=2), "--out", "--table")
        self.assertFalse(os.path.exists(self.path("x")))

        printed = self.run_program(*report, "--table", "tgi", "-o", "md").stdout
        for column in ("Step", "Batch Size", "Average", "p99"):
            self.assertRegex(printed, rf"\| +{column} +\|", "how wide a column is depends on the times")
        for words in ("| Decode (token) |", "tokens/secs"):
            self.assertIn(words, printed)
        self.assert_one_sentence(self.run_program(*report, "--table", "vllm", expect=2), "vllm", "tgi")

        exported = self.run_program("store", "export", "first", "--store", self.store, "-o", "traces-csv").stdout
        shares = list(csv.DictReader(io.StringIO(exported)))
        self.assertEqual([(row["arm"], row["name"], row["host_ns"]) for row in shares[:2]], [("causal", "attention", "8000"), ("causal", "mlp", "2000")])
        self.assertEqual(sum(int(row["host_ns"]) for row in shares if row["arm"] == "causal"), 10_100)
        lines = self.run_program("store", "export", "first:bigcode", "--store", self.store, "-o", "traces-jsonl").stdout.splitlines()
        self.assertEqual([json.loads(line)["steps_ns"] for line in lines], [6100])

    def test_of_two_sides_say_what_moved(self):
        for name in ("before", "after"):
            self.sweep("--phase", "decode", "--name", name)
        self.add_traces()
        compare = ["compare", "--store", self.store]
        text = self.run_program(*compare, "before:causal", "before:bigcode").stdout
        self.assertRegex(text, r"attention +2\.000 +1\.000 +-1\.000 +100 %")
        self.assertRegex(text, r"the whole step +2\.525 +1\.525 +-1\.000 +100 %")
        result = self.run_program(*compare, "before", "after", "--out", self.path("page"))
        self.assertTrue(result.stdout.strip().endswith("compare.html"))
        self.assertEqual(self.names("page"), ["compare.html", "compare.json", "compare.md", "figures"])
        self.assertIn("hints, no verdicts", self.text("page", "compare.html"))
        self.run_program(*compare, "before:causal", "before:bigcode", "after:causal", "--out", self.path("three"))
        self.assertEqual(len(json.loads(self.text("three", "compare.json"))["comparisons"]), 2)

    def test_follow_a_metric_over_runs(self):
        for name in ("one", "two", "three"):
            self.sweep("--phase", "decode", "--name", name, lengths="16")
        history = ["history", "--store", self.store]
        points = self.run_json(*history, "counters.operators", "--arm", "bigcode")["points"]
        self.assertEqual([(point["run_name"], point["step"]) for point in points], [("one", False), ("two", False), ("three", False)])
        self.assertEqual(len({point["value"] for point in points}), 1, "one build does the same each time")
        text = self.run_program(*history, "mean_ns", "--cell", "b1 tg @ d16").stdout
        self.assertIn("three", text)
        self.run_program(*history, "time_ratio", "--out", self.path("history"))
        self.assertEqual(self.names("history"), ["figures", "history.csv", "history.html", "history.json", "history.md"])
        self.assert_one_sentence(self.run_program(*history, "speed", expect=2), "speed", "mean_ns")
        self.assert_one_sentence(self.run_program(*history, "mean_ns", "--arm", "flush", expect=2), "flush", "causal")

    def test_every_command_about_reports_has_help_with_an_example(self):
        for command in ("report", "compare", "history"):
            printed = self.run_program(command, "--help").stdout
            self.assertIn("Example:", printed)
            self.assertIn(f"decodelab {command}", printed)


if __name__ == "__main__":
    unittest.main()
