"""How often decodelab calls a difference between a build and itself: decisions on a bank of real A/A launches, and whole gates."""

import json
import pathlib
import tempfile
import time

from . import program
from .loads import load
from .statistics_values import alarms, contrasts, detectable, sign_flip_p, t_interval, t_p
from .trials import Trials

# Sixteen cells of a small model: decisions by the hundred in an hour, each on launches of its own.
CELLS = ["-m", "synthetic:tiny", "--phase", "decode", "--batch", "1,2", "--length", "16-128+16"]
FEW_CELLS = ["-m", "synthetic:tiny", "--phase", "decode", "--batch", "1", "--length", "16-64+16"]
ARM = "bigcode"
LAUNCHES_OF_A_DECISION = 8
DECISIONS = 600
ALARMS = (20, 41)
COVERED = (559, 580)
POWER = 0.8


def collect_decisions(out, decisions, keep_going, quick):
    """A row for each decision: the contrasts of its launches, one cell, disjoint from all others."""
    trials = Trials(out, "false-alarms")
    while trials.another(decisions, keep_going):
        with tempfile.TemporaryDirectory() as folder:
            store = pathlib.Path(folder) / "bank.sqlite"
            seed = 1 + len(trials)
            program.run("sweep", *(FEW_CELLS if quick else CELLS), "--arm", ARM, "--null-arm", "--launches", LAUNCHES_OF_A_DECISION, "--blocks", 1, "--seed", seed, "--store", store)
            cells = {}
            for (cell, _), value in contrasts(program.visits(store, 1), ARM, f"null:{ARM}").items():
                cells.setdefault(cell, []).append(value)
        for cell, values in cells.items():
            if len(values) == LAUNCHES_OF_A_DECISION:
                trials.add(cell=cell, seed=seed, values=values)
    return trials


def power_at_detectable(rows, index):
    """The share of the other windows of the cell in which the effect that this window prints as detectable is found, once it is added to them."""
    effect = detectable(rows[index]["values"])
    others = [row["values"] for place, row in enumerate(rows) if place != index and row["cell"] == rows[index]["cell"]]
    return sum(alarms([value + effect for value in values]) for values in others) / len(others) if others else None


def judge_decisions(trials, decisions):
    rows = trials.rows[:decisions]
    false = sum(alarms(row["values"]) for row in rows)
    by_t = sum(t_p(row["values"]) <= 0.05 for row in rows)
    by_flips = sum(sign_flip_p(row["values"]) <= 0.05 for row in rows)
    covered = sum(low <= 0 <= high for low, high in (t_interval(row["values"]) for row in rows))
    powers = [power_at_detectable(rows, index) for index in range(len(rows))]
    power = [value for value in powers if value is not None]
    # The bounds are those of 600 decisions; of fewer, only the share is shown.
    whole = len(rows) == DECISIONS
    return [
        {"what": f"alarms in {len(rows)} two-sided decisions on A/A", "seen": f"{false} (t alone {by_t}, sign flips alone {by_flips})", "target": f"{ALARMS[0]} to {ALARMS[1]} of {DECISIONS}",
         "ok": ALARMS[0] <= false <= ALARMS[1] if whole else None},
        {"what": f"95 % intervals of {len(rows)} that cover 0", "seen": covered, "target": f"{COVERED[0]} to {COVERED[1]} of {DECISIONS}",
         "ok": COVERED[0] <= covered <= COVERED[1] if whole else None},
        {"what": f"mean power at the printed detectable effect, {len(power)} windows", "seen": f"{sum(power) / len(power):.3f}" if power else "-", "target": f"at least {POWER}",
         "ok": sum(power) / len(power) >= POWER if whole and power else None},
    ]


GATE = ["-m", "synthetic:tiny", "--phase", "decode", "--batch", "4", "--length", "128"]


def collect_gates(out, name, gates, keep_going, seconds=None):
    """Whole gates of a build against itself, each with processes of its own, beside a load; `seconds` cuts them short."""
    trials = Trials(out, f"gates-{name}")
    with load(name):
        while trials.another(gates, keep_going):
            with tempfile.TemporaryDirectory() as folder:
                start = time.monotonic()
                text, code = program.run("gate", *GATE, *(["--time-budget", seconds] if seconds else []), "--baseline-arm", ARM, "--candidate-arm", ARM, "--seed", 1 + len(trials), "--store",
                                         pathlib.Path(folder) / "gate.sqlite", "-o", "json", allowed=(0, 1, 3, 4))
            trials.add(exit=code, seconds=time.monotonic() - start, gate_blocks=json.loads(text).get("gate_blocks") if text.strip() else None)
    return trials


def judge_gates(trials, gates, name, passes):
    codes = [row["exit"] for row in trials.rows[:gates]]
    whole = len(codes) == gates
    if name == "saturated":
        return [{"what": f"gates of {len(codes)} that exit 4 with every core taken", "seen": codes.count(4), "target": f"all of {gates}",
                 "ok": codes.count(4) == gates if whole else None}]
    return [
        {"what": f"A/A gates of {len(codes)} that exit 1, {name}", "seen": codes.count(1), "target": "0", "ok": codes.count(1) == 0 if whole or 1 in codes else None},
        {"what": f"A/A gates of {len(codes)} that exit 0, {name}", "seen": codes.count(0), "target": f"at least {passes} of {gates}",
         "ok": codes.count(0) >= passes if whole else None},
    ]
