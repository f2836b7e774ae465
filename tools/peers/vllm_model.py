"""What vLLM is given: a Hugging Face directory with words for a vocabulary, and the variables that it goes by."""

import json
import os

from kept_state import cache_folder

TORCH_DTYPES = {"fp32": "float32", "bf16": "bfloat16", "fp16": "float16"}
# What a forward pass may hold, tokens of prompts and of answers; the same in process and in the server, whose own defaults differ.
BATCHED_TOKENS = 4096


def model_folder(checkpoint):
    """A folder with the checkpoint's weights, config.json, and a vocabulary in which token 7 is the word t7, so that text and ids say the same."""
    from checkpoint import converted

    return converted(checkpoint, "vllm", "words", lambda draft: write_folder(checkpoint, draft))


def write_folder(checkpoint, folder):
    """The weights of a directory are linked, those of a GGUF file written in fp32; vLLM casts them to its --dtype."""
    if checkpoint.gguf:
        from gguf_source import write_directory

        write_directory(checkpoint.folder, folder)
    else:
        names = os.listdir(checkpoint.folder)
        for name in names:
            if name == "config.json" or name.endswith((".safetensors", ".safetensors.index.json")):
                os.symlink(os.path.join(checkpoint.folder, name), os.path.join(folder, name))
    write_words(checkpoint.config, folder)


def write_words(config, folder):
    vocabulary = {f"t{token}": token for token in range(config.vocabulary)}
    parts = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "normalizer": None, "pre_tokenizer": {"type": "WhitespaceSplit"}, "post_processor": None, "decoder": None,
             "model": {"type": "WordLevel", "vocab": vocabulary, "unk_token": "t0"}}
    settings = {"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": config.positions, "clean_up_tokenization_spaces": False}
    for name, content in (("tokenizer.json", parts), ("tokenizer_config.json", settings)):
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            json.dump(content, file)


def variables(threads, kv_space):
    """Of the process or the server: no network, no counting of users, threads where the system puts them, `kv_space` GiB of keys and values."""
    return {"OMP_NUM_THREADS": str(threads), "VLLM_CPU_OMP_THREADS_BIND": "nobind", "VLLM_CPU_KVCACHE_SPACE": str(kv_space), "VLLM_HOST_IP": "127.0.0.1", "VLLM_NO_USAGE_STATS": "1",
            "DO_NOT_TRACK": "1", "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false", "TORCHINDUCTOR_COMPILE_THREADS": "1", "VLLM_CACHE_ROOT": os.path.join(cache_folder(), "vllm-programs")}
