"""The serving tax: the time of a server over that of the same engine in process, launch by launch in the same blocks."""

import math

from validation.statistics_values import t_interval
from validation.table import markdown, significant

SERVER = "-server"


def pairs(arms):
    """The engines that there are in process and as a server: (arm in process, arm of the server)."""
    return [(arm, arm + SERVER) for arm in arms if arm + SERVER in arms]


def ratio(above, below):
    """(ratio, low, high) of two rows with 95 % over launches, by their ratios to the baseline of each launch; None without two launches of both, and low and high None with one."""
    if above["status"] != "ok" or below["status"] != "ok":
        return None
    logs = [math.log(over / under) for over, under in zip(above.get("launch_ratios") or (), below.get("launch_ratios") or (), strict=False)]
    if not logs:
        return None
    low, high = map(math.exp, t_interval(logs)) if len(logs) > 1 else (None, None)
    return math.exp(sum(logs) / len(logs)), low, high


def text_of(found):
    if found is None:
        return "-"
    value, low, high = found
    return f"{value:.3f}" if low is None else f"{value:.3f} [{low:.3f}, {high:.3f}]"


def added(below, found):
    """Milliseconds that a step of the server takes longer: the ratio's share of what the engine takes in process."""
    return "-" if found is None else significant((found[0] - 1) * below["median_ns"] / 1e6, 2, "+")


def table(cells, milliseconds, ratio_text):
    """A line a cell and engine: in process, as a server, and the one over the other."""
    lines = []
    for name, arms in cells.items():
        base = next(iter(arms))
        for inside, server in pairs(arms):
            found = ratio(arms[server], arms[inside])
            shown = [text for arm in (inside, server) for text in (milliseconds(arms[arm]), ratio_text(arms[arm]) if arms[arm]["status"] == "ok" else "-")]
            lines.append([name, milliseconds(arms[base]), inside, *shown, text_of(found), added(arms[inside], found)])
    base = next((next(iter(arms)) for arms in cells.values()), "baseline")
    return markdown(["cell", f"{base}, ms", "engine", "in process, ms", f"/ {base}", "server, ms", f"/ {base}", "server / in process", "ms that a step takes longer"], lines)


def clients(cells):
    """What the client of each server cost and saw, as it was counted before anything was timed; empty where no server was asked."""
    lines = []
    for name, arms in cells.items():
        for arm, row in arms.items():
            counts = row["counters"]
            if counts.get("empty_round_trip_ns"):
                together, bundled = (counts.get(key, 0) for key in ("tokens_read_together", "bundled_tokens"))
                lines.append([name, arm, f"{counts.get('client_cpu_ns', 0) / 1e3:.0f}", f"{counts['empty_round_trip_ns'] / 1e3:.0f}", together, bundled])
    return markdown(["cell", "server", "processor time of the client a step, us", "round trip of a request that computes nothing, us", "tokens read together", "tokens in one event"], lines) if lines else ""


def points(cells):
    """What the figure shows: the tax of each engine, phase and batch."""
    values = []
    for arms in cells.values():
        for inside, server in pairs(arms):
            found = ratio(arms[server], arms[inside])
            if found and found[1] is not None:
                row = arms[server]
                values.append({"engine": inside, "phase": row["phase"], "batch": row["batch"], "tax": found[0], "low": found[1], "high": found[2]})
    return values


def sentences(title, cells):
    """The answer in a line for each phase and engine: at one row and at the most rows."""
    lines = []
    for phase in dict.fromkeys(row["phase"] for arms in cells.values() for row in arms.values()):
        of_phase = [arms for arms in cells.values() if next(iter(arms.values()))["phase"] == phase]
        for inside, server in pairs(of_phase[0]):
            taxes = [(next(iter(arms.values()))["batch"], ratio(arms[server], arms[inside])) for arms in of_phase]
            said = [f"{text_of(found)} at {batch} row{'s' if batch > 1 else ''}" for batch, found in taxes if found]
            if said:
                lines.append(f"**{title}**, {phase}: the time of {inside}'s server over that of {inside} in process is {', '.join(said)}.")
    return lines
