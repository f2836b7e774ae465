"""Writes a checkpoint in the format of CTranslate2, with the variables of its own converter."""

from checkpoint import ERF_GELU, TANH_GELU


def word(token):
    """The vocabulary's entry of a token id: generate_batch() takes words only."""
    return f"<{token}>"


class Writer:
    """Puts weights of a checkpoint into a specification."""

    def __init__(self, checkpoint):
        self.checkpoint, self.config = checkpoint, checkpoint.config

    def norm(self, target, name, bias=True):
        target.gamma = self.checkpoint.tensor(f"{name}.weight")
        if bias:
            target.beta = self.checkpoint.tensor(f"{name}.bias")

    def linear(self, target, name, bias=True, rows=lambda values: values):
        target.weight = rows(self.checkpoint.tensor(f"{name}.weight"))
        if bias:
            target.bias = rows(self.checkpoint.tensor(f"{name}.bias"))


def rotary_settings(rotary):
    if rotary.llama3:
        raise NotImplementedError("rotary embeddings of type llama3: this worker writes the default ones only")
    return dict(rotary_dim=rotary.dims, rotary_interleave=False, rotary_base=rotary.theta)


def bigcode_spec(writer, activation, from_config):
    config = writer.config
    spec = from_config(config.layers, config.heads, pre_norm=True, activation=activation, multi_query_attention=True)
    decoder = spec.decoder
    decoder.embeddings.weight = decoder.projection.weight = writer.checkpoint.tensor("wte.weight")
    decoder.position_encodings.encodings = writer.checkpoint.tensor("wpe.weight")
    writer.norm(decoder.layer_norm, "ln_f")
    for number, layer in enumerate(decoder.layer):
        writer.norm(layer.self_attention.layer_norm, f"h.{number}.ln_1")
        writer.linear(layer.self_attention.linear[0], f"h.{number}.attn.c_attn")
        writer.linear(layer.self_attention.linear[1], f"h.{number}.attn.c_proj")
        writer.norm(layer.ffn.layer_norm, f"h.{number}.ln_2")
        writer.linear(layer.ffn.linear_0, f"h.{number}.mlp.c_fc")
        writer.linear(layer.ffn.linear_1, f"h.{number}.mlp.c_proj")
    return spec


def llama_spec(writer, activation, from_config):
    import numpy

    config, tensor = writer.config, writer.checkpoint.tensor
    norms_heads = dict(qk_norm=True) if config.family == "qwen3" else {}
    spec = from_config(config.layers, config.heads, pre_norm=True, activation=activation, ffn_glu=True, rms_norm=True, num_heads_kv=config.kv_heads, head_dim=config.head_dim,
                       **rotary_settings(config.rotary), **norms_heads)
    decoder = spec.decoder
    decoder.embeddings.weight = tensor("model.embed_tokens.weight")
    decoder.projection.weight = decoder.embeddings.weight if config.tied else tensor("lm_head.weight")
    writer.norm(decoder.layer_norm, "model.norm", bias=False)
    for number, layer in enumerate(decoder.layer):
        name = f"model.layers.{number}."
        writer.norm(layer.self_attention.layer_norm, name + "input_layernorm", bias=False)
        layer.self_attention.linear[0].weight = numpy.concatenate([tensor(f"{name}self_attn.{part}_proj.weight") for part in "qkv"])
        writer.linear(layer.self_attention.linear[1], name + "self_attn.o_proj", bias=False)
        if norms_heads:
            writer.norm(layer.self_attention.q_norm, name + "self_attn.q_norm", bias=False)
            writer.norm(layer.self_attention.k_norm, name + "self_attn.k_norm", bias=False)
        writer.norm(layer.ffn.layer_norm, name + "post_attention_layernorm", bias=False)
        writer.linear(layer.ffn.linear_0, name + "mlp.gate_proj", bias=False)
        writer.linear(layer.ffn.linear_0_noact, name + "mlp.up_proj", bias=False)
        writer.linear(layer.ffn.linear_1, name + "mlp.down_proj", bias=False)
    return spec


def neox_spec(writer, activation, from_config):
    config, tensor = writer.config, writer.checkpoint.tensor
    spec = from_config(config.layers, config.heads, pre_norm=True, activation=activation, parallel_residual=config.parallel, shared_layer_norm=False,
                       **rotary_settings(config.rotary))

    def by_part(values):
        """Rows head by head become all queries, all keys, all values."""
        return values.reshape(config.heads, 3, config.head_dim, *values.shape[1:]).swapaxes(0, 1).reshape(values.shape)

    decoder = spec.decoder
    decoder.embeddings.weight = tensor("gpt_neox.embed_in.weight")
    decoder.projection.weight = decoder.embeddings.weight if config.tied else tensor("embed_out.weight")
    writer.norm(decoder.layer_norm, "gpt_neox.final_layer_norm")
    for number, layer in enumerate(decoder.layer):
        name = f"gpt_neox.layers.{number}."
        writer.norm(layer.input_layer_norm if config.parallel else layer.self_attention.layer_norm, name + "input_layernorm")
        writer.norm(layer.post_attention_layer_norm if config.parallel else layer.ffn.layer_norm, name + "post_attention_layernorm")
        writer.linear(layer.self_attention.linear[0], name + "attention.query_key_value", rows=by_part)
        writer.linear(layer.self_attention.linear[1], name + "attention.dense")
        writer.linear(layer.ffn.linear_0, name + "mlp.dense_h_to_4h")
        writer.linear(layer.ffn.linear_1, name + "mlp.dense_4h_to_h")
    return spec


SPECS = {"gpt_bigcode": bigcode_spec, "llama": llama_spec, "qwen3": llama_spec, "gpt_neox": neox_spec}


def write_model(checkpoint, kind, folder):
    """Writes the model into `folder` by CTranslate2's public specification; `kind` is a compute type, as `float32`.

    The loaders of CTranslate2 itself want torch, Transformers and a tokenizer, and read keys of config.json that have other names by now; what they set is set here. The
    vocabulary is one word a token id, whether the directory has a tokenizer or not: prompts are ids.
    """
    from ctranslate2.specs import common_spec, transformer_spec

    config = checkpoint.config
    activations = {**dict.fromkeys(TANH_GELU, common_spec.Activation.GELUTanh), **dict.fromkeys(ERF_GELU, common_spec.Activation.GELU), "silu": common_spec.Activation.SWISH}
    if config.activation not in activations:
        raise NotImplementedError(f"activation {config.activation}: expected one of {', '.join(activations)}")
    spec = SPECS[config.family](Writer(checkpoint), activations[config.activation], transformer_spec.TransformerDecoderModelSpec.from_config)
    spec.decoder.scale_embeddings = False
    spec.config.layer_norm_epsilon = config.epsilon
    spec.config.bos_token = spec.config.eos_token = spec.config.unk_token = word(0)
    spec.register_vocabulary([word(token) for token in range(config.vocabulary)])
    spec.validate()
    spec.optimize(quantization=kind)
    spec.save(folder)
