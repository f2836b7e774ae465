"""counters: equal from run to run, accepted into a file, and held against it with an exit code."""

import json
import os
import unittest

from program import ProgramTest

ACCEPTED = os.path.abspath(os.path.join(os.path.dirname(__file__), "../data/counters/cpu.jsonl"))
SMALL = ["-m", "synthetic:tiny", "--arm", "causal", "--arm", "bigcode", "--phase", "prefill,decode", "--batch", "2", "--length", "16", "--launches", "1", "--blocks", "1"]


class Counters(ProgramTest):
    def test_two_runs_are_equal_to_the_last_integer_and_a_change_is_named(self):
        for name in ["first", "second"]:
            self.run_json("sweep", "--store", self.store, *SMALL, "--name", name)
        first, second = (self.run_program("counters", name, "--store", self.store).stdout for name in ["first", "second"])
        self.assertEqual(first, second)
        self.assertEqual(len(first.splitlines()), 4)

        accepted = self.path("accepted.jsonl")
        self.assert_one_sentence(self.run_program("counters", "first", "--store", self.store, "--file", accepted, expect=2), "--accept")
        self.assert_one_sentence(self.run_program("counters", "first", "--store", self.store, "--accept", expect=2), "--file")
        self.run_program("counters", "first", "--store", self.store, "--file", accepted, "--accept")
        check = ["counters", "second", "--store", self.store, "--file", accepted]
        self.assertIn("as accepted", self.run_program(*check).stdout)

        lines = [json.loads(line) for line in first.splitlines()]
        [cat] = [line for line in lines if line["arm"] == "causal" and line["phase"] == "decode"]
        cat["counters"]["op.aten::cat"] -= 1  # as if the code had one concatenation more than what was accepted
        self.write(accepted, lines)
        self.assertIn("op.aten::cat rose", self.run_program(*check, expect=1).stdout)

        cat["counters"]["op.aten::cat"] += 2
        self.write(accepted, lines)
        self.assertIn("improved", self.run_program(*check).stdout)

        self.write(accepted, lines[1:])
        self.assertIn("INVALID", self.run_program(*check, expect=4).stdout)

    def test_of_this_build_are_those_that_are_committed(self):
        """Exact on every machine with the same libtorch: what changes them says so by `decodelab counters latest --file FILE --accept`.

        Below a newer instruction set oneDNN takes a scratchpad more in each product, so that the oldest one that all machines here have is named.
        """
        os.environ["DNNL_MAX_CPU_ISA"] = "AVX2"
        self.addCleanup(os.environ.pop, "DNNL_MAX_CPU_ISA")
        self.run_json("sweep", "--store", self.store, "-m", "synthetic:tiny", "--arm", "causal", "--arm", "bigcode", "--arm", "native", "--batch", "1,3", "--length", "16,129", "--threads", "2",
                      "--launches", "1", "--blocks", "1")
        printed = self.run_program("counters", "latest", "--store", self.store, "--file", ACCEPTED).stdout
        self.assertIn("as accepted", printed)
        self.assertNotIn("improved", printed)

    def write(self, path, lines):
        with open(path, "w") as file:
            file.writelines(json.dumps(line) + "\n" for line in lines)


if __name__ == "__main__":
    unittest.main()
