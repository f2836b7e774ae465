"""SmolLM2's GGUF file against two other readers: llama.cpp's `gguf` for the numbers, Transformers for the tokens."""

import os
import sys
import unittest

import torch
from program import ProgramTest
from safetensors.torch import load_file
from smollm2_test import FILE

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../tools/peers"))
from gguf_source import write_directory  # noqa: E402

TOKENS = 64
PROMPTS = ["The capital of France is", "Water boils at", "def fibonacci(n):\n", "Once upon a time there was a", "In 1969 two men", "The three primary colours are",
           "SELECT name FROM users WHERE", "My favourite season is autumn, because"]


class GgufFile(ProgramTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        if not FILE.exists():
            raise unittest.SkipTest(f"SKIPPED: {FILE} is not there; tools/bootstrap downloads it")

    def completions(self, model, *words):
        return self.run_json("generate", "-m", model, "--max-tokens", TOKENS, "--ignore-eos", *words)["completions"]

    def test_has_the_numbers_that_gguf_reads_and_the_tokens_of_transformers(self):
        from transformers import LlamaForCausalLM
        folder = self.path("as_safetensors")
        os.mkdir(folder)
        write_directory(FILE, folder)
        of_file = self.completions(FILE, *[word for prompt in PROMPTS for word in ("--prompt", prompt)], "--logits", self.path("file.safetensors"))
        ids = [word for completion in of_file for word in ("--prompt-ids", ",".join(map(str, completion["prompt_ids"])))]
        of_folder = self.completions(folder, *ids, "--logits", self.path("folder.safetensors"))
        # The same numbers give the same bits: one that differed anywhere would change all logits.
        self.assertTrue(torch.equal(load_file(self.path("file.safetensors"))["prefill_logits"], load_file(self.path("folder.safetensors"))["prefill_logits"]))
        self.assertEqual([completion["token_ids"] for completion in of_file], [completion["token_ids"] for completion in of_folder])

        model = LlamaForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager").eval()
        for completion in of_file:
            with self.subTest(prompt=completion["prompt_ids"]), torch.no_grad():
                prompt, said = completion["prompt_ids"], completion["token_ids"]
                self.assertEqual(len(said), TOKENS)
                # Greedy decoding says these tokens where each is the most probable after all before it: one pass tells of all.
                logits = model(torch.tensor([prompt + said])).logits[0]
                self.assertEqual(logits[len(prompt) - 1 : -1].argmax(-1).tolist(), said)


if __name__ == "__main__":
    unittest.main()
