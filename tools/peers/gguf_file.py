"""Writes a gpt_bigcode checkpoint as a GGUF file of architecture `starcoder`, with the tensors and types of llama.cpp's own converter."""

import os

FILE_NAME = "model.gguf"
# ours -> theirs, of the weights outside the blocks and in each block.
OUTSIDE = {"wte.weight": "token_embd.weight", "wpe.weight": "position_embd.weight", "ln_f.weight": "output_norm.weight", "ln_f.bias": "output_norm.bias"}
BLOCK = {"ln_1": "attn_norm", "attn.c_attn": "attn_qkv", "attn.c_proj": "attn_output", "ln_2": "ffn_norm", "mlp.c_fc": "ffn_up", "mlp.c_proj": "ffn_down"}


def write_gguf(checkpoint, dtype, folder):
    """Writes `folder`/model.gguf: matrices in `dtype`, vectors and positions in fp32 as llama.cpp wants them.

    The vocabulary is of the right size and empty, whether the directory has a tokenizer or not: prompts are ids. The head is the token embedding.
    """
    import gguf
    from checkpoint import TANH_GELU

    config = checkpoint.config
    if config.activation not in TANH_GELU:
        raise NotImplementedError(f"activation_function {config.activation}: llama.cpp's starcoder computes the tanh approximation only")
    kinds = {"fp32": (gguf.GGMLQuantizationType.F32, gguf.LlamaFileType.ALL_F32), "bf16": (gguf.GGMLQuantizationType.BF16, gguf.LlamaFileType.MOSTLY_BF16),
             "fp16": (gguf.GGMLQuantizationType.F16, gguf.LlamaFileType.MOSTLY_F16)}
    matrix_kind, file_kind = kinds[dtype]
    writer = gguf.GGUFWriter(os.path.join(folder, FILE_NAME), "starcoder")
    writer.add_context_length(config.positions)
    writer.add_embedding_length(config.width)
    writer.add_feed_forward_length(config.inner)
    writer.add_block_count(config.layers)
    writer.add_head_count(config.heads)
    writer.add_head_count_kv(1)
    writer.add_layer_norm_eps(config.epsilon)
    writer.add_file_type(file_kind)
    writer.add_tokenizer_model("none")
    writer.add_vocab_size(config.vocabulary)

    names = dict(OUTSIDE)
    for number in range(config.layers):
        names |= {f"h.{number}.{ours}.{part}": f"blk.{number}.{theirs}.{part}" for ours, theirs in BLOCK.items() for part in ("weight", "bias")}
    for ours, theirs in names.items():
        values = checkpoint.tensor(ours)
        kind = matrix_kind if values.ndim > 1 and ours != "wpe.weight" else gguf.GGMLQuantizationType.F32
        writer.add_tensor(theirs, gguf.quants.quantize(values, kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
