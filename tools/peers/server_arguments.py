"""What the servers of all peers are told, and how one becomes this process."""

import argparse
import os
import sys

from kept_state import cache_folder

DTYPES = ("fp32", "bf16", "fp16")
# Tokens of a row, prompt and answer together, and rows at once, where nothing is said.
CONTEXT, ROWS = 1024, 8


def parser_of(engine):
    """A parser of what every server is told; `--` ends it, and what follows is for the server itself."""
    parser = argparse.ArgumentParser(prog=f"tools/peers/serve {engine}")
    parser.add_argument("--model", required=True, help="a Hugging Face directory, a GGUF file, or smollm2")
    parser.add_argument("--dtype", choices=DTYPES, required=True)
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--rows", type=int, default=ROWS, help=f"requests that are decoded at once; more wait (default {ROWS})")
    parser.add_argument("--context", type=int, default=CONTEXT, help=f"most tokens of a request, prompt and answer (default {CONTEXT}, and never more than the model's positions)")
    return parser


def parse(parser, words):
    """The options, the checkpoint, and the words for the server itself. Ends with a message where they make no sense."""
    from checkpoint import Checkpoint

    own, theirs = (words[: words.index("--")], words[words.index("--") + 1 :]) if "--" in words else (words, [])
    options = parser.parse_args(own)
    for name in ("threads", "port", "rows", "context"):
        if getattr(options, name) < 1:
            parser.error(f"--{name}: expected at least 1, got {getattr(options, name)}")
    options.model = path_of(options.model)
    try:
        checkpoint = Checkpoint(options.model)
    except (OSError, NotImplementedError) as problem:
        parser.error(f"--model: {problem}")
    options.context = min(options.context, checkpoint.config.positions)
    return options, checkpoint, theirs


def path_of(model):
    if model == "smollm2":
        return os.path.join(os.path.dirname(cache_folder()), "smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf")
    return model


def become(command, variables):
    """The server in place of this process, with these variables beside its own."""
    print(" ".join(command), file=sys.stderr, flush=True)
    os.execve(command[0], command, {**os.environ, **variables})
