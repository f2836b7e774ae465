"""The page: for each question its command, a table, and what became of the study's claim."""

import math
import shlex
import statistics

from validation.table import markdown, significant

from . import classes, peers, prediction, sums, tax

# Two arms whose ratio's interval lies within this are the same.
SAME = 0.02


def milliseconds(row):
    return significant(row["median_ns"] / 1e6, 3) if row["status"] == "ok" else row["status"]


def ratio(row):
    if row["time_ratio_low"] is None:
        return "1" if row["time_ratio"] == 1 else "-"
    return f"{row['time_ratio']:.3f} [{row['time_ratio_low']:.3f}, {row['time_ratio_high']:.3f}]"


def cell(row):
    what = row["scope"] if row["phase"] == "batching" else row["phase"]
    return f"{what} b{row['batch']} L{row['length']}"


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
        if not mine:
            lines.append([arm, "-", "-"])
            continue
        first, last = mine[0], mine[-1]
        per_row = (last["median_ns"] - first["median_ns"]) / (last["batch"] - first["batch"]) / 1e3
        host = last["counters"].get("choice.operators", 0) + last["counters"].get("details.operators", 0)
        lines.append([arm, f"{per_row:.0f}", f"{host / last['counters']['counted_steps']:.0f}"])
    return times(rows) + "\n" + markdown(["arm", "us a row more", f"operators of choice and details a step at b{max(row['batch'] for row in rows)}"], lines)


def residues(rows):
    """Means by the number of keys mod 8, counted with the token that comes in the first timed step."""
    lines = []
    for arm in arms_of(rows):
        groups = {}
        for row in rows:
            if row["arm"] == arm and row["status"] == "ok":
                groups.setdefault((row["length"] + 1) % 8, []).append(row["min_ns"] / 1e6)
        if not groups:
            lines.append([arm, "-", "-", "-"])
            continue
        means = {residue: statistics.mean(values) for residue, values in sorted(groups.items())}
        whole = statistics.mean(means.values())
        lines.append([arm, significant(whole, 3), f"{100 * (max(means.values()) - min(means.values())) / whole:.1f} %", " ".join(significant(value, 3) for value in means.values())])
    return markdown(["arm", "mean of the fastest steps, ms", "largest less smallest residue", "by residue 0 to 7"], lines)


def memory(rows):
    base, *others = arms_of(rows)
    lines = [[name] + [f"{milliseconds(arms[arm])}; {arms[arm]['peak_bytes'] / 2**20:.0f}" if arms[arm]["peak_bytes"] else arms[arm]["status"] for arm in (base, *others)]
             for name, arms in by_cell(rows).items()]
    return markdown(["cell", *(f"{arm}: ms; peak MiB" for arm in (base, *others))], lines) + "\n" + times(rows)


def ties(rows):
    """How often more tokens than were asked for are as probable as the last, of the steps that were counted."""
    lines = []
    for name, arms in by_cell(rows).items():
        for arm in arms_of(rows):
            counters = arms[arm]["counters"]
            if counters.get("listed_tokens"):
                tied = counters.get("tied_tokens", 0)
                lines.append([name, arm, str(counters["listed_tokens"]), str(tied), f"{100 * tied / counters['listed_tokens']:.0f} %"])
    return markdown(["cell", "arm", "tokens that came with the most probable ones", "with a tie at the last of them", "share"], lines)


def bound(rows):
    arms = [arm for arm in arms_of(rows) if not arm.startswith("roofline")]
    lines = [[name] + [f"{milliseconds(cells[arm])}; {cells[arm]['bound_share']:.2f}" if cells[arm]["bound_share"] else milliseconds(cells[arm]) for arm in arms]
             + [milliseconds(cells["roofline-read"]), milliseconds(cells["roofline-gemm"])] for name, cells in by_cell(rows).items()]
    return markdown(["cell", *(f"{arm}: ms; share of the bound" for arm in arms), "reading, ms", "multiplying, ms"], lines)


def shares(row):
    """The share of the bound with its interval, percent."""
    if row["bound_share"] is None:
        return "-"
    if row["bound_share_low"] is None:
        return f"{100 * row['bound_share']:.0f} %"
    return f"{100 * row['bound_share']:.0f} % [{100 * row['bound_share_low']:.0f}, {100 * row['bound_share_high']:.0f}]"


def engines(rows):
    """A table a scope: the baseline's milliseconds and share of the bound, and of each other engine milliseconds, ratio and share."""
    base, *others = [arm for arm in arms_of(rows) if not arm.startswith("roofline")]
    tables = []
    for scope in dict.fromkeys(row["scope"] for row in rows):
        lines = []
        for name, arms in by_cell(rows, lambda row, scope=scope: row["scope"] == scope).items():
            line = [name, milliseconds(arms[base]), shares(arms[base])]
            for arm in others:
                row = arms[arm]
                line += [milliseconds(row), ratio(row), shares(row)] if row["status"] == "ok" else [row["status"], "-", "-"]
            lines.append(line)
        heads = ["cell", f"{base}, ms", "of the bound"]
        for arm in others:
            heads += [f"{arm}, ms", f"/ {base}", "of the bound"]
        tables.append(f"Scope `{scope}`:\n\n" + markdown(heads, lines))
    return "\n".join(tables)


def settings(rows):
    """Milliseconds of each arm, and the geometric mean over its cells, none where one did not run."""
    cells = by_cell(rows)
    lines = []
    for arm in arms_of(rows):
        mean = geometric(rows, arm)
        lines.append([arm, *(milliseconds(cells[name][arm]) for name in cells), "-" if mean is None else significant(mean, 3)])
    return markdown(["setting", *(f"{name}, ms" for name in cells), "geometric mean, ms"], lines)


def geometric(rows, arm):
    """Milliseconds; None where the arm is not there or could not run a cell."""
    mine = [row for row in rows if row["arm"] == arm]
    if not mine or any(row["status"] != "ok" for row in mine):
        return None
    return math.exp(statistics.mean(math.log(row["median_ns"] / 1e6) for row in mine))


def ranked(rows):
    """An ablation: the arms by what they cost, most first, a table a cell."""
    base, *others = arms_of(rows)
    tables = []
    for name, arms in by_cell(rows).items():
        there = [arm for arm in others if arms[arm]["time_ratio"] is not None and arms[arm]["time_ratio_low"] is not None]
        lines = [[arm, milliseconds(arms[arm]), ratio(arms[arm])] for arm in sorted(there, key=lambda arm, arms=arms: -arms[arm]["time_ratio"])]
        tables.append(f"{name}: {base} takes {milliseconds(arms[base])} ms.\n\n" + markdown(["without", "ms", f"/ {base}"], lines))
    return "\n".join(tables)


def interval_of(base, row, rows):
    """The interval of a row's time over that of the sweep's baseline, or of the arm `base` in the same cell; (None, None) where there is none."""
    if not base:
        return row["time_ratio_low"], row["time_ratio_high"]
    below = by_cell(rows).get(cell(row), {}).get(base)
    found = tax.ratio(row, below) if below else None
    return found[1:] if found else (None, None)


def judged(claim, rows):
    """The study's claim in one line, with how many cells bear it out."""
    counts = {"faster": 0, "slower": 0, "same": 0, "undecided": 0}
    for row in rows:
        asked = row["arm"] == claim.arm and row["phase"] == claim.phase and row["length"] >= claim.least_length and claim.least_batch <= row["batch"] <= claim.most_batch
        low, high = interval_of(claim.base, row, rows) if asked else (None, None)
        if low is None:
            continue
        if 1 - SAME < low and high < 1 + SAME:
            counts["same"] += 1
        else:
            counts["faster" if high < 1 else "slower" if low > 1 else "undecided"] += 1
    total = sum(counts.values())
    against = sum(counts[word] for word in ("faster", "slower", "same") if word != claim.says)
    word = "not measured" if total == 0 else "**agrees**" if counts[claim.says] == total else "agrees in part" if counts[claim.says] > against else \
        "**disagrees**" if against > counts[claim.says] else "undecided"
    return [claim.text, word, ", ".join(f"{count} {name}" for name, count in counts.items() if count) + f" of {total} cells"]


def accepted(rows):
    """What became of the guesses of a continuation, as it was counted."""
    lines = []
    for name, arms in by_cell(rows).items():
        for arm, row in arms.items():
            counts = row["counters"]
            if counts.get("rounds"):
                proposed, kept = counts.get("proposed_tokens", 0), counts.get("accepted_tokens", 0)
                said = counts["emitted_tokens"]
                lines.append([name, arm, str(counts["rounds"]), str(proposed), f"{kept} ({100 * kept / proposed:.0f} %)" if proposed else "-", f"{100 * kept / said:.0f} %"])
    return times(rows) + "\n" + markdown(["cell", "arm", "rounds", "guesses", "of these right", "skipped tokens of all"], lines)


def plus_minus(value, error, digits):
    return f"{value:.{digits}g} ± {1.96 * error:.1g}"


def losses(rows):
    """Each arm's time beside what it reads and what it loses."""
    lines = []
    base = arms_of(rows)[0]
    for name, arms in by_cell(rows, lambda row: not row["arm"].startswith("roofline")).items():
        for arm, row in arms.items():
            weights, quality = row["counters"].get("modelled_weight_bytes"), row.get("quality")
            held = f"{weights / row['counters']['counted_steps'] / 1e6:.0f}" if weights else "-"
            kl, perplexity, top = "-", "-", "-"
            if quality:
                kl = plus_minus(quality["kl_divergence"], quality["kl_divergence_error"], 3)
                factor = quality["perplexity_ratio"]
                perplexity = f"x{factor:.4f} ± {1.96 * factor * quality['log_perplexity_ratio_error']:.4f}"
                top = f"{100 * quality['top_1_agreement']:.1f} %"
            lines.append([name, arm, milliseconds(row), ratio(row) if row["status"] == "ok" else "-", shares(row), held, kl, perplexity, top])
    return markdown(["cell", "arm", "ms", f"/ {base}", "of the bound", "weights read, MB", "KL divergence", "perplexity", "same most probable token"], lines)


def predicted(rows):
    return times(rows) + "\n" + prediction.table(by_cell(rows))


def taxes(rows):
    cells = by_cell(rows)
    return tax.table(cells, milliseconds, ratio) + "\n" + tax.clients(cells)


LAYOUTS = {"times": times, "slope": slope, "residues": residues, "memory": memory, "ties": ties, "bound": bound, "engines": engines, "settings": settings, "ranked": ranked, "losses": losses, "accepted": accepted, "predicted": predicted,
           "classes": classes.table, "sums": sums.table, "tax": taxes}


def program_of(question):
    """What stands before the arguments of a question's command: words of sums name their own program."""
    return "" if question.command == "sums" else "decodelab "


def section(question, answer, claimed_by, figures=()):
    rows = answer.rows
    lines = [f"## {question.title}\n", f"```\n{program_of(question)}{shlex.join(answer.words)}\n```\n", f"On {answer.where}.\n", LAYOUTS[question.shows](rows), peers.computed(answer) if question.command == "sweep" else ""]
    lines += [f"![{question.title}]({figure.parent.name}/{figure.name})\n" for figure in figures if figure.exists()]
    if question.claims:
        lines.append(markdown([claimed_by, "here", "95 % intervals"], [judged(claim, rows) for claim in question.claims]))
    reasons = sorted({f"{row['arm']}: {row['status']}, {row['reason']}" for row in rows if row.get("status", "ok") != "ok"})
    lines += [f"* {reason}\n" for reason in reasons]
    return "\n".join(line for line in lines if line)


def figures_of(question, answer, answers):
    return [*answers.figures(question).values(), *answers.draw(question, by_cell(answer.rows) if question.command == "sweep" else answer.rows)]


def whole(study, answers):
    """The page, and whether every question has its answer."""
    found = [(question, answers.get(question)) for question in study.questions]
    head = f"# {study.title}\n\nMade by `{study.command}`. Ratios are times over the first arm's, below 1 is faster, with 95 % intervals over launches.\n{study.head}"
    if study.summary:
        head += "".join(f"\n* {line}" for line in study.summary(answers)) + "\n"
    missing = [question.title for question, answer in found if answer is None]
    sections = [section(question, answer, study.claimed_by, figures_of(question, answer, answers)) for question, answer in found if answer is not None]
    return head + "\n" + "\n".join(sections + ([f"Not measured here: {'; '.join(missing)}\n"] if missing else [])), not missing
