"""What a gate finds at 0, half, once and twice its margin, by simulation: no measurement, and no noise but the one that is asked for."""

import json
import os
import pathlib
import subprocess

from . import program
from .trials import Trials

# Standard deviations of the contrast of one gate block, which is two launches.
BLOCK_SDS = (0.005, 0.01, 0.02, 0.05)
MARGIN = 0.03
LOOKS = [6, 10, 16, 24]
# Shares of so many gates are good to 1.6 points (standard error).
GATES = 1000
# An unchanged build must not be failed more often; the looks alone promise 0.05.
MOST_FALSE_ALARMS = 0.05


def simulate(queries):
    """The answers of the test program `statistics_values`, which lies beside the program that is validated."""
    simulator = os.environ.get("STATISTICS_VALUES") or pathlib.Path(program.PROGRAM).resolve().parent / "statistics_values"
    asked = "".join(json.dumps(query) + "\n" for query in queries)
    printed = subprocess.run([simulator], input=asked, check=True, capture_output=True, text=True).stdout
    return [json.loads(line) for line in printed.splitlines()]


def collect(out, keep_going):
    trials = Trials(out, "operating")
    while len(trials) < len(BLOCK_SDS) and trials.another(len(BLOCK_SDS), keep_going):
        sd = BLOCK_SDS[len(trials)]
        [points] = simulate([{"what": "operating", "sd": sd, "margin": MARGIN, "looks": LOOKS, "gates": GATES}])
        trials.add(sd=sd, points=points)
    return trials


def judge(trials):
    rows = []
    for row in trials.rows:
        seen = "; ".join(f"{point['effect']:+.1%}: pass {point['pass']:.1%}, fail {point['fail']:.1%}" for point in row["points"])
        rows.append({"what": f"simulated gates, margin {MARGIN:.0%}, blocks apart by {row['sd']:.1%}", "seen": seen,
                     "target": f"fail at +0.0% at most {MOST_FALSE_ALARMS:.0%}", "ok": row["points"][0]["fail"] <= MOST_FALSE_ALARMS})
    return rows or [{"what": "simulated gates", "seen": "-", "target": f"fail at +0.0% at most {MOST_FALSE_ALARMS:.0%}", "ok": None}]
