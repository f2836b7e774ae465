"""SmolLM2 as its makers quantized it: a GGUF file that tools/bootstrap downloads answers a question."""

import os
import pathlib
import unittest

from program import ProgramTest

CACHE = os.environ.get("DECODELAB_CACHE") or pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "decodelab"
FILE = pathlib.Path(CACHE) / "smollm2" / "SmolLM2-135M-Instruct.Q4_1.gguf"
QUESTION = "What is the capital of France?"


class Smollm2(ProgramTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        if not FILE.exists():
            raise unittest.SkipTest(f"SKIPPED: {FILE} is not there; tools/bootstrap downloads it")

    def completions(self, *words):
        return self.run_json("generate", "-m", FILE, *words)["completions"]

    def test_answers_a_question_and_stops_there_under_every_preset(self):
        for arm in ("causal", "bigcode2", "native"):
            with self.subTest(arm=arm):
                completion, = self.completions("--chat", QUESTION, "--max-tokens", 24, "--arm", arm)
                self.assertEqual(completion["text"], "The capital of France is Paris.")
                self.assertEqual(completion["finish_reason"], "eos")

    def test_answers_what_a_file_of_prompts_asks(self):
        prompts = self.path("prompts.jsonl")
        pathlib.Path(prompts).write_text(f'{{"prompt": "{QUESTION}", "chat": true}}\n{{"prompt": "Once upon a time"}}\n')
        question, tale = self.completions("--prompts", prompts, "--max-tokens", 8)
        self.assertEqual(question["text"], "The capital of France is Paris.")
        again, = self.completions("--prompt", "Once upon a time", "--max-tokens", 8)
        self.assertEqual(tale["token_ids"], again["token_ids"])

    def test_is_measured_under_a_pattern_as_its_tokens_allow_it(self):
        arms = ["native", "native@regex=[^\\n]*", "native,+trie-masks,-cached-trie-masks@regex=[^\\n]*"]
        rows = self.run_json("sweep", "-m", FILE, *[word for arm in arms for word in ("--arm", arm)], "--phase", "decode", "--batch", 2, "--length", 16,
                             "--launches", 1, "--blocks", 1, "--store", self.path("masks.sqlite"))["rows"]
        for row in rows:
            self.assertEqual((row["status"], row["engaged"]), ("ok", True), row)
        walked = {row["arm"]: row["counters"].get("walked_masks", 0) for row in rows}
        self.assertEqual(walked[arms[0]], 0)
        self.assertEqual(walked[arms[2]], 2 * 8, "every mask of two rows and eight steps")
        self.assertLess(walked[arms[1]], 2 * 8, "states come again")

    def test_is_measured_on_the_prompts_that_come_along(self):
        prompts = pathlib.Path(__file__).parents[1] / "data" / "prompts.jsonl"
        rows = self.run_json("sweep", "-m", FILE, "--prompts", prompts, "--arm", "causal", "--arm", "native", "--phase", "decode", "--batch", 1, "--length", 32,
                             "--launches", 1, "--blocks", 1, "--store", self.path("a.sqlite"), "--name", "real")["rows"]
        self.assertEqual({row["status"] for row in rows}, {"ok"})
        self.run_program("report", "real", "--store", self.path("a.sqlite"), "--out", self.path("report"), "--format", "md")
        text = pathlib.Path(self.path("report", "report.md")).read_text(encoding="utf-8")
        self.assertIn("every arm says the same", text)


if __name__ == "__main__":
    unittest.main()
