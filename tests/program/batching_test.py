"""Sweeps of phase batching and of samples, from outside."""

import os
import unittest

from program import ProgramTest

CELL = ["-m", "synthetic:tiny", "--batch", 2, "--length", 6, "--max-tokens", 3, "--blocks", 1]
SAMPLES = {"served", "first-token", "between-tokens"}


class ABatch(ProgramTest):
    def sweep(self, *arguments, launches=1):
        return self.run_json("sweep", "--store", self.store, *CELL, "--launches", launches, *arguments)["rows"]

    def test_is_served_under_every_rule_with_the_same_tokens(self):
        arms = ["causal", "causal,+concatenate-filter:steps=2", "causal,+padded-batch", "causal,+slot-batch", "native"]
        rows = self.sweep("--phase", "batching", *[word for arm in arms for word in ("--arm", arm)], launches=2)
        self.assertEqual({row["scope"] for row in rows}, SAMPLES)
        self.assertEqual(len(rows), 3 * len(arms))
        for row in rows:
            self.assertEqual(row["status"], "ok", row["reason"])
            self.assertEqual(row["engaged"], None if row["arm"] == "causal" else True, row)
            self.assertGreater(row["counters"]["new_tokens"], 8, "four requests a row, of two tokens or more")
            self.assertGreater(row["mean_ns"], 0)
        counters = {row["arm"]: row["counters"] for row in rows if row["scope"] == "served"}
        self.assertEqual(counters["causal,+slot-batch"]["placed_rows"], 6)
        self.assertNotIn("joined_rows", counters["causal"])
        self.assertGreater(counters["causal"].get("idle_rows", 0), 0)
        self.assertGreater(counters["causal,+concatenate-filter:steps=2"]["copied_cache_bytes"], 0)
        report = self.path("report")
        self.run_program("report", "latest", "--store", self.store, "--out", report, "--format", "md,json")
        with open(os.path.join(report, "report.md")) as file:
            self.assertIn("Batches that serve requests", file.read())

    def test_is_served_at_a_rate_that_its_cells_name(self):
        rows = self.sweep("--phase", "batching", "--arm", "native", "--request-rate", "inf,300")
        self.assertEqual({row["scope"] for row in rows}, SAMPLES | {sample + "-at-300" for sample in SAMPLES})
        self.assertTrue(all(row["status"] == "ok" for row in rows), rows)

    def test_says_how_many_requests_a_second_are_answered_within_limits(self):
        rows = self.sweep("--phase", "batching", "--arm", "native", "--goodput", "ttft=10000,tpot=1000")
        served, good = (next(row for row in rows if row["scope"] == scope) for scope in ("served", "good-ttft10000-tpot1000"))
        self.assertEqual(good["status"], "ok", good["reason"])
        self.assertLess(good["mean_ns"], served["mean_ns"], "all of them are, and share the time")
        report = self.path("report")
        self.run_program("report", "latest", "--store", self.store, "--out", report, "--format", "md")
        with open(os.path.join(report, "report.md")) as file:
            self.assertIn("Good requests/s", file.read())
        rows = self.sweep("--phase", "batching", "--arm", "native", "--goodput", "ttft=0.000001")
        none = next(row for row in rows if row["scope"].startswith("good"))
        self.assertEqual(none["status"], "failed")
        self.assertIn("no request was answered within TTFT 1e-06 ms", none["reason"])

    def test_in_a_16_bit_type_says_what_was_compared(self):
        rows = self.sweep("--phase", "batching", "--arm", "native", "--dtype", "bf16")
        for row in rows:
            self.assertEqual((row["status"], "steps-compared" in row["flags"]), ("ok", True), row)

    def test_that_no_row_can_stand_for_is_refused_in_a_sentence(self):
        for words, named in ((["--request-rate", "0"], "inf"), (["--request-rate", "fast"], "fast"), (["--samples", "2"], "--samples"), (["--goodput", "200"], "ttft=200,tpot=50")):
            arguments = ["sweep", "--store", self.store, *CELL, "--arm", "causal", "--phase", "decode,batching", *words]
            self.assert_one_sentence(self.run_program(*arguments, expect=2), named)
        trace = ["trace", "-m", "synthetic:tiny", "--arm", "causal", "--phase", "batching", "--out", self.path("t.sqlite")]
        self.assert_one_sentence(self.run_program(*trace, expect=2), "batching")


class SamplesOfAPrompt(ProgramTest):
    def test_are_rows_that_a_fork_spares_their_prefill(self):
        rows = self.run_json("sweep", "--store", self.store, *CELL, "--phase", "prefill,generate", "--samples", 3, "--arm", "causal", "--arm", "causal,+copied-fork", "--arm",
                             "causal,+no-cache", "--launches", 1)["rows"]
        self.assertEqual({row["scope"] for row in rows}, {"step-samples-3", "generate-samples-3"})
        for row in rows:
            self.assertEqual(row["status"], "ok", row["reason"])
        prefills = {row["arm"]: row["counters"] for row in rows if row["phase"] == "prefill"}
        self.assertEqual(prefills["causal,+copied-fork"]["forked_rows"], 2 * 3)
        self.assertLess(prefills["causal,+copied-fork"]["lm_head_rows"], prefills["causal"]["lm_head_rows"])


class WhatAnArmAsks(ProgramTest):
    def test_is_compared_with_the_reference_under_the_same_settings(self):
        arms = ["causal", "causal@samples=3", "causal,+copied-fork@samples=3", "causal,+copied-prefix@prefix=0.5", "causal,+copied-prefix@prefix=0", "causal,+forced-miss@prefix=0.5"]
        rows = self.run_json("sweep", "--store", self.store, *CELL, "--launches", 1, "--phase", "prefill", *[word for arm in arms for word in ("--arm", arm)])["rows"]
        by_arm = {row["arm"]: row for row in rows}
        self.assertEqual(set(by_arm), set(arms))
        for arm, row in by_arm.items():
            self.assertEqual((row["status"], row["engaged"]), ("ok", None if arm.split("@")[0] == "causal" else True), row)
        self.assertEqual(by_arm["causal,+copied-prefix@prefix=0.5"]["counters"]["prefix_tokens"], 2 * 3)
        report = self.path("report")
        self.run_program("report", "latest", "--store", self.store, "--out", report, "--format", "md,svg")
        self.assertTrue(any("prefix" in name for _, _, files in os.walk(report) for name in files), os.listdir(report))

    def test_that_a_cell_has_no_use_for_is_a_row_that_says_so(self):
        rows = self.run_json("sweep", "--store", self.store, *CELL, "--launches", 1, "--phase", "decode", "--arm", "causal", "--arm", "causal@samples=3", "--arm", "causal@regex=[a-z]*")["rows"]
        reasons = {row["arm"]: (row["status"], row["reason"]) for row in rows}
        self.assertEqual(reasons["causal"], ("ok", None))
        self.assertEqual(reasons["causal@samples=3"][0], "unsupported")
        self.assertIn("@samples", reasons["causal@samples=3"][1])
        self.assertEqual(reasons["causal@regex=[a-z]*"][0], "unsupported")
        self.assertIn("no tokenizer", reasons["causal@regex=[a-z]*"][1])

    def test_is_refused_in_a_sentence_where_it_cannot_be_read(self):
        for arm, named in (("causal@samples=0", "@samples=0"), ("causal@colour=red", "@colour=red"), ("causal@regex=(", "(")):
            self.assert_one_sentence(self.run_program("sweep", "--store", self.store, *CELL, "--arm", arm, expect=2), named)
        self.assert_one_sentence(self.run_program("sweep", "--store", self.store, *CELL, "--arm", "causal@samples=2", "--apart", expect=2), "--apart")
        self.assert_one_sentence(self.run_program("generate", "-m", "synthetic:tiny", "--prompt-ids", "1,2", "--arm", "causal@samples=2", expect=2), "--samples")


if __name__ == "__main__":
    unittest.main()
