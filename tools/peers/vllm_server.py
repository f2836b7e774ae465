"""Becomes `vllm serve` on the folder and with the settings of vllm_worker.py; tools/peers/serve says how it is called."""

import sys

from server_arguments import become, parse, parser_of
from vllm_model import BATCHED_TOKENS, TORCH_DTYPES, model_folder, variables


def command(program, folder, options):
    """The words of the server: greedy where nothing is said, and nothing kept from one request for another."""
    words = [program, "serve", folder, "--host", "127.0.0.1", "--port", str(options.port), "--served-model-name", "model", "--dtype", TORCH_DTYPES[options.dtype], "--seed", "0",
             "--max-model-len", str(options.context), "--max-num-seqs", str(options.rows), "--max-num-batched-tokens", str(BATCHED_TOKENS), "--no-enable-prefix-caching",
             "--generation-config", "vllm"]
    return [*words, "--enforce-eager"] if options.eager else words


def main():
    program, *words = sys.argv[1:]
    parser = parser_of("vllm")
    parser.add_argument("--eager", action="store_true", help="compile nothing, as the worker's")
    parser.add_argument("--kv-space", type=int, default=1, metavar="GIB", help="memory for keys and values (default 1)")
    options, checkpoint, theirs = parse(parser, words)
    become([*command(program, model_folder(checkpoint), options), *theirs], variables(options.threads, options.kv_space))


if __name__ == "__main__":
    sys.exit(main())
