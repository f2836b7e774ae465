"""compare: paired within a run, unpaired between runs, and exit codes that a script can rely on."""

import json
import unittest

from program import ProgramTest

SMALL = ["-m", "synthetic:tiny", "--phase", "decode", "--batch", "1", "--length", "16", "--launches", "2", "--blocks", "1"]


class Compare(ProgramTest):
    def compare(self, *arguments, **keywords):
        return self.run_program("compare", "--store", self.store, *arguments, **keywords)

    def compare_rows(self, *arguments):
        return json.loads(self.compare(*arguments, "-o", "json").stdout)["rows"]

    def test_arms_of_a_run_and_two_runs(self):
        for name in ["first", "second"]:
            rows = self.run_json("sweep", "--store", self.store, *SMALL, "--arm", "causal", "--arm", "bigcode", "--null-arm", "--name", name)["rows"]
        self.assertEqual([(row["arm"], row["status"]) for row in rows], [("causal", "ok"), ("bigcode", "ok"), ("null:causal", "ok")])

        [paired] = self.compare_rows("second:causal", "second:bigcode")
        self.assertTrue(paired["paired"])
        for key in ["time_ratio", "time_ratio_low", "time_ratio_high"]:
            self.assertAlmostEqual(paired[key], rows[1][key], places=12)

        text = self.compare("first", "second").stdout
        self.assertIn("No verdict: two runs share no launches", " ".join(text.split()))
        self.assertLessEqual(max(map(len, text.splitlines())), 100, text)
        unpaired = self.compare_rows("first", "second")
        self.assertEqual([(row["arm"], row["paired"]) for row in unpaired], [("causal", False), ("bigcode", False), ("null:causal", False)])
        self.assertEqual(len(self.compare("first", "second", "-o", "csv").stdout.splitlines()), 4)

        self.assert_one_sentence(self.compare("first", "first", expect=2), "name two of its arms")
        self.assert_one_sentence(self.compare("first", "third", expect=2), "third", "first")
        self.assert_one_sentence(self.compare("first:bigcod", "second", expect=2), "bigcod", "causal, bigcode")
        self.assert_one_sentence(self.compare("first", "second", "--fail-on", "anything", expect=2), "slower or different")


if __name__ == "__main__":
    unittest.main()
