"""gate: counters first, then outputs, then time, and an exit code that a CI can stand on. No test here depends on how fast anything was."""

import json
import os
import re
import sys
import unittest
import xml.etree.ElementTree

from program import PROGRAM, ProgramTest

FAKE = f"{sys.executable} '{os.path.abspath(os.path.join(os.path.dirname(__file__), '../data/fake_worker.py'))}'"
# Tests share the machine with whatever else runs there.
CELL = ["-m", "synthetic:tiny", "--batch", "1", "--length", "16", "--threads", "1", "--no-preflight"]


class Gate(ProgramTest):
    def gate(self, *arguments, **keywords):
        return self.run_program("gate", "--store", self.store, *CELL, *arguments, **keywords)

    def test_a_counter_that_rose_is_a_regression_with_its_name_whatever_the_times_say(self):
        junit, markdown = self.path("gate.xml"), self.path("gate.md")
        result = self.gate("--baseline-arm", "bigcode", "--candidate-arm", "causal", "--junit", junit, "--markdown", markdown, "--annotations", expect=1)
        self.assertIn("FAIL", result.stdout)
        self.assertIn("copied_cache_bytes", result.stdout)
        self.assertIn("::error", result.stdout)
        suites = xml.etree.ElementTree.parse(junit).getroot()
        self.assertTrue(suites.findall(".//failure"))
        with open(markdown) as file:
            self.assertIn("FAIL", file.read())

        # The store alone is enough to decide again, to the same end.
        again = self.run_program("gate", "--store", self.store, "--replay", "latest", "-o", "json", expect=1)
        self.assertEqual(json.loads(again.stdout)["exit_code"], 1)

    def test_names_what_a_mistake_in_the_code_does_more(self):
        """One tensor, one concatenation and one row of the head more a step: exact, however noisy the machine is."""
        faulty = os.path.join(os.path.dirname(PROGRAM), "decodelab_faulty")
        for mistake, counter, more in (("faulty-allocation", "allocations", 8), ("faulty-concatenation", "op.aten::cat", 8)):
            with self.subTest(mistake=mistake):
                result = self.gate("--baseline-worker", f"'{PROGRAM}' worker --arm causal", "--candidate-worker", f"'{faulty}' worker --arm causal,+{mistake}", expect=1)
                rose = re.search(rf"{re.escape(counter)} rose from ([\d,]+) to ([\d,]+)", " ".join(result.stdout.split()))
                self.assertIsNotNone(rose, result.stdout)
                before, after = (int(number.replace(",", "")) for number in rose.groups())
                self.assertEqual(after - before, more)  # eight decode steps are counted
        # Two positions instead of the last one.
        result = self.run_program("gate", "--store", self.store, "-m", "synthetic:tiny", "--no-preflight", "--phase", "prefill", "--length", 2, "--baseline-arm", "bigcode", "--candidate-arm", "bigcode,-last-token-lm-head", expect=1)
        self.assertIn("lm_head_rows", result.stdout)

    def test_an_improvement_is_no_regression_and_is_told(self):
        # Times may say anything but slower: the machine is not ours alone.
        result = self.gate("--baseline-arm", "bigcode,-details-on-request", "--candidate-arm", "bigcode", "--time-budget", "1", expect=None)
        self.assertIn(result.returncode, (0, 3, 4), result.stdout)
        self.assertIn("fell from", result.stdout)

    def test_guesses_that_stand_less_often_are_a_regression_of_a_continuation(self):
        right, wrong = (f"native,+oracle-draft:percent={percent}:tokens=3" for percent in (100, 0))
        continuation = ("--phase", "continue", "--max-tokens", "8")
        worse = self.gate(*continuation, "--baseline-arm", right, "--candidate-arm", wrong, "-o", "json", expect=1).stdout
        self.assertRegex(worse, r"\brounds rose from 2 to 8\b")
        better = self.gate(*continuation, "--baseline-arm", wrong, "--candidate-arm", right, "--time-budget", "1", expect=None)
        self.assertIn(better.returncode, (0, 3, 4), better.stdout)

    def test_other_tokens_are_exit_5(self):
        result = self.gate("--baseline-arm", "bigcode", "--candidate-worker", f"{FAKE} exact", "--fill", "generated", expect=5)
        self.assertIn("OUTPUTS DIFFER", result.stdout)

    def test_a_worker_that_cannot_run_makes_the_gate_invalid_with_its_reason(self):
        result = self.gate("--baseline-arm", "bigcode", "--candidate-worker", f"{FAKE} dies-in-hello", "--fill", "generated", expect=4)
        self.assertIn("INVALID", result.stdout)
        self.assertIn("ran out of patience", " ".join(result.stdout.split()))

    def test_bad_requests_are_one_sentence_and_change_nothing(self):
        policy = self.path("policy.json")
        with open(policy, "w") as file:
            file.write('{"margins": {"decod": 0.1}}')
        both = ["--baseline-arm", "bigcode", "--candidate-arm", "bigcode"]
        self.assert_one_sentence(self.gate("--candidate-arm", "bigcode", expect=2), "--baseline-worker CMD")
        self.assert_one_sentence(self.gate(*both, "--policy", policy, expect=2), "decod")
        self.assert_one_sentence(self.gate(*both, "--policy", self.path("none"), expect=2), "cannot be read")
        self.assert_one_sentence(self.gate(*both, "--on-inconclusive", "maybe", expect=2), "maybe")
        self.assert_one_sentence(self.gate("--baseline-arm", "bigcode", "--candidate-arm", "bigcod", expect=2), "bigcode")
        self.assertFalse(os.path.exists(self.store))

    def test_a_sweep_is_no_gate(self):
        self.run_program("sweep", "--store", self.store, "-m", "synthetic:tiny", "--arm", "causal", "--phase", "decode", "--length", "8", "--launches", "1", "--blocks", "1")
        self.assert_one_sentence(self.run_program("gate", "--store", self.store, "--replay", "latest", expect=2), "no gate's")


class Doctor(ProgramTest):
    def test_examines_the_machine_without_measuring_an_aa(self):
        text = self.run_program("doctor", "--seconds", "0").stdout
        for word in ("governor", "timer", "memory, reading", "GB/s", "GFLOP/s"):
            self.assertIn(word, text)
        self.assertLessEqual(max(map(len, text.splitlines())), 100, text)

    def test_says_what_can_be_resolved(self):
        text = self.run_program("doctor", "--seconds", "8").stdout
        self.assertIn("one process, mirrored blocks", text)
        self.assertIn("relaunched, gate blocks", text)


if __name__ == "__main__":
    unittest.main()
