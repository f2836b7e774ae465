"""Rules that other tools publish, restated, on data of their own schedule: all of A in one process, then all of B in another."""

import functools
import pathlib
import tempfile

import numpy
from scipy import stats

from . import program
from .loads import load
from .power import ARM, CELL, pilot
from .statistics_values import visit_mean
from .trials import Trials

REPETITIONS = 9
SLOW = 0.03


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


def _repetitions(arm, seed, folder):
    """Visit means of one process that runs one arm: two visits a block."""
    store = pathlib.Path(folder) / "r.sqlite"
    store.unlink(missing_ok=True)
    program.run("sweep", *CELL, "--arm", arm, "--launches", 1, "--blocks", (REPETITIONS + 1) // 2, "--seed", seed, "--store", store)
    return [visit_mean(row[-1]) for row in program.visits(store, 1)][:REPETITIONS]


def collect(out, name, pairs, keep_going):
    trials = Trials(out, f"rivals-{name}")
    piloted = functools.cache(pilot)
    with load(name):
        while len(trials) < pairs and keep_going():
            step_ns, _ = piloted()
            with tempfile.TemporaryDirectory() as folder:
                seed = 1 + len(trials)
                a, same = _repetitions(ARM, seed, folder), _repetitions(ARM, seed, folder)
                slow = _repetitions(f"slow-{round(SLOW * step_ns)}:{ARM}", seed, folder)
            trials.add(a=a, same=same, slow=slow)
    return trials


def judge(trials, pairs, name):
    rows = trials.rows[:pairs]
    result = []
    for rule, changed in RULES.items():
        false = sum(changed(row["a"], row["same"]) for row in rows)
        missed = sum(not changed(row["same"], row["slow"]) for row in rows)
        result.append({"what": f"{rule}, {name}: false alarms, and misses of +{100 * SLOW:.0f} %, in {len(rows)} pairs", "seen": f"{false}, {missed}",
                       "target": "beside ours", "ok": True if len(rows) == pairs else None})
    return result
