"""What decodelab says, beside clocks that are not its own: hyperfine, llama-bench, `vllm bench serve`, and the wall clock around an injected sleep."""

import argparse
import json
import math
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

from . import paced_server, program, served
from .statistics_values import t_interval, visit_mean
from .table import markdown

ROOT = pathlib.Path(__file__).resolve().parents[3]
LLAMA = ROOT / ".peers/llama_cpp"
PROMPT = 128
FEW, MANY = 9, 73
SLEEP_NS = 20_000_000
# Seconds after which a server that computes nothing sends the first token, and each one more.
PACED_FIRST_S, PACED_TOKEN_S = 0.2, 0.02
# What llama-bench calls them.
PHASES = {"pp": "prefill", "tg": "decode"}
# A process's start, a warm-up and a machine's moods lie between two clocks; the limit for a peer's own tool is 2 %.
LIMITS = {"generate": 0.05, "sleep": 0.02, "blocks": 0.05, "llama-bench": 0.02, "vllm-bench": 0.02}
# What the worker over HTTP calls a server that speaks as vLLM's does.
SERVED_VLLM = "openai-server"


def row(check, what, external, ours, limit):
    """`external` and `ours` are lists, read in turn. Within the limit: ok; beyond it for sure (95 %, Student's t over rounds): not; else undecided."""
    logs = [math.log(own / other) for own, other in zip(ours, external, strict=True)]
    mean, edge = statistics.mean(logs), math.log1p(limit)
    low, high = t_interval(logs) if len(logs) > 1 else (mean, mean)
    ok = True if abs(mean) <= edge else False if low > edge or high < -edge else None
    return {"check": check, "what": what, "external": statistics.mean(external), "ours": statistics.mean(ours), "ratio": f"{math.exp(mean):.4f} [{math.exp(low):.4f}, {math.exp(high):.4f}]",
            "verdict": {True: "ok", False: "**differs**", None: "undecided"}[ok] + f" (within {limit:.0%})", "ok": ok}


def missing(check, why):
    return {"check": check, "what": why, "verdict": "not run", "ok": None}


def sweep_mean(model, arguments, arm):
    """Mean step of an arm, nanoseconds, over all visits of a small sweep."""
    return statistics.mean(visit_mean(samples) for samples in sweep_samples(model, arguments, arm))


def sweep_samples(model, arguments, arm):
    """The steps of each visit of the arm."""
    with tempfile.TemporaryDirectory() as folder:
        store = pathlib.Path(folder) / "s.sqlite"
        program.run("sweep", "-m", model, *arguments, "--store", store)
        return [visit[-1] for visit in program.visits(store, 1) if visit[3] == arm]


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
    return [row("generate", f"a token of generate, {dtype}, hyperfine's difference of {MANY} and {FEW} tokens", external, ours, LIMITS["generate"])]


def slowed(model, label, blocks):
    """Seconds by the wall clock outside; seconds of steps and warm-ups that the store holds; mean added time of a step, nanoseconds."""
    with tempfile.TemporaryDirectory() as folder:
        store = pathlib.Path(folder) / "s.sqlite"
        start = time.monotonic()
        # One thread: a second one falls asleep meanwhile, and to wake it is a cost of its own. A model that no cache holds, for the same reason.
        program.run("sweep", "-m", model, "--arm", "bigcode", "--arm", label, "--phase", "decode", "--length", 64, "--threads", 1, "--launches", 1, "--blocks", blocks,
                    "--store", store)
        wall = time.monotonic() - start
        visits = program.visits(store, 1)
        warm = program.query(store, "SELECT sum(warmup_steps * wall_ns * 8.0 / length(samples_ns)) FROM visits")[0][0]
    means = {arm: statistics.mean(visit_mean(visit[-1]) for visit in visits if visit[3] == arm) for arm in ("bigcode", label)}
    return wall, 1e-9 * (sum(sum(visit[-1]) for visit in visits) + warm), means[label] - means["bigcode"]


def sleep(model, rounds):
    """Eight blocks less two, in one process: what the wall clock outside says that they took, and what the store says."""
    label = f"slow-{SLEEP_NS}:bigcode"
    added, walls, inside = [], [], []
    for _ in range(rounds):
        few, many = slowed(model, label, 2), slowed(model, label, 8)
        walls.append(1e9 * (many[0] - few[0]))
        inside.append(1e9 * (many[1] - few[1]))
        added.append(many[2])
    return [row("sleep", "a sleep of 20 ms in each step, by decodelab's own difference of two arms", [SLEEP_NS] * rounds, added, LIMITS["sleep"]),
            row("sleep", "six blocks by the wall clock outside, and the steps and warm-ups that the store holds (the rest is not timed)", walls, inside, LIMITS["blocks"])]


def llama_bench(model, dtype, rounds):
    tool = LLAMA / "build/bin/llama-bench"
    if not tool.exists():
        return [missing("llama-bench", "llama-bench is not here: tools/peers/environment llama_cpp --bench")]
    sys.path.insert(0, str(ROOT / "tools/peers"))
    from checkpoint import cache_folder  # of tools/peers, which has no package
    # The tool keeps keys and values in 16 bits or fewer; so does the worker here, both with the fused attention.
    worker = ["--worker", f"lc='{ROOT}/tools/peers/run' llama_cpp --kv fp16 --flash-attention on", "--dtype", dtype, "--batch", 1, "--length", PROMPT, "--launches", 2, "--blocks", 2]
    ours, external = {"pp": [], "tg": []}, {"pp": [], "tg": []}
    for _ in range(rounds):
        for name, phase in PHASES.items():
            samples = sweep_samples(model, [*worker, "--phase", phase], "lc")
            ours[name].append(statistics.mean(map(visit_mean, samples)))
        steps = str(len(samples[0]))  # the tool decodes over the same lengths
        # The worker's own file is the one that was asked for last, not the one that was written last.
        file = max(pathlib.Path(cache_folder()).rglob("*.gguf"), key=lambda each: each.parent.stat().st_mtime)
        shared = [tool, "-m", file, "-t", str(program.threads()), "-fa", "on", "-o", "json", "-r", "5"]
        for name, arguments in (("pp", ["-p", str(PROMPT), "-n", "0"]), ("tg", ["-p", "0", "-n", steps, "-d", str(PROMPT)])):
            result = subprocess.run([*map(str, shared), *arguments], check=True, capture_output=True, text=True)
            [entry] = json.loads(result.stdout)
            external[name].append(entry["avg_ns"] if name == "pp" else entry["avg_ns"] / entry["n_gen"])
    return [row("llama-bench", f"{name}{PROMPT} of llama.cpp, {dtype}: its own tool, and our worker", external[name], ours[name], LIMITS["llama-bench"])
            | {"engine": "llama.cpp", "phase": phase, "dtype": dtype} for name, phase in PHASES.items()]


def vllm_bench(model, dtype, rounds):
    """Asked in turn by the benchmark tool that vLLM's wheel brings and by our worker, one row at a time: a server whose tokens come at known times, which tells the clients' clocks apart, and vLLM's."""
    if not served.VLLM.exists():
        return [missing("vllm-bench", "vLLM is not here: tools/peers/environment vllm")]
    path = served.path_of(model, dtype)
    sys.path.insert(0, str(ROOT / "tools/peers"))
    from checkpoint import Checkpoint  # of tools/peers, which has no package
    from server_arguments import path_of
    from vllm_model import model_folder

    folder = model_folder(Checkpoint(path_of(path)))
    rows = []
    for server, about, whose in ((paced_server.serving(PACED_FIRST_S, PACED_TOKEN_S), {}, f"of a server that sends them after {PACED_FIRST_S:g} and {PACED_TOKEN_S:g} s"),
                                 (served.serving("vllm", path, dtype), {"engine": SERVED_VLLM, "dtype": dtype}, f"of vLLM's server, {dtype}")):
        ours, external = {"prefill": [], "decode": []}, {"prefill": [], "decode": []}
        with server as url:
            for seed in range(rounds):
                first, token, steps = served.by_ours(url, model, dtype, PROMPT, sweep_samples)
                its = served.by_its_own_tool(url, folder, PROMPT, steps + 1, seed)
                for phase, own, other in zip(ours, (first, token), its, strict=True):
                    ours[phase].append(own)
                    external[phase].append(other)
        words = {"prefill": f"the first token after {PROMPT}", "decode": "a token more"}
        rows += [row("vllm-bench", f"{words[phase]} {whose}: vLLM's own tool, and our worker over HTTP", external[phase], ours[phase], LIMITS["vllm-bench"]) | ({**about, "phase": phase} if about else {})
                 for phase in words]
    return rows


def keep(path, rows):
    """What was seen of engines' own tools, for pages that say which worker is validated; what was seen before of the same engine, phase and dtype is replaced."""
    def about(each):
        return each["engine"], each["phase"], each["dtype"]

    new = {about(each) for each in rows if "engine" in each}
    others = [each for each in json.loads(path.read_text()) if about(each) not in new] if path.exists() else []
    seen = [{key: each[key] for key in ("engine", "phase", "dtype", "ratio", "ok")} | {"where": f"{program.processor()}, {program.build()}"} for each in rows if "engine" in each]
    path.write_text(json.dumps(others + seen, indent=1) + "\n")


CHECKS = {"generate": generate, "sleep": lambda model, _, rounds: sleep(model, rounds), "llama-bench": llama_bench, "vllm-bench": vllm_bench}


def main():
    parser = argparse.ArgumentParser(prog="tools/cross_check", description=__doc__)
    parser.add_argument("-m", "--model", default="synthetic:tiny-starcoder", help="a checkpoint directory, or synthetic:NAME (default: %(default)s)")
    parser.add_argument("--dtype", default="fp32", choices=["fp32", "bf16"])
    parser.add_argument("--rounds", type=int, default=3, help="times that each pair of clocks is read, in turn (default: %(default)s)")
    parser.add_argument("--only", action="append", choices=list(CHECKS), help="only this check; repeat for more")
    parser.add_argument("--out", help="also write the table into this file under the repository, as Markdown, and what it says of engines' own tools into cross_check.json beside it, where what was seen of others is kept")
    arguments = parser.parse_args()
    rows = [each for name, check in CHECKS.items() if not arguments.only or name in arguments.only for each in check(arguments.model, arguments.dtype, arguments.rounds)]
    if not arguments.only:
        rows += [missing("peers' tools", "Transformers and CTranslate2 bring no benchmark tool in their wheels")]
    text = markdown(["check", "what", "external", "decodelab", "ratio", ""],
                    [[each["check"], each["what"], *(["-"] * 3 if "ratio" not in each else [f"{each['external'] / 1e6:.3f} ms", f"{each['ours'] / 1e6:.3f} ms", each["ratio"]]), each["verdict"]] for each in rows])
    only = "".join(f" --only {name}" for name in arguments.only or ())
    text += f"\nPrinted by `tools/cross_check -m {arguments.model} --dtype {arguments.dtype} --rounds {arguments.rounds}{only}` on {program.processor()}, {program.build()}.\n"
    if arguments.out:
        out = ROOT / arguments.out
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(text)
        keep(out.with_name("cross_check.json"), rows)
    print(text, end="")
    verdicts = [each["ok"] for each in rows]
    return 1 if False in verdicts else 0 if True in verdicts else 3


if __name__ == "__main__":
    sys.exit(main())
