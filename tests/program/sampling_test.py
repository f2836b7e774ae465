"""`decodelab generate` with its sampling flags: seeds, stop strings, what it prints, and what it refuses."""

import json
import os
import shutil
import unittest

from program import ProgramTest

TOKENIZER = os.path.join(os.path.dirname(__file__), "../data/tokenizer/gpt2.json")
PROMPTS = ("--prompt-ids", "5,17,96", "--prompt-ids", "7")
ARMS = ("causal", "bigcode", "bigcode,+philox-rng")


class SampledSweeps(ProgramTest):
    def test_time_the_choice_that_was_asked_for_and_compare_plain_outputs(self):
        flags = ("sweep", "-m", "synthetic:tiny", "--phase", "decode,generate", "--batch", 2, "--length", 16, "--max-tokens", 4, "--quick", "--launches", 1, "--arm", "causal", "--arm", "bigcode")
        rows = {}
        for name, sampled in (("plain", ()), ("drawn", ("--temperature", 0.8, "--top-k", 5)), ("penalized", ("--repetition-penalty", 1.2))):
            rows[name] = {(row["phase"], row["arm"]): row for row in self.run_json(*flags, *sampled)["rows"]}
            self.assertEqual({row["status"] for row in rows[name].values()}, {"ok"}, name)
        for arm in ("causal", "bigcode"):
            choices = [rows[name]["decode", arm]["counters"]["choice.operators"] for name in ("plain", "drawn", "penalized")]
            self.assertGreater(choices[1], choices[0], "drawing takes operators")
            self.assertGreater(choices[2], choices[0], "a penalty takes operators")
        self.assertEqual([rows[name]["decode", "causal"]["scope"] for name in rows], ["step", "step-warped", "step-warped"])
        self.assertEqual([rows[name]["generate", "causal"]["scope"] for name in rows], ["generate", "generate-warped", "generate-warped"])

    def test_are_refused_where_other_processes_choose_greedily_and_for_values_without_meaning(self):
        flags = ("sweep", "-m", "synthetic:tiny", "--phase", "decode", "--arm", "causal")
        self.assert_one_sentence(self.run_program(*flags, "--top-k", 5, "--apart", expect=2), "greedily", "--apart")
        self.assert_one_sentence(self.run_program(*flags, "--temperature", -1, expect=2), "temperature")
        self.assert_one_sentence(self.run_program(*flags, "--top-k", 5, "--scope", "forward", expect=2), "scope")


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

    def test_gives_several_samples_of_a_prompt_each_a_run_of_its_own(self):
        for arm in ARMS:
            flags = ("--arm", arm, "--temperature", 1.5)
            prompts = self.generate(*flags, "--samples", 3, "--seed", 5)
            self.assertEqual([len(prompt["samples"]) for prompt in prompts], [3, 3])
            for row, prompt in enumerate(prompts):
                self.assertEqual(len({tuple(sample["token_ids"]) for sample in prompt["samples"]}), 3)
                for sample in prompt["samples"]:
                    [alone] = self.tokens(*flags, "--seed", sample["seed"], prompts=PROMPTS[2 * row : 2 * row + 2])
                    self.assertEqual(sample["token_ids"], alone, arm)

    def test_gives_the_best_of_the_samples_that_it_drew(self):
        drawn = self.generate("--samples", 6, "--seed", 5, "--log-probs")[0]["samples"]
        means = {tuple(sample["token_ids"]): sum(sample["token_log_probs"]) / len(sample["token_log_probs"]) for sample in drawn}
        best = self.generate("--samples", 2, "--best-of", 6, "--seed", 5)[0]["samples"]
        self.assertEqual([tuple(sample["token_ids"]) for sample in best], sorted(means, key=means.get, reverse=True)[:2])
        self.assertAlmostEqual(best[0]["mean_log_prob"], max(means.values()), places=4)
        [one] = self.generate("--best-of", 6, "--seed", 5, prompts=PROMPTS[:2])
        self.assertEqual(one["token_ids"], best[0]["token_ids"])
        self.assertNotIn("samples", one)

    def test_refuses_samples_that_make_no_sense(self):
        for flags, word in ((("--samples", 0), "--samples"), (("--samples", 4, "--best-of", 3), "--best-of")):
            self.assert_one_sentence(self.run_program("generate", "-m", self.model, *PROMPTS, *flags, expect=2), word)

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
