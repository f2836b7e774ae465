"""Writes a checkpoint as a GGUF file, with the tensors, types and keys of llama.cpp's own converter."""

import math
import os

import numpy as np

FILE_NAME = "model.gguf"
ARCHITECTURES = {"gpt_bigcode": "starcoder", "llama": "llama", "qwen3": "qwen3", "gpt_neox": "gptneox"}
# ours -> theirs, of the weights outside the blocks and in each block, without `.weight` and `.bias`.
BIGCODE = {"wte": "token_embd", "wpe": "position_embd", "ln_f": "output_norm"}
BIGCODE_BLOCK = {"ln_1": "attn_norm", "attn.c_attn": "attn_qkv", "attn.c_proj": "attn_output", "ln_2": "ffn_norm", "mlp.c_fc": "ffn_up", "mlp.c_proj": "ffn_down"}
LLAMA = {"model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output"}
LLAMA_BLOCK = {"input_layernorm": "attn_norm", "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output",
               "post_attention_layernorm": "ffn_norm", "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down"}
QWEN3_BLOCK = {**LLAMA_BLOCK, "self_attn.q_norm": "attn_q_norm", "self_attn.k_norm": "attn_k_norm"}
NEOX = {"gpt_neox.embed_in": "token_embd", "gpt_neox.final_layer_norm": "output_norm", "embed_out": "output"}
NEOX_BLOCK = {"input_layernorm": "attn_norm", "attention.query_key_value": "attn_qkv", "attention.dense": "attn_output", "post_attention_layernorm": "ffn_norm",
              "mlp.dense_h_to_4h": "ffn_up", "mlp.dense_4h_to_h": "ffn_down"}


def names_of(config):
    """Names of the checkpoint's weights and those in the file."""
    outside, block, layer, biases = {"gpt_bigcode": (BIGCODE, BIGCODE_BLOCK, "h", True), "llama": (LLAMA, LLAMA_BLOCK, "model.layers", False),
                                     "qwen3": (LLAMA, QWEN3_BLOCK, "model.layers", False), "gpt_neox": (NEOX, NEOX_BLOCK, "gpt_neox.layers", True)}[config.family]
    names = {}
    for ours, theirs in outside.items():
        if theirs == "output" and config.tied:
            continue
        names[f"{ours}.weight"] = f"{theirs}.weight"
        if biases and theirs == "output_norm":
            names[f"{ours}.bias"] = f"{theirs}.bias"
    for number in range(config.layers):
        for ours, theirs in block.items():
            for part in ("weight", "bias") if biases else ("weight",):
                names[f"{layer}.{number}.{ours}.{part}"] = f"blk.{number}.{theirs}.{part}"
    return names


def rows_in_its_order(config, theirs, values):
    """llama.cpp turns neighbours where Llama turns halves, and wants all queries, all keys, all values where GPT-NeoX has them head by head."""
    if config.family == "llama" and (".attn_q." in theirs or ".attn_k." in theirs):
        heads = config.heads if ".attn_q." in theirs else config.kv_heads
        return values.reshape(heads, 2, values.shape[0] // heads // 2, *values.shape[1:]).swapaxes(1, 2).reshape(values.shape)
    if config.family == "gpt_neox" and ".attn_qkv." in theirs:
        return values.reshape(config.heads, 3, config.head_dim, *values.shape[1:]).swapaxes(0, 1).reshape(values.shape)
    return values


def llama3_divisors(rotary):
    """What Llama 3.1's frequencies are divided by, one a pair of elements."""
    rule = rotary.llama3
    factor, low, high, original = rule["factor"], rule["low_freq_factor"], rule["high_freq_factor"], rule["original_max_position_embeddings"]
    divisors = []
    for pair in range(rotary.dims // 2):
        turns = original * rotary.theta ** (-2 * pair / rotary.dims) / (2 * math.pi)
        mix = min(max((turns - low) / (high - low), 0), 1)
        divisors.append(1 / ((1 - mix) / factor + mix))
    return np.array(divisors, dtype=np.float32)


def add_settings(writer, config):
    writer.add_context_length(config.positions)
    writer.add_embedding_length(config.width)
    writer.add_feed_forward_length(config.inner)
    writer.add_block_count(config.layers)
    writer.add_head_count(config.heads)
    writer.add_head_count_kv(config.kv_heads)
    if config.family in ("llama", "qwen3"):
        writer.add_layer_norm_rms_eps(config.epsilon)
        writer.add_key_length(config.head_dim)
        writer.add_value_length(config.head_dim)
    else:
        writer.add_layer_norm_eps(config.epsilon)
    if config.family == "gpt_neox":
        writer.add_parallel_residual(config.parallel)
    if config.rotary:
        writer.add_rope_dimension_count(config.rotary.dims)
        writer.add_rope_freq_base(config.rotary.theta)
    # llama.cpp's vocabulary for tests: it writes an id as hexadecimal digits, and no id of it ends a text. With no vocabulary at all its
    # server, which writes each token as text, would abort.
    writer.add_tokenizer_model("test")
    writer.add_token_list([f"t{token}" for token in range(config.vocabulary)])
    writer.add_vocab_size(config.vocabulary)


def write_gguf(checkpoint, dtype, folder):
    """Writes `folder`/model.gguf: matrices in `dtype`, vectors and positions in fp32 as llama.cpp wants them.

    The vocabulary is of the right size and made up, whether the directory has a tokenizer or not: prompts are ids. A tied head is the token embedding.
    """
    import gguf
    from checkpoint import TANH_GELU

    config = checkpoint.config
    if config.family == "gpt_bigcode" and config.activation not in TANH_GELU:
        raise NotImplementedError(f"activation_function {config.activation}: llama.cpp's starcoder computes the tanh approximation only")
    kinds = {"fp32": (gguf.GGMLQuantizationType.F32, gguf.LlamaFileType.ALL_F32), "bf16": (gguf.GGMLQuantizationType.BF16, gguf.LlamaFileType.MOSTLY_BF16),
             "fp16": (gguf.GGMLQuantizationType.F16, gguf.LlamaFileType.MOSTLY_F16)}
    matrix_kind, file_kind = kinds[dtype]
    writer = gguf.GGUFWriter(os.path.join(folder, FILE_NAME), ARCHITECTURES[config.family])
    add_settings(writer, config)
    writer.add_file_type(file_kind)
    for ours, theirs in names_of(config).items():
        values = np.ascontiguousarray(rows_in_its_order(config, theirs, checkpoint.tensor(ours)))
        kind = matrix_kind if values.ndim > 1 and theirs != "position_embd.weight" else gguf.GGMLQuantizationType.F32
        writer.add_tensor(theirs, gguf.quants.quantize(values, kind), raw_dtype=kind)
    if config.rotary and config.rotary.llama3:
        writer.add_tensor("rope_freqs.weight", llama3_divisors(config.rotary))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def converted_file(checkpoint, dtype):
    """The path of the file that write_gguf() writes of these weights, made once: worker and server run the same."""
    from importlib.metadata import version

    from checkpoint import converted

    folder = converted(checkpoint, "llama.cpp", (dtype, version("gguf")), lambda draft: write_gguf(checkpoint, dtype, draft))
    return os.path.join(folder, FILE_NAME)
