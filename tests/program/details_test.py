"""`decodelab generate` with details of tokens: ranks, the most probable tokens and log-probabilities, of answers and of prompts."""

import json
import math
import os
import shutil
import unittest

from program import ProgramTest

PROMPTS = ("--prompt-ids", "5,17,96", "--prompt-ids", "7")
VOCABULARY = 257
TOKENIZER = os.path.join(os.path.dirname(__file__), "../data/tokenizer/gpt2.json")


def log_softmax(logits):
    largest = max(logits)
    total = math.log(sum(math.exp(logit - largest) for logit in logits))
    return [logit - largest - total for logit in logits]


class Details(ProgramTest):
    def setUp(self):
        super().setUp()
        self.model, _ = self.write_checkpoint(vocab_size=VOCABULARY)

    def generate(self, *arguments, prompts=PROMPTS):
        return self.run_json("generate", "-m", self.model, *prompts, "--max-tokens", 4, "--ignore-eos", *arguments)["completions"]

    def first_logits(self):
        from safetensors.numpy import load_file

        file = os.path.join(self.folder, "logits.safetensors")
        self.generate("--logits", file)
        return load_file(file)["prefill_logits"].tolist()

    def test_give_the_most_probable_tokens_in_order_with_their_log_probabilities(self):
        for logits, row in zip(self.first_logits(), self.generate("--top-tokens", 5, "--log-probs-of-ids", "0,256", "--arm", "native"), strict=True):
            expected = log_softmax(logits)
            order = sorted(range(VOCABULARY), key=lambda token: -logits[token])
            top = row["top_tokens"][0]
            self.assertEqual([token["token_id"] for token in top["tokens"]], order[:5])
            for token in top["tokens"]:
                self.assertAlmostEqual(token["log_prob"], expected[token["token_id"]], places=4)
                self.assertIsNone(token["text"], "there is no tokenizer")
            self.assertEqual((top["tied"], top["truncated"]), (False, False))
            for token, log_prob in zip((0, 256), row["log_probs_of_ids"][0], strict=True):
                self.assertAlmostEqual(log_prob, expected[token], places=4)
            self.assertEqual(len(row["top_tokens"]), 4, "one for each token")
            self.assertNotIn("ranks", row)
            self.assertNotIn("token_log_probs", row)

    def test_of_a_prompt_are_those_of_its_tokens_one_by_one(self):
        whole = self.generate("--prompt-top-tokens", 3, "--prompt-ranks", "--log-probs", prompts=("--prompt-ids", "5,17,96,4"))[0]
        self.assertEqual(len(whole["prompt_top_tokens"]), 3)
        for end, token in ((1, 17), (2, 96), (3, 4)):
            prompt = ",".join(str(id) for id in (5, 17, 96, 4)[:end])
            step = self.generate("--top-tokens", 3, "--log-probs-of-ids", token, prompts=("--prompt-ids", prompt))[0]
            self.assertEqual([top["token_id"] for top in whole["prompt_top_tokens"][end - 1]["tokens"]], [top["token_id"] for top in step["top_tokens"][0]["tokens"]])
            self.assertAlmostEqual(whole["prefill_log_probs"][end - 1], step["log_probs_of_ids"][0][0], places=4)
            self.assertGreaterEqual(whole["prompt_ranks"][end - 1], 1)

    def test_are_the_same_in_a_batch_of_requests_that_ask_for_different_ones(self):
        lines = [{"prompt_ids": [5, 17, 96], "top_tokens": 2, "max_tokens": 4}, {"prompt_ids": [7], "log_probs": True, "max_tokens": 3}, {"prompt_ids": [9, 9], "max_tokens": 2}]
        file = os.path.join(self.folder, "lines.jsonl")
        with open(file, "w", encoding="utf-8") as out:
            out.write("".join(json.dumps(line) + "\n" for line in lines))
        batch = self.run_json("generate", "-m", self.model, "--prompts", file, "--ignore-eos", "--arm", "native", "--max-batch", 2)["completions"]
        alone = self.generate("--top-tokens", 2, prompts=PROMPTS[:2])[0]
        self.assertEqual([[token["token_id"] for token in top["tokens"]] for top in batch[0]["top_tokens"]], [[token["token_id"] for token in top["tokens"]] for top in alone["top_tokens"]])
        self.assertEqual(len(batch[1]["token_log_probs"]), 3)
        self.assertEqual(batch[1]["ranks"], [1, 1, 1])
        self.assertNotIn("top_tokens", batch[1])
        self.assertFalse({"top_tokens", "ranks", "token_log_probs"} & set(batch[2]))

    def test_of_processed_logits_leave_out_what_cannot_be_drawn(self):
        row = self.generate("--top-tokens", 10, "--log-probs-of", "processed", "--top-k", 3, "--temperature", 0.7, "--seed", 1)[0]
        for top in row["top_tokens"]:
            self.assertEqual(len(top["tokens"]), 3)
            self.assertAlmostEqual(sum(math.exp(token["log_prob"]) for token in top["tokens"]), 1, places=4)

    def test_refuse_what_has_no_meaning(self):
        for flags, words in {("--top-tokens", -1): ("0 or more",), ("--top-tokens", 101): ("--max-top-tokens", "100"), ("--log-probs-of-ids", VOCABULARY): ("ids 0 to 256",),
                             ("--ties", "some"): ("--ties", "keep or cut"), ("--log-probs-of", "all"): ("--log-probs-of", "raw or processed")}.items():
            self.assert_one_sentence(self.run_program("generate", "-m", self.model, *PROMPTS, *flags, expect=2), *words)

    def test_are_null_where_logits_hold_a_nan(self):
        import torch

        model, weights = self.write_checkpoint()
        with torch.no_grad():
            weights.transformer.wte.weight[50, 0] = math.nan
        weights.save_pretrained(model, safe_serialization=True)
        for arm in ("causal", "native"):
            [row] = self.run_json("generate", "-m", model, "--prompt-ids", "3,4,5", "--max-tokens", 1, "--ignore-eos", "--top-tokens", 2, "--ranks", "--prompt-top-tokens", 1, "--arm", arm)["completions"]
            self.assertEqual(row["token_ids"], [50], "a NaN counts as higher than any number")
            self.assertEqual([row["top_tokens"], row["ranks"]], [[None]] * 2)
            self.assertEqual(row["prompt_top_tokens"], [None, None])

    def test_may_differ_between_the_arms_of_a_sweep(self):
        rows = self.run_json("sweep", "-m", "synthetic:tiny", "--phase", "prefill,decode", "--batch", 2, "--length", 16, "--quick", "--launches", 1, "--arm", "native", "--arm", "native@top-tokens=5",
                             "--arm", "native,-scan-details,+ties-kept-topk@top-tokens=5", "--arm", "native@prompt-top-tokens=5")["rows"]
        by_arm = {(row["arm"], row["phase"]): row for row in rows}
        self.assertEqual({row["status"] for (arm, _), row in by_arm.items() if "prompt" not in arm}, {"ok"})
        self.assertEqual(by_arm["native@prompt-top-tokens=5", "decode"]["status"], "unsupported")
        self.assertEqual(by_arm["native@prompt-top-tokens=5", "prefill"]["status"], "ok")
        self.assertGreater(by_arm["native@top-tokens=5", "decode"]["counters"]["scanned_logits"], 0)
        self.assertGreater(by_arm["native,+ties-kept-topk,-scan-details@top-tokens=5", "decode"]["counters"]["op.aten::topk"], 0)
        counters = by_arm["native@top-tokens=5", "decode"]["counters"]
        self.assertEqual(counters["listed_tokens"], 2 * counters["counted_steps"])

    def test_draw_what_typical_p_keeps_in_an_arm_that_asks_for_it(self):
        scan, sort = "native,+scan-typical,-vectorized-choice@typical-p=0.5", "native@typical-p=0.5"
        rows = self.run_json("sweep", "-m", "synthetic:tiny", "--phase", "decode", "--batch", 2, "--length", 16, "--quick", "--launches", 1, "--arm", "native", "--arm", sort, "--arm", scan)["rows"]
        by_arm = {row["arm"]: row for row in rows}
        self.assertEqual({row["status"] for row in rows}, {"ok"})
        self.assertGreater(by_arm[sort]["counters"]["op.aten::sort"], 0)
        self.assertNotIn("op.aten::sort", by_arm["native"]["counters"])
        self.assertEqual(by_arm[scan]["counters"]["scanned_logits"], 2 * 4096 * by_arm[scan]["counters"]["counted_steps"])


class Texts(ProgramTest):
    def test_stand_beside_the_tokens_of_a_model_that_has_a_tokenizer(self):
        with open(TOKENIZER, encoding="utf-8") as file:
            vocabulary = {id: text.replace("\u0120", " ") for text, id in json.load(file)["model"]["vocab"].items()}
        model, _ = self.write_checkpoint(vocab_size=len(vocabulary) + 3)
        shutil.copy(TOKENIZER, os.path.join(model, "tokenizer.json"))
        for arm in ("causal", "native"):
            [row] = self.run_json("generate", "-m", model, "--prompt", "The", "--max-tokens", 3, "--ignore-eos", "--top-tokens", 20, "--prompt-top-tokens", 2, "--arm", arm)["completions"]
            told = [token for top in row["top_tokens"] + row["prompt_top_tokens"] for token in top["tokens"]]
            plain = [token for token in told if vocabulary.get(token["token_id"], "").isascii()]
            self.assertGreater(len(plain), 10)
            for token in plain:
                self.assertEqual(token["text"], vocabulary.get(token["token_id"], ""))
            rows = self.run_json("sweep", "-m", model, "--phase", "decode", "--batch", 2, "--length", 4, "--quick", "--launches", 1, "--arm", "native@top-tokens=3:text", "--arm", "native,-table-text@top-tokens=3:text")["rows"]
            self.assertEqual({row["status"] for row in rows}, {"ok"})

    def test_are_a_row_with_a_reason_where_there_is_no_tokenizer(self):
        _, row = self.run_json("sweep", "-m", "synthetic:tiny", "--phase", "decode", "--batch", 1, "--length", 4, "--quick", "--launches", 1, "--arm", "native", "--arm", "native@top-tokens=3:text")["rows"]
        self.assertEqual(row["status"], "unsupported")
        self.assertIn("tokenizer", row["reason"])


if __name__ == "__main__":
    unittest.main()
