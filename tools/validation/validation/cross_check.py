"""What decodelab says, beside clocks that are not its own: hyperfine, llama-bench, and the wall clock around an injected sleep."""

import argparse
import json
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

from . import program
from .statistics_values import visit_mean
from .table import markdown

ROOT = pathlib.Path(__file__).resolve().parents[3]
LLAMA = ROOT / ".peers/llama_cpp"
PROMPT = 128
FEW, MANY = 9, 73
SLEEP_NS = 20_000_000
# A process's start, a warm-up and a machine's moods lie between two clocks; the limit for a peer's own tool is 2 %.
LIMITS = {"generate": 0.05, "sleep": 0.02, "llama-bench": 0.02}


def row(check, what, external, ours, limit):
    ratio = ours / external
    return {"check": check, "what": what, "external": external, "ours": ours, "ratio": ratio, "ok": abs(ratio - 1) <= limit, "limit": limit}


def missing(check, why):
    return {"check": check, "what": why, "ok": None}


def sweep_mean(model, arguments, arm):
    """Mean step of an arm, nanoseconds, over all visits of a small sweep."""
    with tempfile.TemporaryDirectory() as folder:
        store = pathlib.Path(folder) / "s.sqlite"
        program.run("sweep", "-m", model, *arguments, "--store", store)
        values = [visit_mean(visit[-1]) for visit in program.visits(store, 1) if visit[3] == arm]
    return statistics.mean(values)


def generate(model, dtype, rounds):
    """Seconds of one token: the difference of two completions by hyperfine, and decode cells that step over the same lengths."""
    if shutil.which("hyperfine") is None:
        return [missing("generate", "hyperfine is not here: apt-get install hyperfine")]
    prompt = ",".join(str(1 + index % 90) for index in range(PROMPT))
    external, ours = [], []
    for _ in range(rounds):
        commands = [f"'{program.PROGRAM}' generate -m {model} --arm bigcode --dtype {dtype} --prompt-ids {prompt} --max-tokens {tokens} --ignore-eos" for tokens in (FEW, MANY)]
        with tempfile.NamedTemporaryFile(suffix=".json") as file:
            subprocess.run(["hyperfine", "--style", "none", "--warmup", "1", "--runs", "4", "--export-json", file.name, *commands], check=True, stdout=subprocess.DEVNULL)
            few, many = (result["median"] for result in json.load(file)["results"])
        external.append(1e9 * (many - few) / (MANY - FEW))
        # The first token comes with the prefill, so that the steps lie from PROMPT + FEW - 1 on.
        ours.append(sweep_mean(model, ["--arm", "bigcode", "--dtype", dtype, "--phase", "decode", "--length", PROMPT + FEW - 1, "--fill", "generated", "--launches", 1, "--blocks", 2],
                               "bigcode"))
    return [row("generate", f"a token of generate, {dtype}, hyperfine's difference of {MANY} and {FEW} tokens", statistics.mean(external), statistics.mean(ours), LIMITS["generate"])]


def sleep():
    """Twelve blocks less two, in one process: what the wall clock outside says that they took, and what the store says."""
    label = f"slow-{SLEEP_NS}:bigcode"
    walls, inside, means = [], [], []
    for blocks in (2, 12):
        with tempfile.TemporaryDirectory() as folder:
            store = pathlib.Path(folder) / "s.sqlite"
            start = time.monotonic()
            program.run("sweep", "-m", "synthetic:tiny", "--arm", "bigcode", "--arm", label, "--phase", "decode", "--length", 64, "--launches", 1, "--blocks", blocks, "--store", store)
            walls.append(time.monotonic() - start)
            visits = program.visits(store, 1)
            warm = program.query(store, "SELECT sum(warmup_steps * wall_ns * 8.0 / length(samples_ns)) FROM visits")[0][0]
        inside.append(1e-9 * (sum(sum(visit[-1]) for visit in visits) + warm))
        means.append({arm: statistics.mean(visit_mean(visit[-1]) for visit in visits if visit[3] == arm) for arm in ("bigcode", label)})
    added = means[1][label] - means[1]["bigcode"]
    return [row("sleep", "a sleep of 20 ms in each step, by decodelab's own difference of two arms", SLEEP_NS, added, LIMITS["sleep"]),
            row("sleep", "ten blocks by the wall clock outside, and the steps and warm-ups that the store holds (the rest is not timed)", 1e9 * (walls[1] - walls[0]),
                1e9 * (inside[1] - inside[0]), 0.1)]


def llama_bench(model, dtype, rounds):
    tool = LLAMA / "build/bin/llama-bench"
    if not tool.exists():
        return [missing("llama-bench", "llama-bench is not here: tools/peers/environment llama_cpp --bench")]
    sys.path.insert(0, str(ROOT / "tools/peers"))
    from checkpoint import cache_folder  # of tools/peers, which has no package
    worker = ["--worker", f"lc='{ROOT}/tools/peers/run' llama_cpp", "--dtype", dtype, "--batch", 1, "--length", PROMPT, "--launches", 2, "--blocks", 2]
    ours, external = {"pp": [], "tg": []}, {"pp": [], "tg": []}
    for _ in range(rounds):
        for name, phase in (("pp", "prefill"), ("tg", "decode")):
            ours[name].append(sweep_mean(model, [*worker, "--phase", phase], "lc"))
        files = sorted(pathlib.Path(cache_folder()).rglob("*.gguf"), key=lambda file: file.stat().st_mtime)
        flash = "0" if dtype == "fp32" else "1"
        kind = {"fp32": "f32", "bf16": "bf16", "fp16": "f16"}[dtype]
        shared = [tool, "-m", files[-1], "-t", str(program.threads()), "-fa", flash, "-ctk", kind, "-ctv", kind, "-o", "json", "-r", "5"]
        for name, arguments in (("pp", ["-p", str(PROMPT), "-n", "0"]), ("tg", ["-p", "0", "-n", "64", "-d", str(PROMPT)])):
            result = subprocess.run([*map(str, shared), *arguments], check=True, capture_output=True, text=True)
            [entry] = json.loads(result.stdout)
            external[name].append(entry["avg_ns"] if name == "pp" else entry["avg_ns"] / entry["n_gen"])
    return [row("llama-bench", f"{name}{PROMPT} of llama.cpp, {dtype}: its own tool, and our worker", statistics.mean(external[name]), statistics.mean(ours[name]), LIMITS["llama-bench"])
            for name in ("pp", "tg")]


def main():
    parser = argparse.ArgumentParser(prog="tools/cross_check", description=__doc__)
    parser.add_argument("-m", "--model", default="synthetic:tiny-starcoder", help="a checkpoint directory, or synthetic:NAME (default: %(default)s)")
    parser.add_argument("--dtype", default="fp32", choices=["fp32", "bf16"])
    parser.add_argument("--rounds", type=int, default=3, help="times that each pair of clocks is read, in turn (default: %(default)s)")
    parser.add_argument("--out", help="also write the table into this file, as Markdown")
    arguments = parser.parse_args()
    rows = generate(arguments.model, arguments.dtype, arguments.rounds) + sleep() + llama_bench(arguments.model, arguments.dtype, arguments.rounds)
    rows += [missing("peers' tools", "Transformers and CTranslate2 bring no benchmark tool in their wheels")]
    words = {True: "ok", False: "**differs**", None: "not run"}
    text = markdown(["check", "what", "external", "decodelab", "ratio", ""],
                    [[each["check"], each["what"], *(["-"] * 3 if each["ok"] is None else [f"{each['external'] / 1e6:.3f} ms", f"{each['ours'] / 1e6:.3f} ms", f"{each['ratio']:.4f}"]),
                      words[each["ok"]] + ("" if each["ok"] is None else f" (within {each['limit']:.0%})")] for each in rows])
    if arguments.out:
        pathlib.Path(arguments.out).write_text(text)
    print(text, end="")
    verdicts = [each["ok"] for each in rows]
    return 1 if False in verdicts else 0 if True in verdicts else 3


if __name__ == "__main__":
    sys.exit(main())
