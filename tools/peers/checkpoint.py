"""Reads checkpoints without torch, and keeps what engines convert them to in a cache folder."""

import contextlib
import hashlib
import json
import os
import shutil
import tempfile
from types import SimpleNamespace

import numpy as np
from gguf_source import GgufSource, is_gguf
from kept_state import cache_folder

# transformers' names of the tanh approximation and of the exact one; the defaults below are its configuration class's too.
TANH_GELU = ("gelu_pytorch_tanh", "gelu_new", "gelu_fast")
ERF_GELU = ("gelu", "gelu_python")
# Raised when what a conversion writes changes, so that files of an older one are not found.
CONVERSION = 3
DTYPES = {"F32": np.float32, "F16": np.float16, "BF16": np.uint16}


class Checkpoint:
    """A Hugging Face directory or a GGUF file: `config` as read_config() returns it, `tensor(name)` as float32 without the prefix `transformer.`."""

    def __init__(self, path):
        self.folder = os.path.realpath(path)
        self.gguf = GgufSource(path) if is_gguf(path) else None
        self.places = {}  # name -> (file, dtype, shape, offset)
        if self.gguf:
            self.config = read_config(self.gguf.config, self.folder)
            return
        with open(os.path.join(self.folder, "config.json"), encoding="utf-8") as file:
            self.config = read_config(json.load(file), self.folder)
        for file in self.files()[1:]:
            self.read_header(file)

    def files(self):
        """config.json and then every safetensors file that holds weights, or the GGUF file, as paths."""
        if self.gguf:
            return [self.folder]
        index = os.path.join(self.folder, "model.safetensors.index.json")
        if os.path.exists(index):
            with open(index, encoding="utf-8") as file:
                names = sorted(set(json.load(file)["weight_map"].values()))
        else:
            names = ["model.safetensors"]
        return [os.path.join(self.folder, name) for name in ["config.json", *names]]

    def read_header(self, path):
        with open(path, "rb") as file:
            length = int.from_bytes(file.read(8), "little")
            header = json.loads(file.read(length))
        for name, entry in header.items():
            if name != "__metadata__":
                self.places[name.removeprefix("transformer.")] = (path, entry["dtype"], entry["shape"], 8 + length + entry["data_offsets"][0])

    def tensor(self, name):
        if self.gguf:
            return self.gguf.tensor(name)
        if name not in self.places:
            raise ValueError(f"{self.folder}: expected the weight '{name}', found {len(self.places)} others; is it a {self.config.family} checkpoint?")
        path, dtype, shape, offset = self.places[name]
        if dtype not in DTYPES:
            raise NotImplementedError(f"{path}: '{name}' is {dtype}; expected {', '.join(DTYPES)}")
        values = np.fromfile(path, dtype=DTYPES[dtype], count=int(np.prod(shape)), offset=offset).reshape(shape)
        if dtype == "BF16":
            return (values.astype(np.uint32) << 16).view(np.float32)
        return values.astype(np.float32)


def read_config(found, place):
    """What an engine needs to know of a config.json, refused where no peer's converter knows the model.

    Letters of the shapes: layers, width d, heads H, kv_heads G, head_dim k, inner, vocabulary, positions. `rotary` is None where positions are learned.
    """
    family = found.get("model_type")
    if family not in FAMILIES:
        raise NotImplementedError(f"{place}: this worker converts {', '.join(FAMILIES)} checkpoints; config.json says model_type {family}")
    return FAMILIES[family](found, place)


def bigcode_config(found, place):
    if not found.get("multi_query", True):
        raise NotImplementedError(f"{place}: the engine's gpt_bigcode has multi-query attention only; config.json says multi_query false")
    if not found.get("scale_attn_weights", True):
        raise NotImplementedError(f"{place}: the engine always scales attention; config.json says scale_attn_weights false")
    width, heads = found.get("n_embd", 768), found.get("n_head", 12)
    return SimpleNamespace(family="gpt_bigcode", layers=found.get("n_layer", 12), heads=heads, kv_heads=1, head_dim=width // heads, width=width,
                           inner=found.get("n_inner") or 4 * width, positions=found.get("n_positions", 1024), vocabulary=found.get("vocab_size", 50257),
                           epsilon=found.get("layer_norm_epsilon", 1e-5), activation=found.get("activation_function", "gelu_pytorch_tanh"), tied=True, rotary=None)


def rotary_of(found, dims, place):
    """theta, dims and the scaling of Llama 3.1, whose keys stand in one of two places."""
    parameters = found.get("rope_parameters") or found.get("rope_scaling") or {}
    kind = parameters.get("rope_type", "default")
    if kind not in ("default", "llama3"):
        raise NotImplementedError(f"{place}: rotary embeddings of type {kind} are not converted; default and llama3 are")
    theta = parameters.get("rope_theta") or found.get("rope_theta") or found.get("rotary_emb_base") or 10000.0
    return SimpleNamespace(theta=theta, dims=dims, llama3=parameters if kind == "llama3" else None)


def llama_config(found, place):
    family, heads, width = found["model_type"], found["num_attention_heads"], found["hidden_size"]
    head_dim = found.get("head_dim") or (128 if family == "qwen3" else width // heads)
    if found.get("attention_bias") or found.get("mlp_bias") or found.get("use_sliding_window"):
        raise NotImplementedError(f"{place}: biases and windows are not converted")
    if found.get("hidden_act", "silu") != "silu":
        raise NotImplementedError(f"{place}: the engine's {family} computes silu; config.json says hidden_act {found['hidden_act']}")
    return SimpleNamespace(family=family, layers=found["num_hidden_layers"], heads=heads, kv_heads=found.get("num_key_value_heads") or heads, head_dim=head_dim, width=width,
                           inner=found["intermediate_size"], positions=found["max_position_embeddings"], vocabulary=found["vocab_size"], epsilon=found["rms_norm_eps"],
                           activation="silu", tied=found.get("tie_word_embeddings", False), rotary=rotary_of(found, head_dim, place))


def neox_config(found, place):
    heads, width = found["num_attention_heads"], found["hidden_size"]
    head_dim = width // heads
    share = (found.get("rope_parameters") or {}).get("partial_rotary_factor", found.get("rotary_pct", 0.25))
    if not found.get("attention_bias", True):
        raise NotImplementedError(f"{place}: the engine's gpt_neox has biases in attention; config.json says attention_bias false")
    return SimpleNamespace(family="gpt_neox", layers=found["num_hidden_layers"], heads=heads, kv_heads=heads, head_dim=head_dim, width=width,
                           inner=found["intermediate_size"], positions=found["max_position_embeddings"], vocabulary=found["vocab_size"], epsilon=found["layer_norm_eps"],
                           activation=found.get("hidden_act", "gelu"), tied=found.get("tie_word_embeddings", False), parallel=found.get("use_parallel_residual", True),
                           rotary=rotary_of(found, int(head_dim * share), place))


FAMILIES = {"gpt_bigcode": bigcode_config, "llama": llama_config, "qwen3": llama_config, "gpt_neox": neox_config}


def converted(checkpoint, engine, variety, convert):
    """The folder that `convert(folder)` wrote for these very files: made once, found again by their names, sizes and modification times.

    `variety` names whatever else the result depends on (dtype, version of the engine). Two processes may convert at once; one result is kept. The
    folder's own modification time says when it was last asked for.
    """
    identity = hashlib.sha256(repr((CONVERSION, engine, variety)).encode())
    for path in checkpoint.files():
        status = os.stat(path)
        identity.update(repr((path, status.st_size, status.st_mtime_ns)).encode())
    folder = os.path.join(cache_folder(), f"{engine}-{identity.hexdigest()[:20]}")
    if os.path.isdir(folder):
        with contextlib.suppress(OSError):  # of another user's cache
            os.utime(folder)
    else:
        os.makedirs(cache_folder(), exist_ok=True)
        draft = tempfile.mkdtemp(prefix="draft-", dir=cache_folder())
        try:
            convert(draft)
            os.rename(draft, folder)
        except OSError:
            if not os.path.isdir(folder):  # else another process was faster
                raise
        finally:
            shutil.rmtree(draft, ignore_errors=True)
    return folder


def kv_bytes(config, kv_heads, batch, positions, element_bytes):
    """Bytes of the keys and values of `batch` rows of `positions` tokens."""
    return 2 * config.layers * kv_heads * config.head_dim * batch * positions * element_bytes
