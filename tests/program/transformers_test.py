"""The oracle's oracle: every arm against Hugging Face Transformers, on checkpoints that Transformers made."""

import unittest

import torch
from program import ProgramTest
from safetensors.torch import load_file

PROMPTS = [[5, 17, 96, 3, 22, 41, 8, 60, 12], [7], [1, 2, 3, 4], [90, 80, 70, 60, 50, 40], [33, 33]]
ARMS = ["causal", "bigcode", "bigcode,-kv-grow,+kv-preallocated", "causal,+flash-prefill", "causal,+kv-grow:tokens=3", "causal,+last-token-lm-head",
        "causal,+vectorized-choice", "causal,+details-on-request"]
TOLERANCE = {"float32": 1e-4, "bfloat16": 2e-2, "float16": 5e-3}
NAMES = {"float32": "fp32", "bfloat16": "bf16", "float16": "fp16"}


def greedy(model, prompt, tokens):
    """Token ids by the plainest loop there is: the whole text through the model, again for each token."""
    ids = list(prompt)
    with torch.no_grad():
        for _ in range(tokens):
            ids.append(int(model(torch.tensor([ids])).logits[0, -1].argmax()))
    return ids[len(prompt):]


def last_logits(model, prompt):
    with torch.no_grad():
        return model(torch.tensor([prompt])).logits[0, -1].float()


class AgreesWithTransformers(ProgramTest):
    def generate(self, folder, arm, dtype, prompts, tokens):
        words = [word for prompt in prompts for word in ("--prompt-ids", ",".join(map(str, prompt)))]
        logits = self.path("logits.safetensors")
        answer = self.run_json("generate", "-m", folder, *words, "--max-tokens", tokens, "--arm", arm, "--dtype", NAMES[dtype], "--ignore-eos", "--logits", logits)
        return [completion["token_ids"] for completion in answer["completions"]], load_file(logits)["prefill_logits"]

    def check(self, folder, model, dtype="float32", prompts=PROMPTS, tokens=40, arms=ARMS):
        expected_tokens = [greedy(model, prompt, tokens) for prompt in prompts] if dtype == "float32" else None
        expected_logits = [last_logits(model, prompt) for prompt in prompts]
        for arm in arms:
            with self.subTest(arm=arm, dtype=dtype):
                got_tokens, got_logits = self.generate(folder, arm, dtype, prompts, tokens)
                if expected_tokens is not None:
                    self.assertEqual(got_tokens, expected_tokens)
                for row, expected in enumerate(expected_logits):
                    difference = (got_logits[row] - expected).abs().max() / expected.abs().max()
                    self.assertLess(float(difference), TOLERANCE[dtype], f"row {row}")

    def test_multi_query_with_tanh(self):
        self.check(*self.write_checkpoint())

    def test_one_prompt_alone(self):
        folder, model = self.write_checkpoint()
        self.check(folder, model, prompts=PROMPTS[:1])

    def test_multi_head(self):
        self.check(*self.write_checkpoint(multi_query=False))

    def test_erf_activation(self):
        self.check(*self.write_checkpoint(activation_function="gelu"))

    def test_softmax_without_upcast(self):
        self.check(*self.write_checkpoint(attention_softmax_in_fp32=False, scale_attention_softmax_in_fp32=False))

    def test_unscaled_attention(self):
        self.check(*self.write_checkpoint(scale_attn_weights=False))

    def test_shards(self):
        self.check(*self.write_checkpoint(shards=True))

    def test_bfloat16(self):
        folder, model = self.write_checkpoint(dtype="bfloat16")
        self.check(folder, model, "bfloat16")

    def test_float16(self):
        folder, model = self.write_checkpoint(dtype="float16")
        self.check(folder, model, "float16")

    def test_a_16_bit_file_read_as_fp32(self):
        folder, model = self.write_checkpoint(dtype="bfloat16")
        self.check(folder, model.float())


if __name__ == "__main__":
    unittest.main()
