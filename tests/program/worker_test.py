"""Another process as an arm: this very program as a worker, and workers that misbehave."""

import json
import os
import subprocess
import unittest

from program import PROGRAM, ProgramTest

FAKE = os.path.abspath(os.path.join(os.path.dirname(__file__), "../data/fake_worker.py"))
CELL = ["-m", "synthetic:tiny", "--phase", "decode", "--batch", "2", "--length", "8", "--threads", "1"]


class Worker(ProgramTest):
    def sweep(self, *arguments, launches=1, **keywords):
        rows = self.run_json("sweep", "--store", self.store, *CELL, "--launches", launches, "--blocks", "1", *arguments, **keywords)["rows"]
        return {row["arm"]: row for row in rows}

    def test_a_worker_is_measured_beside_our_own_arms_and_chooses_the_same_tokens(self):
        rows = self.sweep("--arm", "causal", "--arm", "bigcode", "--worker", f"other='{PROGRAM}' worker --arm bigcode", launches=2)
        self.assertEqual([row["status"] for row in rows.values()], ["ok"] * 3, rows)
        self.assertEqual(rows["other"]["counters"]["op.aten::linear"], rows["bigcode"]["counters"]["op.aten::linear"])
        self.assertTrue(rows["other"]["engaged"])
        self.assertGreater(rows["other"]["time_ratio"], 0)

    def test_each_misbehaviour_is_a_row_with_a_reason_and_never_a_hang(self):
        fakes = {
            "dies-in-hello": ("failed", "the fake ran out of patience"),
            "hangs-in-load": ("timeout", "no reply within 8 s"),
            "rubbish-in-outputs": ("failed", "Loading model"),
            "speaks-another-version": ("failed", "speaks version 3"),
            "oom-in-prepare": ("oom", "no room for this"),
            "shows-no-logits": ("incorrect", "the arm chose id 3"),
        }
        workers = [word for how in fakes for word in ("--worker", f"{how}=python3 '{FAKE}' {how}")]
        # 5: one of them is incorrect.
        rows = self.sweep("--arm", "causal", *workers, "--worker-timeout", "8", expect=5)
        self.assertEqual(rows["causal"]["status"], "ok")
        for how, (status, reason) in fakes.items():
            self.assertEqual(rows[how]["status"], status, rows[how])
            self.assertIn(reason, rows[how]["reason"])
        left = subprocess.run(["pgrep", "-f", FAKE], capture_output=True, text=True)
        self.assertEqual(left.stdout, "", "no worker outlives its sweep")

    def test_a_worker_started_by_hand_says_what_it_is_for(self):
        self.assert_one_sentence(self.run_program("worker", expect=2), "descriptor 3")

    def test_bad_workers_are_refused_before_anything_is_created(self):
        for text, words in [("nothing", "expected NAME=CMD"), ("a b=true", "expected NAME=CMD"), ("bigcode=true", "is a preset of our own"), ("x=", "expected NAME=CMD")]:
            result = self.run_program("sweep", "--store", self.store, *CELL, "--arm", "causal", "--worker", text, expect=2)
            self.assert_one_sentence(result, words)
            self.assertFalse(os.path.exists(self.store))

    def test_rooflines_are_arms_that_give_each_row_its_share_of_the_bound(self):
        rows = self.sweep("--arm", "causal", "--roofline", launches=2)
        self.assertEqual(set(rows), {"causal", "roofline-read", "roofline-gemm"})
        self.assertGreater(rows["causal"]["bound_share"], 0)
        self.assertIsNone(rows["roofline-read"]["time_ratio"])

    def test_a_known_slow_down_is_seen_at_its_size(self):
        rows = self.sweep("--arm", "causal", "--arm", "slow-20000000:causal", launches=2)
        slow = rows["slow-20000000:causal"]
        self.assertGreater(slow["min_ns"], 20000000)
        self.assertGreater(slow["time_ratio"], 1.5)


if __name__ == "__main__":
    unittest.main()
