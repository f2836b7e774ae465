"""A worker whose engine computes nothing: each row's next token follows from its last one, and the model's name says what goes wrong."""

import sys
from array import array

from worker_driver import PEERS

sys.path.insert(0, PEERS)
from worker_engine import StepEngine  # noqa: E402
from worker_protocol import serve  # noqa: E402


def next_token(token):
    return (7 * token + 3) % FakeEngine.vocabulary


class FakeEngine(StepEngine):
    name, version, settings = "fake", "1.0", {"colour": "none"}
    dtypes = ("fp32", "bf16")
    positions, vocabulary = 32, 11
    failures = {"oom": MemoryError("no memory"), "unsupported": NotImplementedError("no such model"),
                "failed": RuntimeError("first line\nsecond line"), "torch-oom": RuntimeError("can't allocate memory")}

    def __init__(self):
        self.log = []  # what was called

    def load(self, model, dtype, device, threads, seed):
        if model in self.failures:
            raise self.failures[model]
        if __name__ == "__main__":
            print("a library's noise on stdout", flush=True)
        return {"threads": threads}

    def prepare(self, cell):
        if cell.length == 13:
            raise MemoryError("thirteen is too long")
        self.cell = cell
        return 64 * cell.batch

    def prefill(self):
        self.log.append("prefill")
        return self.chosen([row[-1] for row in self.cell.prompts])

    def decode(self, tokens):
        self.log.append(("decode", *tokens))
        return self.chosen(tokens)

    def chosen(self, tokens):
        self.last = [next_token(token) for token in tokens]
        return self.last

    def logits(self):
        return array("f", [float(token == column) for token in self.last for column in range(self.vocabulary)])


if __name__ == "__main__":
    sys.exit(serve(FakeEngine()))
