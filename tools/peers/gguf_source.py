"""Reads the weights of a GGUF file by the names of Hugging Face, dequantized to fp32 by llama.cpp's own package, and writes them as a directory."""

import json
import os
import re

import numpy as np

NAMES = {"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head", "attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm",
         "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj", "attn_output": "self_attn.o_proj",
         "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj"}


def is_gguf(path):
    return os.path.isfile(path) and path.endswith(".gguf")


class GgufSource:
    """The weights of a file of architecture `llama`: `config` as config.json has it, `tensor(name)` as float32."""

    def __init__(self, path):
        import gguf

        self.path = os.path.realpath(path)
        reader = gguf.GGUFReader(self.path)
        value = {name: field.contents() for name, field in reader.fields.items() if name.startswith(("llama.", "general.architecture", "tokenizer.ggml.eos"))}
        if value["general.architecture"] != "llama":
            raise NotImplementedError(f"{path}: this reader knows the architecture llama; the file has {value['general.architecture']}")
        self.tensors = {}
        for tensor in reader.tensors:
            block, part, kind = re.fullmatch(r"(?:blk\.(\d+)\.)?(.+)\.(weight|bias)", tensor.name).groups()
            prefix = "" if block is None else f"model.layers.{block}."
            self.tensors[f"{prefix}{NAMES[part]}.{kind}"] = tensor
        self.heads = {"q_proj": value["llama.attention.head_count"], "k_proj": value["llama.attention.head_count_kv"]}
        embedding = self.tensors["model.embed_tokens.weight"]
        self.config = dict(model_type="llama", architectures=["LlamaForCausalLM"], num_hidden_layers=value["llama.block_count"], hidden_size=value["llama.embedding_length"],
                           intermediate_size=value["llama.feed_forward_length"], num_attention_heads=self.heads["q_proj"], num_key_value_heads=self.heads["k_proj"],
                           max_position_embeddings=value["llama.context_length"], rope_theta=value.get("llama.rope.freq_base", 10000.0),
                           rms_norm_eps=value["llama.attention.layer_norm_rms_epsilon"], vocab_size=int(embedding.shape[1]),
                           tie_word_embeddings="lm_head.weight" not in self.tensors, eos_token_id=value.get("tokenizer.ggml.eos_token_id"))

    def tensor(self, name):
        import gguf

        stored = self.tensors[name]
        numbers = gguf.quants.dequantize(stored.data, stored.tensor_type)
        heads = self.heads.get(name.split(".")[-2])
        if heads is None:
            return numbers
        # llama.cpp's converter permutes the rows of queries and keys.
        return numbers.reshape(heads, numbers.shape[0] // heads // 2, 2, -1).swapaxes(1, 2).reshape(numbers.shape)


def write_directory(path, folder):
    """Writes the file's model into `folder` as Transformers stores one, in fp32."""
    from safetensors.numpy import save_file

    source = GgufSource(path)
    save_file({name: np.ascontiguousarray(source.tensor(name)) for name in source.tensors}, os.path.join(folder, "model.safetensors"), {"format": "pt"})
    with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as file:
        json.dump(source.config, file)
