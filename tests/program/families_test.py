"""The oracle's oracle for model families: small seeded models that Transformers made, against arms of every kind."""

import json
import os
import unittest

import torch
from program import ProgramTest
from transformers_test import NAMES, PROMPTS, greedy, last_logits

from safetensors.torch import load_file, save_file

# The presets with a kernel or a layout of their own for every slot, and what they leave to single variants.
ARMS = ["causal", "bigcode2", "flash", "native", "causal,+split-kv-decode", "causal,+packed-prefill", "causal,+merged-kv", "causal,+workspace-forward"]
# Fewer key heads than heads, heads that do not fill the width, a vocabulary that no block divides.
SMALL = dict(vocab_size=97, hidden_size=48, intermediate_size=80, num_hidden_layers=3, num_attention_heads=6, num_key_value_heads=2, head_dim=12,
             max_position_embeddings=64, bos_token_id=0, eos_token_id=0, initializer_range=0.2)
# What sees a window of keys.
WINDOW_ARMS = ["causal", "native", "flash", "causal,+merged-kv,+kv-preallocated,+workspace-forward,+varlen-flash-prefill"]
# What runs where positions are a bias of the scores.
T5_ARMS = ["causal", "native", "flash", "causal,+merged-kv,+workspace-forward,+varlen-flash-prefill"]
STEPS = 33


class HeldAgainstTransformers(ProgramTest):
    """Compares arms with a model of Transformers."""

    def check(self, model, dtype="float32", arms=ARMS, tolerance=1e-4, prompts=PROMPTS, greedy=greedy, last_logits=last_logits):
        self.check_folder(*self.save_model(model, dtype=dtype), dtype, arms, tolerance, prompts, greedy, last_logits)

    def check_folder(self, folder, model, dtype="float32", arms=ARMS, tolerance=1e-4, prompts=PROMPTS, greedy=greedy, last_logits=last_logits):
        expected_tokens = [greedy(model, prompt, STEPS) for prompt in prompts]
        expected_logits = [last_logits(model, prompt) for prompt in prompts]
        words = [word for prompt in prompts for word in ("--prompt-ids", ",".join(map(str, prompt)))]
        for arm in arms:
            with self.subTest(arm=arm):
                logits = self.path("logits.safetensors")
                answer = self.run_json("generate", "-m", folder, *words, "--max-tokens", STEPS, "--arm", arm, "--dtype", NAMES[dtype],
                                       "--ignore-eos", "--logits", logits)
                got = load_file(logits)["prefill_logits"]
                for row, expected in enumerate(expected_logits):
                    self.assertLess(float((got[row] - expected).abs().max() / expected.abs().max()), tolerance, f"row {row}")
                if dtype == "float32":
                    self.assertEqual([completion["token_ids"] for completion in answer["completions"]], expected_tokens)


class Families(HeldAgainstTransformers):
    def llama(self, **changes):
        from transformers import LlamaConfig, LlamaForCausalLM
        torch.manual_seed(1)
        return LlamaForCausalLM(LlamaConfig(**{**SMALL, **changes}))

    def test_llama_with_grouped_queries_and_heads_wider_than_the_model(self):
        self.check(self.llama())

    def test_llama_in_bfloat16(self):
        self.check(self.llama(), dtype="bfloat16", arms=["causal", "native"], tolerance=3e-2)

    def test_llama_with_one_key_head_biases_and_a_tied_head(self):
        self.check(self.llama(num_key_value_heads=1, attention_bias=True, mlp_bias=True, tie_word_embeddings=True))

    def test_llama_with_as_many_key_heads_as_heads(self):
        self.check(self.llama(num_key_value_heads=6), arms=["causal", "native"])

    def test_rotary_positions_of_every_kind(self):
        for kind in (dict(rope_type="default", rope_theta=500.0), dict(rope_type="linear", factor=2.5, rope_theta=10000.0),
                     dict(rope_type="llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=16, rope_theta=10000.0),
                     dict(rope_type="yarn", factor=4.0, original_max_position_embeddings=16, rope_theta=10000.0)):
            with self.subTest(kind["rope_type"]):
                self.check(self.llama(rope_parameters=kind), arms=["causal"])

    def test_qwen2_with_biases_of_query_key_and_value(self):
        from transformers import Qwen2Config, Qwen2ForCausalLM
        torch.manual_seed(2)
        self.check(Qwen2ForCausalLM(Qwen2Config(**{**SMALL, "head_dim": 8})))

    def test_qwen2_with_a_window_in_its_later_layers(self):
        from transformers import Qwen2Config, Qwen2ForCausalLM
        torch.manual_seed(3)
        self.check(Qwen2ForCausalLM(Qwen2Config(**{**SMALL, "head_dim": 8}, use_sliding_window=True, sliding_window=7, max_window_layers=1)), arms=WINDOW_ARMS)

    def test_qwen3_with_norms_over_heads(self):
        from transformers import Qwen3Config, Qwen3ForCausalLM
        torch.manual_seed(4)
        self.check(Qwen3ForCausalLM(Qwen3Config(**SMALL)))

    def test_mistral_with_a_window_shorter_than_the_text(self):
        from transformers import MistralConfig, MistralForCausalLM
        torch.manual_seed(5)
        self.check(MistralForCausalLM(MistralConfig(**SMALL, sliding_window=7)), arms=WINDOW_ARMS)

    def test_mistral_without_a_window(self):
        from transformers import MistralConfig, MistralForCausalLM
        torch.manual_seed(5)
        self.check(MistralForCausalLM(MistralConfig(**SMALL, sliding_window=None)), arms=["causal", "native"])

    def test_smollm3_with_layers_that_know_no_positions(self):
        from transformers import SmolLM3Config, SmolLM3ForCausalLM
        torch.manual_seed(6)
        self.check(SmolLM3ForCausalLM(SmolLM3Config(**{**SMALL, "head_dim": 8}, no_rope_layers=[1, 0, 1], pad_token_id=0)), arms=["causal", "native", "flash"])

    def gpt2(self, **changes):
        from transformers import GPT2Config, GPT2LMHeadModel
        torch.manual_seed(7)
        return GPT2LMHeadModel(GPT2Config(**{**dict(vocab_size=97, n_embd=48, n_layer=3, n_head=4, n_positions=64, bos_token_id=0, eos_token_id=0, initializer_range=0.2,
                                                    attn_pdrop=0.0, embd_pdrop=0.0, resid_pdrop=0.0), **changes}))

    def test_gpt2_with_matrices_stored_the_other_way_round(self):
        self.check(self.gpt2())

    def test_gpt2_with_unscaled_attention_and_its_own_inner_width(self):
        self.check(self.gpt2(scale_attn_weights=False, n_inner=80), arms=["causal", "native"])

    def test_santacoder_as_it_was_first_stored(self):
        # Transformers has no class for it: its GPTBigCode with the same numbers is the oracle.
        from transformers import GPTBigCodeConfig, GPTBigCodeForCausalLM
        torch.manual_seed(7)
        model = GPTBigCodeForCausalLM(GPTBigCodeConfig(vocab_size=97, n_embd=48, n_layer=3, n_head=4, n_positions=64, multi_query=True, bos_token_id=0, eos_token_id=0,
                                                       initializer_range=0.2, activation_function="gelu_pytorch_tanh", attention_softmax_in_fp32=False,
                                                       scale_attention_softmax_in_fp32=False))
        folder, model = self.save_model(model, "bigcode")
        custom = self.path("custom")
        os.mkdir(custom)
        tensors = {}
        for name, tensor in load_file(os.path.join(folder, "model.safetensors")).items():
            if ".attn.c_attn." in name:
                for part, values in zip(("q_attn", "kv_attn"), tensor.split([48, 24])):
                    tensors[name.replace("c_attn", part)] = values.t().contiguous()
            else:
                transposes = tensor.dim() == 2 and ".h." in name
                tensors[name] = tensor.t().contiguous() if transposes else tensor
        save_file(tensors, os.path.join(custom, "model.safetensors"))
        with open(os.path.join(custom, "config.json"), "w", encoding="utf-8") as file:
            json.dump(dict(model_type="gpt2", architectures=["GPT2LMHeadCustomModel"], attention_head_type="multiquery", vocab_size=97, n_embd=48, n_layer=3, n_head=4,
                           n_positions=64, activation_function="gelu_fast", bos_token_id=0, eos_token_id=0), file)
        self.check_folder(custom, model)

    def neox(self, **changes):
        from transformers import GPTNeoXConfig, GPTNeoXForCausalLM
        torch.manual_seed(8)
        return GPTNeoXForCausalLM(GPTNeoXConfig(**{**dict(vocab_size=97, hidden_size=64, num_hidden_layers=3, num_attention_heads=4, intermediate_size=96,
                                                          max_position_embeddings=64, bos_token_id=0, eos_token_id=0, initializer_range=0.2, rotary_pct=0.25,
                                                          hidden_dropout=0.0, attention_dropout=0.0), **changes}))

    def test_gpt_neox_with_attention_and_mlp_side_by_side(self):
        self.check(self.neox())

    def test_gpt_neox_one_after_the_other_with_all_of_a_head_turning(self):
        self.check(self.neox(use_parallel_residual=False, rotary_pct=1.0), arms=["causal", "native", "bigcode2"])

    def gemma(self, **changes):
        from transformers import Gemma3ForCausalLM, Gemma3TextConfig
        torch.manual_seed(9)
        settings = {**SMALL, "num_hidden_layers": 4, **dict(query_pre_attn_scalar=20, sliding_window=7, pad_token_id=0, layer_types=["sliding_attention", "full_attention"] * 2),
                    **changes}
        return Gemma3ForCausalLM(Gemma3TextConfig(**settings))

    def test_gemma3_with_norms_on_both_sides_and_windows_in_every_second_layer(self):
        self.check(self.gemma(), arms=WINDOW_ARMS)

    def test_gemma3_with_two_kinds_of_rotary_positions(self):
        self.check(self.gemma(rope_parameters={"sliding_attention": {"rope_type": "default", "rope_theta": 500.0},
                                               "full_attention": {"rope_type": "linear", "factor": 4.0, "rope_theta": 10000.0}}), arms=["causal"])

    def test_gemma3_that_sees_all_keys(self):
        self.check(self.gemma(layer_types=["full_attention"] * 4), arms=["causal", "native", "flash", "bigcode2"])

    def test_gemma3_in_bfloat16(self):
        self.check(self.gemma(), dtype="bfloat16", arms=WINDOW_ARMS, tolerance=3e-2)

    def t5(self, **changes):
        from transformers import T5Config, T5ForConditionalGeneration
        torch.manual_seed(10)
        model = T5ForConditionalGeneration(T5Config(**{**dict(vocab_size=97, d_model=48, d_kv=12, d_ff=80, num_layers=3, num_decoder_layers=2, num_heads=3,
                                                              feed_forward_proj="gated-gelu", decoder_start_token_id=0, pad_token_id=0, eos_token_id=1, dropout_rate=0.0,
                                                              relative_attention_num_buckets=8, relative_attention_max_distance=20), **changes}))
        with torch.no_grad():  # a bias that decides
            for name, weight in model.named_parameters():
                if "relative_attention_bias" in name:
                    weight.normal_(0, 2)
        return model

    def check_t5(self, model, **options):
        def greedy(model, prompt, tokens):
            ids = [0]
            with torch.no_grad():
                for _ in range(tokens):
                    ids.append(int(model(input_ids=torch.tensor([prompt]), decoder_input_ids=torch.tensor([ids])).logits[0, -1].argmax()))
            return ids[1:]

        def last_logits(model, prompt):
            with torch.no_grad():
                return model(input_ids=torch.tensor([prompt]), decoder_input_ids=torch.tensor([[0]])).logits[0, -1].float()
        self.check(model, greedy=greedy, last_logits=last_logits, **options)

    def test_t5_with_an_encoder_that_reads_the_prompt(self):
        self.check_t5(self.t5(), arms=T5_ARMS)

    def test_t5_with_distances_beyond_its_buckets(self):
        prompts = [[(7 * position + row) % 96 + 1 for position in range(length)] for row, length in enumerate((60, 33, 5))]
        self.check_t5(self.t5(), arms=["causal", "causal,+packed-prefill"], prompts=prompts)

    def test_t5_with_a_plain_mlp_and_a_head_that_is_not_scaled(self):
        self.check_t5(self.t5(feed_forward_proj="relu", tie_word_embeddings=False), arms=T5_ARMS)

    def test_t5_in_bfloat16(self):
        self.check_t5(self.t5(), dtype="bfloat16", arms=T5_ARMS, tolerance=3e-2)

    def test_t5_in_float16_holds_what_overflows(self):
        model = self.t5()
        with torch.no_grad():
            model.encoder.block[1].layer[1].DenseReluDense.wo.weight.mul_(3e4)
        self.check_t5(model, dtype="float16", arms=["causal", "causal,+fused-gelu,+fused-layer-norm"], tolerance=2e-2)

    def test_an_arm_that_adds_no_bias_says_so(self):
        folder, _ = self.save_model(self.t5())
        refused = self.run_program("generate", "-m", folder, "--prompt-ids", "1,2,3", "--arm", "causal,+fused-softmax", expect=2)
        self.assert_one_sentence(refused, "fused-softmax", "bias")

    def test_an_arm_that_cannot_see_a_window_says_so(self):
        from transformers import MistralConfig, MistralForCausalLM
        folder, _ = self.save_model(MistralForCausalLM(MistralConfig(**SMALL, sliding_window=7)))
        refused = self.run_program("generate", "-m", folder, "--prompt-ids", "1,2,3", "--arm", "causal,+fused-softmax", expect=2)
        self.assert_one_sentence(refused, "fused-softmax", "window")


if __name__ == "__main__":
    unittest.main()
