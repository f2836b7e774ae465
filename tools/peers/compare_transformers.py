#!/usr/bin/env python3
"""Compares decodelab's arms with Hugging Face Transformers in rounds that alternate: a launch of one, a launch of the other, each a fresh process.

Prints time_ratio = decodelab / Transformers for each cell and arm (below 1 is faster), with its 95 % interval over the rounds. Transformers is timed in its
plain forward loop, without the overhead of generate().

example:
  compare_transformers.py -m CHECKPOINT --dtype fp32 --batch 1,8 --length 128 --threads 2 --rounds 6
"""

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile

from scipy import stats

HERE = os.path.dirname(os.path.abspath(__file__))


def decodelab_round(arguments):
    """Mean step of each (phase, batch, length, arm) in one launch of one block."""
    with tempfile.TemporaryDirectory() as folder:
        command = [arguments.program, "sweep", "-m", arguments.model, "--dtype", arguments.dtype, "--phase", arguments.phase, "--batch", arguments.batch, "--length",
                   arguments.length, "--threads", str(arguments.threads), "--launches", "1", "--blocks", "1", "--store", os.path.join(folder, "s.sqlite"), "-o", "json"]
        for arm in arguments.arm:
            command += ["--arm", arm]
        rows = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)["rows"]
    bad = [row for row in rows if row["status"] != "ok"]
    if bad:
        sys.exit(f"a cell did not run: {bad[0]['status']}: {bad[0]['reason']}")
    return {(row["phase"], row["batch"], row["length"], row["arm"]): row["median_ns"] for row in rows}


def transformers_round(arguments):
    command = [sys.executable, os.path.join(HERE, "transformers_steps.py"), "-m", arguments.model, "--dtype", arguments.dtype, "--phase", arguments.phase, "--batch",
               arguments.batch, "--length", arguments.length, "--threads", str(arguments.threads), "--attention", arguments.attention]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    cells = [json.loads(line) for line in printed.splitlines() if line.startswith("{")]
    return {(cell["phase"], cell["batch"], cell["length"]): statistics.median(cell["samples_ns"]) for cell in cells}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-m", "--model", required=True, help="a checkpoint directory that both can load")
    parser.add_argument("--program", default=os.path.join(HERE, "../../build/release/decodelab"))
    parser.add_argument("--arm", action="append", help="repeatable; causal and bigcode where nothing is said")
    parser.add_argument("--dtype", default="fp32")
    parser.add_argument("--phase", default="prefill,decode")
    parser.add_argument("--batch", default="1,8")
    parser.add_argument("--length", default="128")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--attention", choices=["sdpa", "eager"], default="sdpa")
    parser.add_argument("--rounds", type=int, default=6)
    arguments = parser.parse_args()
    arguments.arm = arguments.arm or ["causal", "bigcode"]
    ours, theirs = [], []
    for number in range(arguments.rounds):
        order = [lambda: ours.append(decodelab_round(arguments)), lambda: theirs.append(transformers_round(arguments))]
        for measure in order if number % 2 == 0 else reversed(order):
            measure()
        print(f"round {number + 1} of {arguments.rounds}", file=sys.stderr)
    print(f"{arguments.dtype}, {arguments.threads} threads, {arguments.rounds} rounds; time ratio decodelab / Transformers ({arguments.attention})")
    print(f"{'cell':<16} {'arm':<10} {'decodelab':>12} {'Transformers':>12}  ratio [95 %]")
    for key in ours[0]:
        logs = [math.log(a[key] / b[key[:3]]) for a, b in zip(ours, theirs)]
        mean = statistics.mean(logs)
        half = stats.t.ppf(0.975, len(logs) - 1) * statistics.stdev(logs) / math.sqrt(len(logs)) if len(logs) > 1 else math.inf
        cell = f"b{key[1]} pp{key[2]}" if key[0] == "prefill" else f"b{key[1]} tg @ d{key[2]}"
        mine, other = statistics.median(a[key] for a in ours) / 1e6, statistics.median(b[key[:3]] for b in theirs) / 1e6
        print(f"{cell:<16} {key[3]:<10} {mine:>9.2f} ms {other:>9.2f} ms  {math.exp(mean):.3f} [{math.exp(mean - half):.3f}, {math.exp(mean + half):.3f}]")


if __name__ == "__main__":
    main()
