"""Reads a gpt_bigcode checkpoint without torch, and keeps what engines convert it to in a cache folder."""

import hashlib
import json
import os
import shutil
import tempfile
from types import SimpleNamespace

import numpy as np
from kept_state import cache_folder

FAMILY = "gpt_bigcode"
# transformers' names of the tanh approximation and of the exact one; the defaults below are its configuration class's too.
TANH_GELU = ("gelu_pytorch_tanh", "gelu_new", "gelu_fast")
ERF_GELU = ("gelu", "gelu_python")
# Raised when what a conversion writes changes, so that files of an older one are not found.
CONVERSION = 1
DTYPES = {"F32": np.float32, "F16": np.float16, "BF16": np.uint16}


class Checkpoint:
    """A Hugging Face directory: `config` by the names of config.json with defaults filled in, `tensor(name)` as float32 without the prefix `transformer.`."""

    def __init__(self, folder):
        self.folder = os.path.realpath(folder)
        self.config = read_config(self.folder)
        self.places = {}  # name -> (file, dtype, shape, offset)
        for file in self.files()[1:]:
            self.read_header(file)

    def files(self):
        """config.json and then every safetensors file that holds weights, as paths."""
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
        if name not in self.places:
            raise ValueError(f"{self.folder}: expected the weight '{name}', found {len(self.places)} others; is it a {FAMILY} checkpoint?")
        path, dtype, shape, offset = self.places[name]
        if dtype not in DTYPES:
            raise NotImplementedError(f"{path}: '{name}' is {dtype}; expected {', '.join(DTYPES)}")
        values = np.fromfile(path, dtype=DTYPES[dtype], count=int(np.prod(shape)), offset=offset).reshape(shape)
        if dtype == "BF16":
            return (values.astype(np.uint32) << 16).view(np.float32)
        return values.astype(np.float32)


def read_config(folder):
    """The settings of config.json that an engine needs, refused where no peer's converter knows the model."""
    with open(os.path.join(folder, "config.json"), encoding="utf-8") as file:
        found = json.load(file)
    if found.get("model_type") != FAMILY:
        raise NotImplementedError(f"{folder}: this worker converts {FAMILY} checkpoints; config.json says model_type {found.get('model_type')}")
    if not found.get("multi_query", True):
        raise NotImplementedError(f"{folder}: the engine's {FAMILY} has multi-query attention only; config.json says multi_query false")
    if not found.get("scale_attn_weights", True):
        raise NotImplementedError(f"{folder}: the engine always scales attention; config.json says scale_attn_weights false")
    width = found.get("n_embd", 768)
    return SimpleNamespace(layers=found.get("n_layer", 12), heads=found.get("n_head", 12), width=width, inner=found.get("n_inner") or 4 * width,
                           positions=found.get("n_positions", 1024), vocabulary=found.get("vocab_size", 50257), epsilon=found.get("layer_norm_epsilon", 1e-5),
                           activation=found.get("activation_function", "gelu_pytorch_tanh"))


def converted(checkpoint, engine, variety, convert):
    """The folder that `convert(folder)` wrote for these very files: made once, found again by their names, sizes and modification times.

    `variety` names whatever else the result depends on (dtype, version of the engine). Two processes may convert at once; one result is kept.
    """
    identity = hashlib.sha256(repr((CONVERSION, engine, variety)).encode())
    for path in checkpoint.files():
        status = os.stat(path)
        identity.update(repr((path, status.st_size, status.st_mtime_ns)).encode())
    folder = os.path.join(cache_folder(), f"{engine}-{identity.hexdigest()[:20]}")
    if not os.path.isdir(folder):
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
    return 2 * config.layers * kv_heads * (config.width // config.heads) * batch * positions * element_bytes
