"""How often a slow-down of known size is found in a given time, in one process and relaunched."""

import dataclasses
import functools
import json
import math
import pathlib
import statistics
import tempfile
import time

from . import program
from .loads import load
from .statistics_values import contrasts, t_p, visit_mean
from .trials import Trials

# Its steps vary least from one to the next.
ARM = "native"
# What a decode step shall take; the pilot finds the batch.
STEP_NS = 5e6
BATCHES = "32,48,64,80,96"
LENGTH = "64"


def cell(batch, length=LENGTH):
    return ["-m", "synthetic:tiny", "--phase", "decode", "--batch", batch, "--length", length]


# The gate's margin stands far below the slow-down that it must find; one look and its fresh gate blocks are what there is time for.
POLICY = {"margins": {"decode": 0.002}, "level": 0.05, "on_inconclusive": "report"}
# Of the time that is given, what a plan may fill: a host that slows down takes the rest, and what is found too late is not found.
PLANNED = 0.93
# Blocks that no trial's time suffices for.
MANY = 1000


@dataclasses.dataclass(frozen=True)
class Pilot:
    batch: int  # whose step comes nearest to STEP_NS
    step_ns: float

    @property
    def cell(self):
        return cell(self.batch)


def pilot(arm=ARM, batches=BATCHES, length=LENGTH):
    with tempfile.TemporaryDirectory() as folder:
        store = pathlib.Path(folder) / "pilot.sqlite"
        program.run("sweep", *cell(batches, length), "--arm", arm, "--null-arm", "--launches", 1, "--blocks", 2, "--store", store)
        batch_of = dict(program.query(store, "SELECT id, batch FROM cells"))
        means = {}
        for row in program.visits(store, 1):
            means.setdefault(batch_of[row[2]], []).append(visit_mean(row[-1]))
        steps = {batch: sum(values) / len(values) for batch, values in means.items()}
        batch = min(steps, key=lambda one: abs(math.log(steps[one] / STEP_NS)))
    return Pilot(batch, steps[batch])


def step_of(store):
    """What a step of the arm itself took there: the machine's speed drifts, and the next trial's slow-down is a share of this."""
    return statistics.mean(visit_mean(row[-1]) for row in program.visits(store, 1) if row[3] in (ARM, "baseline"))


def in_one_process(out, trials_wanted, keep_going, share=0.005, seconds=30):
    trials = Trials(out, "power-in-process")
    piloted = functools.cache(pilot)
    step_ns = None
    while trials.another(trials_wanted, keep_going):
        found = piloted()
        slow_ns = round(share * (step_ns or found.step_ns))
        slow = f"slow-{slow_ns}:{ARM}"
        with tempfile.TemporaryDirectory() as folder:
            store = pathlib.Path(folder) / "s.sqlite"
            start = time.monotonic()
            program.run_for(PLANNED * seconds, "sweep", *found.cell, "--arm", ARM, "--arm", slow, "--launches", 1, "--blocks", MANY, "--seed", 1 + len(trials), "--store", store)
            took = time.monotonic() - start
            # In one process the block is the unit: each as its own launch.
            step_ns = step_of(store)
            rows = [(block, 0, cell, label, place, samples) for _, block, cell, label, place, samples in program.visits(store, 1)]
            values = list(contrasts(rows, ARM, slow).values())
        trials.add(step_ns=step_ns, slow_ns=slow_ns, blocks=len(values), seconds=took, mean=statistics.mean(values), sd=statistics.stdev(values), p=t_p(values))
    return trials


def relaunched(out, name, trials_wanted, keep_going, share, seconds, look):
    trials = Trials(out, f"power-relaunched-{name}")
    piloted = functools.cache(pilot)
    step_ns = None
    with load(name):
        while trials.another(trials_wanted, keep_going):
            found = piloted()
            slow_ns = round(share * (step_ns or found.step_ns))
            with tempfile.TemporaryDirectory() as folder:
                store = pathlib.Path(folder) / "g.sqlite"
                policy = pathlib.Path(folder) / "policy.json"
                policy.write_text(json.dumps({**POLICY, "looks": [look], "time_budget_s": PLANNED * seconds}))
                start = time.monotonic()
                text, code = program.run("gate", *found.cell, "--baseline-arm", ARM, "--candidate-arm", f"slow-{slow_ns}:{ARM}", "--policy", policy,
                                         "--seed", 1 + len(trials), "--store", store, "-o", "json", allowed=(0, 1, 3, 4))
                took = time.monotonic() - start
                # A gate that finds the cores busy before it begins exits 4 and leaves neither a decision nor a store.
                began = bool(text.strip())
                step_ns = step_of(store) if began else step_ns
            why = "; ".join(problem["words"] for problem in json.loads(text)["problems"]) if began else "other processes kept the cores busy before it began"
            trials.add(step_ns=step_ns, slow_ns=slow_ns, exit=code, why=why, seconds=took)
    return trials


def judge(trials, wanted, needed, what, seconds, found):
    rows = trials.rows[:wanted]
    count = sum(found(row) and row["seconds"] <= seconds for row in rows)
    return [{"what": f"{what}: found within {seconds} s in {len(rows)} trials", "seen": count, "target": f"at least {needed} of {wanted}", "ok": count >= needed if len(rows) == wanted else None}]
