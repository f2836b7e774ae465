"""The oracle at the size of tiny_starcoder_py (164 M parameters): minutes, so run by hand and not by ctest.

example:
  DECODELAB=../../build/release/decodelab ../../.venv/bin/python3 -m unittest -v full_size_check
"""

import unittest

from transformers_test import AgreesWithTransformers as Oracle

SHAPE = dict(n_layer=20, n_embd=768, n_head=12, n_inner=3072, n_positions=8192, vocab_size=49152, initializer_range=0.02)
LENGTHS = [37, 5, 128, 1, 64]


class AtFullSize(Oracle):
    prompts = [[(17 * row + 7919 * position) % 49152 for position in range(length)] for row, length in enumerate(LENGTHS)]

    def test_fp32(self):
        folder, model = self.write_checkpoint(**SHAPE)
        self.check(folder, model, prompts=self.prompts[:1], tokens=64)
        self.check(folder, model, prompts=self.prompts, tokens=64)

    def test_bf16(self):
        folder, model = self.write_checkpoint(dtype="bfloat16", **SHAPE)
        self.check(folder, model, "bfloat16", prompts=self.prompts[:1], tokens=2)
        self.check(folder, model, "bfloat16", prompts=self.prompts, tokens=2)


def load_tests(loader, tests, pattern):
    """Only what this file adds: the small shapes are ctest's."""
    return unittest.TestSuite([AtFullSize("test_fp32"), AtFullSize("test_bf16")])


if __name__ == "__main__":
    unittest.main()
