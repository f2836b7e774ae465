"""store merge, export and gc, and shards of a sweep, from outside."""

import csv
import io
import json
import os
import sqlite3
import unittest

from program import ProgramTest

SMALL = ["-m", "synthetic:tiny", "--arm", "causal", "--arm", "bigcode", "--phase", "decode", "--batch", "1,2", "--length", "16", "--launches", "2", "--blocks", "1",
         "--threads", "1"]


class AStore(ProgramTest):
    def sweep(self, store, *arguments):
        return self.run_json("sweep", "--store", store, *SMALL, *arguments)

    def export(self, run, form, *arguments, **keywords):
        return self.run_program("store", "export", run, "--store", self.store, "-o", form, *arguments, **keywords).stdout

    def visits(self, store):
        with sqlite3.connect(store) as connection:
            return connection.execute("SELECT launch, block, batch, position, label, hex(samples_ns) FROM visits JOIN blocks ON blocks.id = block_id "
                                      "JOIN cells ON cells.id = cell_id JOIN arms ON arms.id = arm_id ORDER BY 1, 2, 3, 4").fetchall()

    def test_shards_become_the_run_that_a_whole_sweep_is(self):
        whole = self.sweep(self.store)["rows"]
        shards = [self.path(f"{index}.sqlite") for index in (1, 2)]
        for index, store in enumerate(shards, 1):
            rows = self.sweep(store, "--shard", f"{index}/2")["rows"]
            self.assertEqual([(row["batch"], row["status"], row["blocks"]) for row in rows],
                             [(batch, "ok", 2) if batch == index else (batch, "planned", 0) for batch in (1, 1, 2, 2)])
            self.assertEqual({row["verdict"] for row in rows}, {None})
        merged = self.path("merged.sqlite")
        half = self.run_program("store", "merge", merged, shards[0])
        self.assertIn("not whole: it has shard 1/2", half.stderr)
        self.assertIn("1 runs added", half.stdout)
        self.assertEqual(self.run_program("store", "merge", merged, shards[1]).stderr, "")
        rows = [json.loads(line) for line in self.run_program("store", "export", "latest", "--store", merged, "-o", "jsonl").stdout.splitlines()]
        for key in ("arm", "batch", "status", "blocks", "launches", "counters", "engaged", "peak_bytes"):
            self.assertEqual([row[key] for row in rows], [row[key] for row in whole], key)
        # The same arms in the same order in every block, and the very samples of the shards.
        self.assertEqual([visit[:5] for visit in self.visits(merged)], [visit[:5] for visit in self.visits(self.store)])
        self.assertEqual(sorted(self.visits(merged)), sorted(self.visits(shards[0]) + self.visits(shards[1])))

        self.assertIn("0 runs added, 0 completed, 2 unchanged, 0 blocks", self.run_program("store", "merge", merged, *shards).stdout)
        with open(merged, "rb") as file:
            before = file.read()
        again = self.path("again.sqlite")
        self.sweep(again, "--shard", "2/2")
        self.assert_one_sentence(self.run_program("store", "merge", merged, again, expect=2), "decode batch 2 length 16", "again.sqlite", "nothing was changed")
        with open(merged, "rb") as file:
            self.assertEqual(file.read(), before)
        self.run_program("report", "latest", "--store", shards[0], "--out", self.path("report"))

    def test_a_wrong_shard_is_refused_before_anything_is_made(self):
        for shard, words in {"0/2": ["i/n"], "three": ["i/n"], "3/3": ["2 cells"]}.items():
            self.assert_one_sentence(self.run_program("sweep", "--store", self.store, *SMALL, "--shard", shard, expect=2), "--shard", *words)
        self.assert_one_sentence(self.run_program("sweep", "--store", self.store, "--resume", "latest", "--shard", "1/2", expect=2), "--shard")
        self.assertFalse(os.path.exists(self.store))
        planned = self.run_program("sweep", "--store", self.store, *SMALL, "--shard", "2/2", "--dry-run").stdout
        self.assertIn("b2 tg @ d16", planned)
        self.assertNotIn("b1 tg @ d16", planned)

    def test_exports_what_other_tools_read_and_removes_runs(self):
        for name in ("first", "second"):
            rows = self.sweep(self.store, "--name", name)["rows"]
        self.assertEqual([int(row["median_ns"]) for row in csv.DictReader(io.StringIO(self.export("second", "csv")))], [row["median_ns"] for row in rows])
        both = self.run_program("store", "export", "first", "second", "--store", self.store, "--format", "csv").stdout
        self.assertEqual(len(both.splitlines()), 1 + 2 * len(rows))

        self.check_google_benchmark()

        out = self.path("rows.csv")
        self.assertEqual(self.export("second", "csv", "--out", out), "")
        with open(out, encoding="utf-8") as file:
            self.assertEqual(file.read(), self.export("second", "csv"))
        self.assert_one_sentence(self.run_program("store", "export", "first", "--store", self.store, "-o", "xml", expect=2), "xml", "google-benchmark")
        self.assert_one_sentence(self.run_program("store", "export", "first:flash", "--store", self.store, expect=2), "flash")
        self.assert_one_sentence(self.run_program("store", "export", "first", "--store", self.store, "--out", self.path("no", "x"), expect=2), "--out")
        self.check_gc()

    def check_google_benchmark(self):
        """What compare.py of google-benchmark does with two files: it groups by name and unit, and pairs the repetitions."""
        files = [json.loads(self.export(f"second:{arm}", "google-benchmark")) for arm in ("causal", "bigcode")]
        for file in files:
            self.assertEqual(file["context"]["json_schema_version"], 1)
            for entry in file["benchmarks"]:
                self.assertIn(entry["run_type"], ("iteration", "aggregate"))
                self.assertIn(entry["time_unit"], ("s", "ms", "us", "ns"))
                for key in ("real_time", "cpu_time"):
                    self.assertGreater(entry[key], 0)
        names = [{entry["name"] for entry in file["benchmarks"] if entry["run_type"] == "iteration"} for file in files]
        self.assertEqual(names[0], {"decode/batch:1/length:16", "decode/batch:2/length:16"})
        self.assertEqual(*names)
        for file in files:
            for name in names[0]:
                group = [entry for entry in file["benchmarks"] if entry["name"] == name]
                self.assertEqual([entry["repetition_index"] for entry in group], list(range(4)))
                self.assertEqual({entry["repetitions"] for entry in group}, {4})
        result = self.run_program("store", "export", "first", "second", "--store", self.store, "-o", "google-benchmark", expect=2)
        self.assert_one_sentence(result, "takes one RUN")

    def check_gc(self):
        kept = self.export("second", "jsonl")
        self.assert_one_sentence(self.run_program("store", "gc", "--store", self.store, expect=2), "--keep", "--run")
        self.assertIn("would remove run 1 first", self.run_program("store", "gc", "--store", self.store, "--keep", 1, "--dry-run").stdout)
        self.assertNotEqual(self.export("first", "jsonl"), "")
        printed = self.run_program("store", "gc", "--store", self.store, "--keep", 1).stdout
        self.assertIn("removed run 1 first", printed)
        self.assertIn("removed 1 runs, kept 1", printed)
        self.assertEqual(self.export("second", "jsonl"), kept)
        self.assert_one_sentence(self.run_program("store", "export", "first", "--store", self.store, expect=2), "first", "second")


if __name__ == "__main__":
    unittest.main()
