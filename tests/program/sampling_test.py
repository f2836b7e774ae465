"""`decodelab generate` with its sampling flags: seeds, stop strings, what it prints, and what it refuses."""

import json
import os
import shutil
import unittest

from program import ProgramTest

TOKENIZER = os.path.join(os.path.dirname(__file__), "../data/tokenizer/gpt2.json")
PROMPTS = ("--prompt-ids", "5,17,96", "--prompt-ids", "7")
ARMS = ("causal", "bigcode", "bigcode,+philox-rng")


class Sampling(ProgramTest):
    def setUp(self):
        super().setUp()
        self.model, _ = self.write_checkpoint()

    def generate(self, *arguments, prompts=PROMPTS):
        return self.run_json("generate", "-m", self.model, *prompts, "--max-tokens", 12, "--ignore-eos", *arguments)["completions"]

    def tokens(self, *arguments, **keywords):
        return [completion["token_ids"] for completion in self.generate(*arguments, **keywords)]

    def test_repeats_itself_with_a_seed_alone_and_in_a_batch(self):
        for arm in ARMS:
            flags = ("--arm", arm, "--temperature", 1.5, "--top-k", 50, "--top-p", 0.95, "--typical-p", 0.95, "--repetition-penalty", 1.1)
            both = self.tokens(*flags, "--seed", 3)
            self.assertEqual(both, self.tokens(*flags, "--seed", 3))
            self.assertNotEqual(both, self.tokens(*flags, "--seed", 4))
            self.assertEqual([both[1]], self.tokens(*flags, "--seed", 3, prompts=PROMPTS[2:]))
            self.assertEqual(both[0], self.tokens(*flags, "--seed", 3, "--seed", 4)[0])
            self.assertEqual(both, self.tokens(*flags, "--seed", 3, "--log-probs"))

    def test_tells_the_seeds_that_it_drew(self):
        drawn = self.generate("--sample")
        seeds = [word for completion in drawn for word in ("--seed", completion["seed"])]
        self.assertEqual([completion["token_ids"] for completion in drawn], self.tokens(*seeds))
        self.assertEqual([completion["seed"] for completion in self.generate()], [None, None])

    def test_is_greedy_without_its_flags_and_with_a_penalty_alone(self):
        self.assertEqual(self.tokens(), self.tokens("--top-k", 1))
        self.assertEqual([completion["seed"] for completion in self.generate("--repetition-penalty", 1.5)], [None, None])

    def test_is_explained_with_an_example(self):
        help_text = self.run_program("generate", "--help").stdout
        for flag in ("--sample", "--temperature", "--top-k", "--top-p", "--typical-p", "--repetition-penalty", "--seed", "--stop"):
            self.assertIn(flag, help_text)
        self.assertIn("--temperature 0.8 --top-p 0.95 --seed 7", help_text)

    def test_refuses_what_has_no_meaning(self):
        for flag, values in {"--temperature": (0, -1, "nan", "inf"), "--top-k": (-1,), "--top-p": (0, 1.5), "--typical-p": (0, 2),
                             "--repetition-penalty": (0, -2)}.items():
            for value in values:
                refused = self.run_program("generate", "-m", self.model, *PROMPTS, flag, value, expect=2)
                self.assert_one_sentence(refused, flag, "expected")
        for seeds in (("--seed", 1, "--seed", 2, "--seed", 3),):
            self.assert_one_sentence(self.run_program("generate", "-m", self.model, *PROMPTS, *seeds, expect=2), "--seed", "3 seeds", "2 prompts")
        self.assert_one_sentence(self.run_program("generate", "-m", self.model, *PROMPTS, "--stop", "x", expect=2), "--stop", "tokenizer.json")


class StopStrings(ProgramTest):
    def setUp(self):
        super().setUp()
        with open(TOKENIZER, encoding="utf-8") as file:
            self.model, _ = self.write_checkpoint(vocab_size=len(json.load(file)["model"]["vocab"]))
        shutil.copy(TOKENIZER, os.path.join(self.model, "tokenizer.json"))

    def arguments(self, seed):
        return ("generate", "-m", self.model, "--prompt", "The", "--prompt", "for", "--max-tokens", 20, "--ignore-eos", "--seed", seed)

    def plain_completions(self):
        """A seed, its completions, and five characters within the first one's text, before which all is printable ASCII."""
        for seed in range(100):
            completions = self.run_json(*self.arguments(seed))["completions"]
            text = completions[0]["text"]
            if len(text) > 12 and text[:10].isascii() and text[:10].isprintable():
                return seed, completions, text[5:10]
        self.fail("no text begins with ten printable characters")

    def test_end_the_text_before_them_also_where_they_span_tokens(self):
        seed, whole, stop = self.plain_completions()
        text = whole[0]["text"]
        stop_flags = ("--stop", "not in any text", f"--stop={stop}")
        cut = self.run_json(*self.arguments(seed), *stop_flags)["completions"]
        self.assertEqual(cut[0]["text"], text[: text.index(stop)])
        self.assertEqual(cut[0]["finish_reason"], "stop")
        self.assertEqual(cut[0]["token_ids"], whole[0]["token_ids"][: len(cut[0]["token_ids"])])
        self.assertLess(len(cut[0]["token_ids"]), 20)
        if stop not in whole[1]["text"]:
            self.assertEqual(cut[1], whole[1])
        printed = self.run_program("generate", "-m", self.model, "--prompt", "The", "--max-tokens", 20, "--ignore-eos", "--seed", seed, *stop_flags).stdout
        self.assertEqual(printed, cut[0]["text"] + "\n")

    def test_may_not_be_empty(self):
        self.assert_one_sentence(self.run_program("generate", "-m", self.model, "--prompt", "The", "--stop", "", expect=2), "--stop", "at least one character")


if __name__ == "__main__":
    unittest.main()
