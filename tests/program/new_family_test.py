"""A family that nobody has, added by one file: listed, measured, and held against a model of the same parts in Transformers."""

import json
import os
import unittest

import torch
from families_test import ARMS, SMALL, WINDOW_ARMS, HeldAgainstTransformers
from program import PROGRAM

NEW = os.path.join(os.path.dirname(PROGRAM), "decodelab_new_family")


def patchwork(**changes):
    """Qwen 3 of Transformers with attention and MLP side by side."""
    from transformers import Qwen3Config, Qwen3ForCausalLM
    from transformers.models.qwen3.modeling_qwen3 import Qwen3DecoderLayer

    class SideBySide(Qwen3DecoderLayer):
        def forward(self, hidden_states, **keywords):
            attended, _ = self.self_attn(hidden_states=self.input_layernorm(hidden_states), **keywords)
            return self.mlp(self.post_attention_layernorm(hidden_states)) + attended + hidden_states

    torch.manual_seed(11)
    model = Qwen3ForCausalLM(Qwen3Config(**{**SMALL, **changes}))
    for layer in model.model.layers:
        layer.__class__ = SideBySide
    return model


class NewFamily(HeldAgainstTransformers):
    program = NEW

    def save_model(self, model, *parts, **keywords):
        folder, model = super().save_model(model, *parts, **keywords)
        path = os.path.join(folder, "config.json")
        with open(path, encoding="utf-8") as file:
            config = json.load(file)
        config["model_type"] = "patchwork"
        with open(path, "w", encoding="utf-8") as file:
            json.dump(config, file)
        return folder, model

    def test_has_the_tokens_of_a_model_made_of_the_same_parts(self):
        self.check(patchwork(), arms=ARMS)

    def test_has_them_with_windows_too(self):
        self.check(patchwork(use_sliding_window=True, sliding_window=7, max_window_layers=1), arms=WINDOW_ARMS)

    def test_is_listed_and_measured(self):
        self.assertIn("synthetic:patchwork-tiny", self.run_program("list", "models").stdout)
        rows = self.run_json("sweep", "-m", "synthetic:patchwork-tiny", "--arm", "causal", "--arm", "native", "--batch", 2, "--length", 16, "--launches", 1, "--blocks", 1,
                             "--store", self.store)["rows"]
        self.assertEqual({row["status"] for row in rows}, {"ok"})

    def test_is_unknown_to_the_program_without_it(self):
        folder, _ = self.save_model(patchwork())
        self.program = PROGRAM
        self.assert_one_sentence(self.run_program("generate", "-m", folder, "--prompt-ids", "1", expect=2), "model_type", "patchwork", "llama")


if __name__ == "__main__":
    unittest.main()
