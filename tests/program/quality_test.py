"""What arms lose beside what they save: `sweep --quality`, and limits that turn a loss into a verdict."""

import pathlib
import unittest

from program import ProgramTest

LOSSY = "native,+int4-linear,-packed-linear"
ARMS = ["-m", "synthetic:tiny", "--arm", "native", "--arm", LOSSY, "--phase", "decode", "--batch", "1", "--length", "16", "--launches", "1", "--blocks", "1"]


class Quality(ProgramTest):
    def rows(self, *more, **keywords):
        return {row["arm"]: row for row in self.run_json("sweep", "--store", self.store, *ARMS, *more, **keywords)["rows"]}

    def test_stands_in_the_row_of_each_arm(self):
        rows = self.rows("--quality")
        exact, lossy = rows["native"]["quality"], rows[LOSSY]["quality"]
        self.assertEqual(exact["tokens"], lossy["tokens"])
        self.assertGreater(exact["tokens"], 1000)
        self.assertLess(exact["kl_divergence"], 1e-6, "fp32 of another order of sums")
        self.assertGreater(lossy["kl_divergence"], 100 * exact["kl_divergence"])
        self.assertGreater(lossy["kl_divergence_999"], lossy["kl_divergence"])
        self.assertIn("lossy", rows[LOSSY]["flags"])
        self.assertLess(rows[LOSSY]["counters"]["modelled_weight_bytes"], rows["native"]["counters"]["modelled_weight_bytes"] / 4)

    def test_beyond_a_limit_is_incorrect_and_says_by_how_much(self):
        rows = self.rows("--quality-limit", "kl=1e-5", expect=5)
        self.assertEqual(rows["native"]["status"], "ok")
        self.assertEqual(rows[LOSSY]["status"], "incorrect")
        self.assertRegex(rows[LOSSY]["reason"], r"mean KL divergence from the reference in fp32 is .*--quality-limit allows 1e-05")

    def test_is_not_asked_for_otherwise(self):
        self.assertIsNone(self.rows()[LOSSY]["quality"])

    def test_of_an_arm_in_another_process_and_another_dtype_is_that_of_this_one(self):
        worker = f"{self.program} worker --arm native --dtype fp32"
        rows = {row["arm"]: row for row in self.run_json("sweep", "--store", self.store, *ARMS[:4], "--dtype", "bf16", *ARMS[6:], "--quality", "--worker", f"fp32={worker}")["rows"]}
        self.assertLess(rows["fp32"]["quality"]["kl_divergence"], 1e-6)
        self.assertGreater(rows["native"]["quality"]["kl_divergence"], 1e-6, "bf16 rounds")
        self.assertEqual(rows["fp32"]["counters"]["modelled_weight_bytes"], 2 * rows["native"]["counters"]["modelled_weight_bytes"])

    def test_refuses_what_it_cannot_read(self):
        refused = self.run_program("sweep", "--store", self.store, *ARMS, "--quality-limit", "speed=3", expect=2)
        self.assert_one_sentence(refused, "kl=NATS")
        text = pathlib.Path(self.path("text.txt"))
        text.write_text("Once")
        refused = self.run_program("sweep", "--store", self.store, *ARMS, "--quality-text", str(text), expect=2)
        self.assert_one_sentence(refused, "no tokenizer")


if __name__ == "__main__":
    unittest.main()
