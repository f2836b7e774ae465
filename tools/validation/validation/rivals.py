"""Rules that other tools publish, restated, on data of their own schedule: all of A in one process, then all of B in another."""

import functools
import pathlib
import tempfile
import time

import numpy
from scipy import stats

from . import program
from .loads import load
from .power import ARM, pilot
from .statistics_values import alarms, contrasts, visit_mean
from .trials import Trials

REPETITIONS = 9
SLOW = 0.03
# Of decodelab's own sweep of the three arms: the fewest that carry a verdict.
LAUNCHES = 6


def criterion(a, b):
    """criterion.rs: bootstrap of the relative change of means; a change where p < .05 and its interval leaves +-1 %."""
    random = numpy.random.default_rng(1)
    a, b = numpy.asarray(a), numpy.asarray(b)
    changes = random.choice(b, (2000, len(b))).mean(axis=1) / random.choice(a, (2000, len(a))).mean(axis=1) - 1
    low, high = numpy.quantile(changes, [0.025, 0.975])
    return bool(stats.ttest_ind(a, b, equal_var=False).pvalue < 0.05 and (low > 0.01 or high < -0.01))


def google_benchmark(a, b):
    """google-benchmark's compare.py: Mann-Whitney U on repetitions, alpha .05, at least 9 of them."""
    return bool(stats.mannwhitneyu(a, b, alternative="two-sided").pvalue < 0.05)


def nvbench(a, b):
    """nvbench_compare: the difference of the means beyond the smaller of both relative standard deviations."""
    noise = min(numpy.std(a, ddof=1) / numpy.mean(a), numpy.std(b, ddof=1) / numpy.mean(b))
    return bool(abs(numpy.mean(b) / numpy.mean(a) - 1) > noise)


def llama_bench(a, b):
    """llama-bench prints mean +- standard deviation of 5 repetitions; read as people do: a change where the two do not overlap."""
    a, b = a[:5], b[:5]
    return bool(abs(numpy.mean(a) - numpy.mean(b)) > numpy.std(a, ddof=1) + numpy.std(b, ddof=1))


RULES = {"criterion": criterion, "google-benchmark compare.py": google_benchmark, "nvbench_compare": nvbench, "llama-bench": llama_bench}


def _repetitions(cell, arm, seed, folder):
    """Visit means of one process that runs one arm: two visits a block."""
    store = pathlib.Path(folder) / "r.sqlite"
    store.unlink(missing_ok=True)
    program.run("sweep", *cell, "--arm", arm, "--launches", 1, "--blocks", (REPETITIONS + 1) // 2, "--seed", seed, "--store", store)
    return [visit_mean(row[-1]) for row in program.visits(store, 1)][:REPETITIONS]


def _ours(cell, slow, seed, folder):
    """Contrasts by launch of the arm with itself and with the slow one, of a sweep by decodelab's own schedule."""
    store = pathlib.Path(folder) / "o.sqlite"
    program.run("sweep", *cell, "--arm", ARM, "--arm", slow, "--null-arm", "--launches", LAUNCHES, "--blocks", 1, "--seed", seed, "--store", store)
    rows = program.visits(store, 1)
    return {"ours_same": list(contrasts(rows, ARM, f"null:{ARM}").values()), "ours_slow": list(contrasts(rows, ARM, slow).values())}


def collect(out, name, pairs, keep_going):
    trials = Trials(out, f"rivals-{name}")
    piloted = functools.cache(pilot)
    with load(name):
        while trials.another(pairs, keep_going):
            found = piloted()
            with tempfile.TemporaryDirectory() as folder:
                seed = 1 + len(trials)
                slow_arm = f"slow-{round(SLOW * found.step_ns)}:{ARM}"
                start = time.monotonic()
                a, same, slow = (_repetitions(found.cell, arm, seed, folder) for arm in (ARM, ARM, slow_arm))
                between = time.monotonic()
                ours = _ours(found.cell, slow_arm, seed, folder)
                end = time.monotonic()
            trials.add(a=a, same=same, slow=slow, seconds=between - start, **ours, ours_seconds=end - between)
    return trials


def judge(trials, pairs, name):
    rows = trials.rows[:pairs]

    def line(rule, false, missed, seconds):
        took = f" of {numpy.mean([row[seconds] for row in rows]):.0f} s" if rows else ""
        return {"what": f"{rule}, {name}: false alarms, and misses of +{100 * SLOW:.0f} %, in {len(rows)} pairs{took}", "seen": f"{false}, {missed}",
                "target": "none: rules side by side", "ok": True if len(rows) == pairs else None}

    ours = line(f"decodelab, {LAUNCHES} launches", sum(alarms(row["ours_same"]) for row in rows), sum(not alarms(row["ours_slow"]) for row in rows), "ours_seconds")
    return [ours] + [line(rule, sum(changed(row["a"], row["same"]) for row in rows), sum(not changed(row["same"], row["slow"]) for row in rows), "seconds")
                     for rule, changed in RULES.items()]
