"""The page: for each question its command, a table, and what became of the study's claim."""

import json
import pathlib
import statistics

from validation import program
from validation.table import markdown

# Two arms whose ratio's interval lies within this are the same.
SAME = 0.02


def run_of(store, question):
    """The latest run of a question, ended; None where there is none."""
    if not pathlib.Path(store).exists():
        return None
    rows = program.query(store, "SELECT id FROM runs WHERE name = ? AND ended_unix_ns <> 0 ORDER BY id DESC LIMIT 1", question.name)
    return rows[0][0] if rows else None


def rows_of(store, run):
    out, _ = program.run("store", "export", run, "--store", store, "-o", "jsonl")
    return [json.loads(line) for line in out.splitlines()]


def milliseconds(row):
    return f"{row['median_ns'] / 1e6:.3g}" if row["status"] == "ok" else row["status"]


def ratio(row):
    if row["time_ratio_low"] is None:
        return "1" if row["time_ratio"] == 1 else "-"
    return f"{row['time_ratio']:.3f} [{row['time_ratio_low']:.3f}, {row['time_ratio_high']:.3f}]"


def cell(row):
    return f"{row['phase']} b{row['batch']} L{row['length']}"


def by_cell(rows, wanted=lambda row: True):
    cells = {}
    for row in rows:
        if wanted(row):
            cells.setdefault(cell(row), {})[row["arm"]] = row
    return cells


def arms_of(rows):
    return list(dict.fromkeys(row["arm"] for row in rows))


def times(rows):
    """A line a cell: the baseline's milliseconds, the others' ratios to it."""
    base, *others = arms_of(rows)
    lines = [[name, milliseconds(arms[base])] + [ratio(arms[arm]) if arm in arms else "-" for arm in others] for name, arms in by_cell(rows).items()]
    return markdown(["cell", f"{base}, ms", *(f"{arm} / {base}" for arm in others)], lines)


def slope(rows):
    """What one row more costs, between the smallest and the largest batch."""
    lines = []
    for arm in arms_of(rows):
        mine = sorted((row for row in rows if row["arm"] == arm and row["status"] == "ok"), key=lambda row: row["batch"])
        first, last = mine[0], mine[-1]
        per_row = (last["median_ns"] - first["median_ns"]) / (last["batch"] - first["batch"]) / 1e3
        host = last["counters"].get("choice.operators", 0) + last["counters"].get("details.operators", 0)
        lines.append([arm, f"{per_row:.0f}", f"{host / last['counters']['counted_steps']:.0f}"])
    return times(rows) + "\n" + markdown(["arm", "us a row more", f"operators of choice and details a step at b{last['batch']}"], lines)


def residues(rows):
    """Means by the number of keys mod 8, counted with the token that comes in the first timed step."""
    lines = []
    for arm in arms_of(rows):
        groups = {}
        for row in rows:
            if row["arm"] == arm and row["status"] == "ok":
                groups.setdefault((row["length"] + 1) % 8, []).append(row["min_ns"] / 1e6)
        means = {residue: statistics.mean(values) for residue, values in sorted(groups.items())}
        whole = statistics.mean(means.values())
        lines.append([arm, f"{whole:.3g}", f"{100 * (max(means.values()) - min(means.values())) / whole:.1f} %", " ".join(f"{value:.3g}" for value in means.values())])
    return markdown(["arm", "mean of the fastest steps, ms", "largest less smallest residue", "by residue 0 to 7"], lines)


def memory(rows):
    base, *others = arms_of(rows)
    lines = [[name] + [f"{milliseconds(arms[arm])}; {arms[arm]['peak_bytes'] / 2**20:.0f}" if arms[arm]["peak_bytes"] else arms[arm]["status"] for arm in (base, *others)]
             for name, arms in by_cell(rows).items()]
    return markdown(["cell", *(f"{arm}: ms; peak MiB" for arm in (base, *others))], lines) + "\n" + times(rows)


def bound(rows):
    arms = [arm for arm in arms_of(rows) if not arm.startswith("roofline")]
    lines = [[name] + [f"{milliseconds(cells[arm])}; {cells[arm]['bound_share']:.2f}" if cells[arm]["bound_share"] else milliseconds(cells[arm]) for arm in arms]
             + [milliseconds(cells["roofline-read"]), milliseconds(cells["roofline-gemm"])] for name, cells in by_cell(rows).items()]
    return markdown(["cell", *(f"{arm}: ms; share of the bound" for arm in arms), "reading, ms", "multiplying, ms"], lines)


def judged(claim, rows):
    """The study's claim in one line, with how many cells bear it out."""
    counts = {"faster": 0, "slower": 0, "same": 0, "undecided": 0}
    for row in rows:
        if row["arm"] != claim.arm or row["phase"] != claim.phase or row["length"] < claim.least_length or row["batch"] < claim.least_batch or row["time_ratio_low"] is None:
            continue
        low, high = row["time_ratio_low"], row["time_ratio_high"]
        if 1 - SAME < low and high < 1 + SAME:
            counts["same"] += 1
        else:
            counts["faster" if high < 1 else "slower" if low > 1 else "undecided"] += 1
    total = sum(counts.values())
    against = sum(counts[word] for word in ("faster", "slower", "same") if word != claim.says)
    word = "not measured" if total == 0 else "**agrees**" if counts[claim.says] == total else "agrees in part" if counts[claim.says] > against else \
        "**disagrees**" if against > counts[claim.says] else "undecided"
    return [claim.text, word, ", ".join(f"{count} {name}" for name, count in counts.items() if count) + f" of {total} cells"]


LAYOUTS = {"times": times, "slope": slope, "residues": residues, "memory": memory, "bound": bound}


def section(store, question, words):
    run = run_of(store, question)
    lines = [f"## {question.title}\n", "```\ndecodelab " + " ".join(f"'{word}'" if " " in word else word for word in words) + "\n```\n"]
    if run is None:
        return "\n".join([*lines, "Not measured.\n"]), False
    rows = rows_of(store, run)
    lines.append(LAYOUTS[question.shows](rows))
    if question.claims:
        lines.append(markdown(["the study (A100, 2023)", "here", "95 % intervals"], [judged(claim, rows) for claim in question.claims]))
    reasons = sorted({f"{row['arm']}: {row['status']}, {row['reason']}" for row in rows if row["status"] != "ok"})
    lines += [f"* {reason}\n" for reason in reasons]
    return "\n".join(lines), True


def whole(store, questions, words_of, machine):
    sections, complete = [], True
    for question in questions:
        text, done = section(store, question, words_of(question))
        sections.append(text)
        complete = complete and done
    where = machine_of(store) or machine
    head = f"# The study's findings on this machine\n\nMade by `tools/findings` on {where}. Ratios are times over the first arm's, below 1 is faster, with 95 % intervals over launches.\n"
    return head + "\n" + "\n".join(sections), complete


def machine_of(store):
    """Where and with what build the newest run was made; None where there is none."""
    if not pathlib.Path(store).exists():
        return None
    found = program.query(store, "SELECT m.cpu, m.cores, m.isa, b.git_commit, n.name FROM runs r JOIN machines m ON m.id = r.machine_id "
                                 "JOIN builds b ON b.id = r.build_id JOIN models n ON n.id = r.model_id ORDER BY r.id DESC LIMIT 1")
    return "{} ({} cores, {}), decodelab {}, model {}".format(*found[0]) if found else None
