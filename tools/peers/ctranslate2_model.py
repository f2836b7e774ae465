"""Writes a gpt_bigcode checkpoint in the format of CTranslate2, with the variables of its own converter."""

from checkpoint import ERF_GELU, TANH_GELU


def word(token):
    """The vocabulary's entry of a token id: generate_batch() takes words only."""
    return f"<{token}>"


def write_model(checkpoint, kind, folder):
    """Writes the model into `folder` by CTranslate2's public specification; `kind` is a compute type, as `float32`.

    The GPTBigCode loader of CTranslate2 itself wants torch, Transformers and a tokenizer; what it sets is set here. The vocabulary is
    one word a token id, whether the directory has a tokenizer or not: prompts are ids.
    """
    from ctranslate2.specs import common_spec, transformer_spec

    config = checkpoint.config
    activations = {**dict.fromkeys(TANH_GELU, common_spec.Activation.GELUTanh), **dict.fromkeys(ERF_GELU, common_spec.Activation.GELU)}
    if config.activation not in activations:
        raise NotImplementedError(f"activation_function {config.activation}: expected one of {', '.join(activations)}")
    spec = transformer_spec.TransformerDecoderModelSpec.from_config(
        config.layers, config.heads, pre_norm=True, activation=activations[config.activation], multi_query_attention=True)

    def put(target, name, weight="weight", bias="bias"):
        setattr(target, weight, checkpoint.tensor(f"{name}.weight"))
        setattr(target, bias, checkpoint.tensor(f"{name}.bias"))

    decoder = spec.decoder
    decoder.scale_embeddings = False
    decoder.embeddings.weight = decoder.projection.weight = checkpoint.tensor("wte.weight")
    decoder.position_encodings.encodings = checkpoint.tensor("wpe.weight")
    put(decoder.layer_norm, "ln_f", "gamma", "beta")
    for number, layer in enumerate(decoder.layer):
        put(layer.self_attention.layer_norm, f"h.{number}.ln_1", "gamma", "beta")
        put(layer.self_attention.linear[0], f"h.{number}.attn.c_attn")
        put(layer.self_attention.linear[1], f"h.{number}.attn.c_proj")
        put(layer.ffn.layer_norm, f"h.{number}.ln_2", "gamma", "beta")
        put(layer.ffn.linear_0, f"h.{number}.mlp.c_fc")
        put(layer.ffn.linear_1, f"h.{number}.mlp.c_proj")
    spec.config.layer_norm_epsilon = config.epsilon
    spec.config.bos_token = spec.config.eos_token = spec.config.unk_token = word(0)
    spec.register_vocabulary([word(token) for token in range(config.vocabulary)])
    spec.validate()
    spec.optimize(quantization=kind)
    spec.save(folder)
