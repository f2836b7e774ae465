"""What the harness itself costs: the share of a sweep's time that is neither a timed step nor warm-up, and of an empty step."""

import json
import pathlib
import re
import subprocess
import tempfile

from . import power, program
from .trials import Trials

MOST = 0.25
MOST_NS = 100
# A sweep of ordinary size, at the batch whose step takes some 5 ms here in the middle of the lengths.
LENGTHS = "256-1024+256"
PILOT = {"arm": "bigcode", "batches": "8,16,24,32,48", "length": "512"}
SWEEP = ["--arm", "causal", "--arm", "bigcode", "--launches", 5, "--blocks", 2]


def collect(out, keep_going):
    trials = Trials(out, "overhead")
    if trials.another(1, keep_going):
        with tempfile.TemporaryDirectory() as folder:
            store = pathlib.Path(folder) / "o.sqlite"
            printed = program.run_with_messages("sweep", *power.cell(power.pilot(**PILOT).batch, LENGTHS), *SWEEP, "--store", store)
            steps = [ns for visit in program.visits(store, 1) for ns in visit[-1]]
        timed, warm = (float(re.search(rf"([\d.]+) % {word}", printed).group(1)) / 100 for word in ("timed steps", "warm-up"))
        benchmark = pathlib.Path(program.PROGRAM).parent / "harness_benchmark"
        result = subprocess.run([benchmark, "--benchmark_format=json", "--benchmark_repetitions=9"], check=True, capture_output=True, text=True)
        empty = [1e9 / run["items_per_second"] for run in json.loads(result.stdout)["benchmarks"] if run.get("aggregate_name") == "median"]
        trials.add(timed=timed, warm=warm, step_ms=1e-6 * sum(steps) / len(steps), empty_ns=empty[0])
    return trials


def judge(trials):
    if not trials.rows:
        return [{"what": "share of a sweep outside of steps and warm-up", "seen": "-", "target": f"under {MOST:.0%}", "ok": None}]
    row = trials.rows[0]
    share = 1 - row["timed"] - row["warm"]
    return [
        {"what": f"share of a sweep outside of steps and warm-up, {row['step_ms']:.1f} ms a step", "seen": f"{share:.1%}", "target": f"under {MOST:.0%} at 5 ms", "ok": share < MOST},
        {"what": "added time of an empty step (harness_benchmark, median of 9)", "seen": f"{row['empty_ns']:.0f} ns", "target": f"under {MOST_NS} ns", "ok": row["empty_ns"] < MOST_NS},
    ]
