"""Becomes llama-server on the file and with the settings of llama_cpp_worker.py; tools/peers/serve says how it is called."""

import sys

from server_arguments import become, parse, parser_of

TYPES = {"fp32": "f32", "bf16": "bf16", "fp16": "f16"}
# What one call of llama_decode() may hold: the prompts of a batch that arrive together, as in the worker.
LOGICAL_BATCH = 4096


def command(program, file, options):
    """The words of the server: as the worker's context, and nothing kept from one request for another."""
    kv = options.kv or options.dtype
    fused = options.flash_attention == "on" or (options.flash_attention == "auto" and kv != "fp32")
    return [program, "--model", file, "--host", "127.0.0.1", "--port", str(options.port), "--alias", "model", "--offline", "--no-webui",
            "--threads", str(options.threads), "--threads-batch", str(options.threads), "--gpu-layers", "0", "--fit", "off",
            "--parallel", str(options.rows), "--ctx-size", str(options.rows * options.context), "--kv-unified" if options.kv_unified == "on" else "--no-kv-unified",
            "--batch-size", str(LOGICAL_BATCH), "--ubatch-size", str(options.ubatch),
            "--flash-attn", "on" if fused else "off", "--cache-type-k", TYPES[kv], "--cache-type-v", TYPES[kv],
            "--no-cache-prompt", "--cache-ram", "0", "--ctx-checkpoints", "0", "--no-context-shift", "--samplers", "top_k", "--top-k", "1"]


def variables(options):
    return {"OMP_NUM_THREADS": str(options.threads)}


def main():
    program, *words = sys.argv[1:]
    parser = parser_of("llama_cpp")
    switch = {"choices": ["on", "off"]}
    parser.add_argument("--flash-attention", choices=["auto", "on", "off"], default="auto", help="as the worker's")
    parser.add_argument("--kv", choices=list(TYPES), help="dtype of keys and values; --dtype's where nothing is said")
    parser.add_argument("--kv-unified", default="off", help="one cache for all rows instead of one each (default off)", **switch)
    parser.add_argument("--ubatch", type=int, default=512, help="most tokens in one pass through the model (default 512, as llama.cpp's)")
    parser.add_argument("--weights", choices=["dtype", "file"], default="dtype", help="as the worker's: file serves a GGUF file as it is, with the words of its own vocabulary")
    options, checkpoint, theirs = parse(parser, words)
    if options.weights == "file":
        if not checkpoint.gguf:
            parser.error(f"--weights file serves a GGUF file, and {options.model} is none")
        file = checkpoint.folder
    else:
        from gguf_file import converted_file

        file = converted_file(checkpoint, options.dtype)
    become([*command(program, file, options), *theirs], variables(options))


if __name__ == "__main__":
    sys.exit(main())
