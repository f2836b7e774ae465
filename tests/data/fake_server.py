"""A server of completions that computes nothing, in both forms that `decodelab worker` asks: each token follows from the one before it.

usage: fake_server.py --port PORT [--dies-after N] [--hangs-after N] [--bundle N] [--shows-no-ids] [--program DECODELAB --model MODEL]

With --program the first prompt that comes is completed by that program, so that its tokens are the reference's.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import threading
import time
from http.server import ThreadingHTTPServer

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools/validation/validation"))
from paced_server import StreamHandler  # noqa: E402

VOCABULARY = 97
# As many tokens of the first prompt as any check asks for.
KNOWN_TOKENS = 40

parser = argparse.ArgumentParser()
parser.add_argument("--port", type=int, required=True)
parser.add_argument("--dies-after", type=int, default=None, help="completions, in the next of which the server dies")
parser.add_argument("--hangs-after", type=int, default=None)
parser.add_argument("--bundle", type=int, default=1, help="tokens of an event")
parser.add_argument("--shows-no-ids", action="store_true")
parser.add_argument("--program")
parser.add_argument("--model")
options = parser.parse_args()

lock = threading.Lock()
completions = 0
known = {}  # the first prompt, and what the program says behind it


def ids_behind(prompt, tokens):
    with lock:
        if options.program and not known:
            command = [options.program, "generate", "-m", options.model, "--prompt-ids", ",".join(map(str, prompt)), "--max-tokens", str(KNOWN_TOKENS), "--ignore-eos",
                       "--threads", "1", "-o", "json"]
            answer = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
            known[tuple(prompt)] = answer["completions"][0]["token_ids"]
    ids = list(known.get(tuple(prompt), ()))[:tokens]
    last = ids[-1] if ids else prompt[-1]
    while len(ids) < tokens:
        last = (7 * last + 3) % VOCABULARY
        ids.append(last)
    return ids


class Handler(StreamHandler):
    def do_GET(self):
        self.answer_path({"/health": {}, "/v1/models": {"data": [{"id": "fake"}]}, "/version": {"version": "1.0"}, "/props": {"build_info": "b1"}})
        self.close_connection = True

    def do_POST(self):
        global completions
        request = self.asked()
        self.close_connection = True
        with lock:
            number = completions
            completions += 1
        openai = self.path == "/v1/completions"
        ids = ids_behind(request["prompt"], request["max_tokens" if openai else "n_predict"])
        if not request["stream"]:
            self.answer(200, {"tokens": ids, "stop": True, "stop_type": "limit", "tokens_predicted": len(ids)})
            return
        self.begin_events()
        for at in range(0, len(ids), options.bundle):
            if at > 0:
                time.sleep(0.001)
            some = ids[at:at + options.bundle]
            finish = "length" if at + options.bundle >= len(ids) else None
            shown = {} if options.shows_no_ids else {"token_ids" if openai else "tokens": some}
            if openai:
                self.event(json.dumps({"choices": [{"index": 0, "text": "x", "finish_reason": finish, **shown}]}))
            else:
                self.event(json.dumps({"content": "x", "stop": False, "tokens_predicted": at + len(some), **shown}))
            if options.dies_after is not None and number >= options.dies_after:
                print("the fake server ran out of patience", flush=True)
                os._exit(3)
            if options.hangs_after is not None and number >= options.hangs_after:
                time.sleep(3600)
        if openai:
            self.event(json.dumps({"choices": [], "usage": {"completion_tokens": len(ids)}}))
            self.event("[DONE]")
        else:
            self.event(json.dumps({"tokens": [], "stop": True, "stop_type": "limit", "tokens_predicted": len(ids)}))
        self.end_events()


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128


Server(("127.0.0.1", options.port), Handler).serve_forever()
