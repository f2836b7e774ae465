"""A small driver of the worker protocol: starts a worker with descriptors 3 and 4, sends requests and reads replies."""

import fcntl
import json
import os
import struct
import subprocess

ROOT = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
PEERS = os.path.join(ROOT, "tools", "peers")
WARMUP = {"minimum_ns": 1000, "window": 8, "quiet_share": 0.5, "slow_step_ns": 500_000_000, "maximum_steps": 10}


def pipe():
    """Both ends of a pipe, above the descriptors 3 and 4 that a worker gets."""
    low = os.pipe()
    ends = [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in low]
    for end in low:
        os.close(end)
    return ends


class Worker:
    """A worker's process. `command` is a list; its stdout and stderr go to the file object `log`, where one is given."""

    def __init__(self, command, log=subprocess.DEVNULL, **environment):
        request_end, self_write = pipe()
        self_read, reply_end = pipe()
        # bash moves the pipes to 3 and 4, as the runner's own child does before it starts a command.
        words = ["bash", "-c", f'exec 3<&{request_end} 4>&{reply_end} {request_end}<&- {reply_end}>&-; exec "$@"', "bash", *command]
        self.process = subprocess.Popen(words, pass_fds=(request_end, reply_end), stdout=log, stderr=log, env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1", **environment})
        os.close(request_end)
        os.close(reply_end)
        self.requests, self.replies = os.fdopen(self_write, "wb"), os.fdopen(self_read, "rb")

    def send(self, line):
        """Sends bytes as they are, and returns the reply's object, None where the worker ended instead."""
        self.requests.write(line + b"\n")
        self.requests.flush()
        reply = self.replies.readline()
        return json.loads(reply) if reply else None

    def ask(self, request, **keys):
        return self.send(json.dumps({"request": request, **keys}).encode())

    def load(self, model, dtype="fp32"):
        return self.ask("load", model=model, dtype=dtype, device="cpu", threads=1, seed=1)

    def close(self):
        """Ends the requests and returns the exit code."""
        self.requests.close()
        code = self.process.wait(timeout=60)
        self.replies.close()
        return code


def prepare(prompts, phase="decode", room=8, max_tokens=8, dtype="fp32", samples=1, sampling=None, **changes):
    """The keys of a prepare request for these prompts; further changes are those of its cell."""
    cell = {"phase": phase, "batch": len(prompts), "length": len(prompts[0]), "dtype": dtype, "device": "cpu", "threads": 1,
            "scope": "generate" if phase == "generate" else "step", "fill": "generated", "steps": 8, **changes}
    return {"cell": cell, "max_tokens": max_tokens, "room": room, "prompts": prompts, "samples": samples, "sampling": sampling}


def read_logits(reply, rows):
    """The logits file of an outputs reply as nested lists [steps][rows][vocabulary]; the file is deleted, as the runner does."""
    with open(reply["logits_file"], "rb") as file:
        data = file.read()
    os.unlink(reply["logits_file"])
    values, width = struct.unpack(f"<{len(data) // 4}f", data), reply["vocabulary"]
    lines = [list(values[start : start + width]) for start in range(0, len(values), width)]
    return [lines[start : start + rows] for start in range(0, len(lines), rows)]
