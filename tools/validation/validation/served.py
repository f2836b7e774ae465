"""A server of another engine beside two clients: our worker over HTTP, and the benchmark tool that the engine brings."""

import contextlib
import json
import os
import pathlib
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

from . import program

ROOT = pathlib.Path(__file__).resolve().parents[3]
VLLM = ROOT / ".peers/vllm/env/bin/vllm"
PROMPTS = 16  # of the benchmark tool in a round
# Loading and a first compilation; then the server that ends.
START_S, END_S = 400, 30
POLL_S = 0.5
LOG_TAIL = 1000


def path_of(model, dtype):
    """Where a model lies; a synthetic one is made in the cache by the program where it is not there."""
    if not model.startswith("synthetic:"):
        return model
    sys.path.insert(0, str(ROOT / "tools/peers"))
    from kept_state import cache_folder  # of tools/peers, which has no package

    cache, pattern = pathlib.Path(cache_folder()).parent, f"{model.replace(':', '-')}-{dtype}-seed0-*"
    if not list(cache.glob(pattern)):
        program.run("generate", "-m", model, "--dtype", dtype, "--prompt-ids", "1", "--max-tokens", 1)
    return str(max(cache.glob(pattern)))


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


@contextlib.contextmanager
def serving(engine, model, dtype):
    """The address of a server that is up; it ends with the block, and all that it started. A core is left to its other processes and to the client, where there are several: what clients
    say is compared here, and both would differ by who is disturbed."""
    port = free_port()
    threads = max(1, program.threads() - 1)
    with tempfile.TemporaryFile() as log:
        words = [ROOT / "tools/peers/serve", engine, "--model", model, "--dtype", dtype, "--threads", threads, "--port", port]
        with subprocess.Popen([*map(str, words)], stdout=log, stderr=log, start_new_session=True) as server:
            try:
                wait_until_up(server, port, log)
                yield f"http://127.0.0.1:{port}"
            finally:
                end(server)


def wait_until_up(server, port, log):
    limit = time.monotonic() + START_S
    while time.monotonic() < limit:
        if server.poll() is not None:
            break
        with contextlib.suppress(urllib.error.URLError, OSError):
            urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5).close()
            return
        time.sleep(POLL_S)
    log.seek(0)
    said = log.read()[-LOG_TAIL:].decode(errors="replace")
    raise RuntimeError(f"the server was not up within {START_S} s; its log ends:\n{said}")


def end(server):
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(server.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            server.wait(END_S)


def by_its_own_tool(url, folder, prompt, answer, seed):
    """Nanoseconds to the first token and for each token more, medians of `vllm bench serve` over prompts of its own, one at a time: its means are led by a request or two that began late."""
    with tempfile.TemporaryDirectory() as results:
        words = [VLLM, "bench", "serve", "--backend", "openai", "--base-url", url, "--endpoint", "/v1/completions", "--model", folder, "--served-model-name", "model", "--dataset-name", "random",
                 "--random-input-len", prompt, "--random-output-len", answer, "--num-prompts", PROMPTS, "--max-concurrency", 1, "--ignore-eos", "--temperature", 0, "--seed", seed,
                 "--disable-tqdm", "--save-result", "--result-dir", results, "--result-filename", "result.json"]
        done = subprocess.run([*map(str, words)], capture_output=True, text=True, env={**os.environ, "HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1"}, check=False)
        file = pathlib.Path(results) / "result.json"
        if done.returncode or not file.exists():
            raise RuntimeError(f"vllm bench serve ended with {done.returncode}:\n{(done.stdout + done.stderr)[-LOG_TAIL:]}")
        result = json.loads(file.read_text())
    return 1e6 * result["median_ttft_ms"], 1e6 * result["median_tpot_ms"]


def by_ours(url, model, dtype, prompt, sweep_samples):
    """The same by our worker: two cells of one row; and how many tokens more it took."""
    client = ["--worker", f"server={program.PROGRAM} worker --api openai --url {url}", "--scope", "serving", "--dtype", dtype, "--batch", 1, "--length", prompt, "--launches", 2, "--blocks", 2]
    visits = {phase: sweep_samples(model, [*client, "--phase", phase], "server") for phase in ("prefill", "decode")}
    # As the tool's: a visit of decode is a request.
    first = statistics.median(sample for visit in visits["prefill"] for sample in visit)
    more = statistics.median(statistics.mean(visit) for visit in visits["decode"])
    return first, more, len(visits["decode"][0])
