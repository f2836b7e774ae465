"""How often a slow-down of known size is found in a given time, in one process and relaunched."""

import functools
import json
import pathlib
import tempfile
import time

from . import program
from .loads import load
from .statistics_values import contrasts, t_p, visit_mean
from .trials import Trials

ARM = "bigcode"
# A decode step of some 5 ms on two cores; the pilot says what it is here.
CELL = ["-m", "synthetic:tiny", "--phase", "decode", "--batch", "8", "--length", "512"]
# The gate's margin stands far below the slow-down that it must find.
POLICY = {"margins": {"decode": 0.002}, "on_inconclusive": "report"}


def pilot():
    """Nanoseconds of a step, and seconds of a block of two arms."""
    with tempfile.TemporaryDirectory() as folder:
        store = pathlib.Path(folder) / "pilot.sqlite"
        program.run("sweep", *CELL, "--arm", ARM, "--null-arm", "--launches", 1, "--blocks", 2, "--store", store)
        rows = program.visits(store, 1)
        start = time.monotonic()
        program.run("sweep", *CELL, "--arm", ARM, "--null-arm", "--launches", 1, "--blocks", 6, "--store", store)
        six = time.monotonic() - start
        start = time.monotonic()
        program.run("sweep", *CELL, "--arm", ARM, "--null-arm", "--launches", 1, "--blocks", 2, "--store", store)
        two = time.monotonic() - start
    steps = [visit_mean(row[-1]) for row in rows]
    return sum(steps) / len(steps), (six - two) / 4


def in_one_process(out, trials_wanted, keep_going, share=0.005, seconds=30):
    trials = Trials(out, "power-in-process")
    piloted = functools.cache(pilot)
    while len(trials) < trials_wanted and keep_going():
        step_ns, block_s = piloted()
        slow = f"slow-{round(share * step_ns)}:{ARM}"
        with tempfile.TemporaryDirectory() as folder:
            store = pathlib.Path(folder) / "s.sqlite"
            blocks = max(4, int(seconds / block_s))
            start = time.monotonic()
            program.run("sweep", *CELL, "--arm", ARM, "--arm", slow, "--launches", 1, "--blocks", blocks, "--seed", 1 + len(trials), "--store", store)
            took = time.monotonic() - start
            # In one process the block is the unit: each as its own launch.
            rows = [(block, 0, cell, label, place, samples) for _, block, cell, label, place, samples in program.visits(store, 1)]
            values = list(contrasts(rows, ARM, slow).values())
        trials.add(step_ns=step_ns, blocks=len(values), seconds=took, mean=sum(values) / len(values), p=t_p(values))
    return trials


def relaunched(out, name, trials_wanted, keep_going, share, seconds):
    trials = Trials(out, f"power-relaunched-{name}")
    piloted = functools.cache(pilot)
    with load(name):
        while len(trials) < trials_wanted and keep_going():
            step_ns, _ = piloted()
            with tempfile.TemporaryDirectory() as folder:
                policy = pathlib.Path(folder) / "policy.json"
                policy.write_text(json.dumps({**POLICY, "time_budget_s": seconds}))
                start = time.monotonic()
                text, code = program.run("gate", *CELL, "--baseline-arm", ARM, "--candidate-arm", f"slow-{round(share * step_ns)}:{ARM}", "--policy", policy,
                                         "--seed", 1 + len(trials), "--store", pathlib.Path(folder) / "g.sqlite", "-o", "json", allowed=(0, 1, 3, 4))
                took = time.monotonic() - start
            trials.add(step_ns=step_ns, exit=code, seconds=took)
    return trials


def judge(trials, wanted, needed, what, found):
    rows = trials.rows[:wanted]
    count = sum(map(found, rows))
    return [{"what": f"{what}: found in {len(rows)} trials", "seen": count, "target": f"at least {needed} of {wanted}", "ok": count >= needed if len(rows) == wanted else None}]
