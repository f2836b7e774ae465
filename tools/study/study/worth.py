"""What the page of speculation says first: its answers as sentences, each of the rows of a question that was measured."""

from . import drawing, prediction


def of(answers, name):
    """The rows of a question that were timed, by cell and arm; none where it was not measured."""
    answer = answers.of(name)
    cells = {}
    for row in answer.rows if answer else []:
        if row["status"] == "ok":
            cells.setdefault(row["batch"], {})[row["arm"]] = row
    return cells


def times(row):
    return f"{row['time_ratio']:.2f} [{row['time_ratio_low']:.2f}, {row['time_ratio_high']:.2f}]"


def break_even(cells):
    """From which share of right guesses on 3 of them pay, by rows of the batch."""
    points, guesses = [], 3
    said = prediction.tokens_said(cells)
    for batch, arms in sorted(cells.items()):
        price = prediction.prices(arms, said).get(guesses)
        share = drawing.share_that_pays(price, guesses) if price else None
        points.append(f"{'never' if share is None else f'from {100 * share:.0f} % right on'} at {batch} row{'s' if batch > 1 else ''}")
    return f"{guesses} guesses that cost nothing to make pay {', '.join(points)}." if points else ""


def sentence(cells, text, arms):
    """The text with the ratios of arms at one row, where all of them were timed."""
    rows = [cells.get(1, {}).get(arm) for arm in arms]
    return text.format(*map(times, rows)) if all(row and row["time_ratio_low"] is not None for row in rows) else ""


def summary(answers, oracle, lookup):
    """Lines of a list; `oracle` and `lookup` are labels of arms."""
    found = []
    for name, what in (("oracle-bf16", "164 M parameters in bf16"), ("oracle-fp32", "the same in fp32"), ("oracle-santacoder", "1.1 B parameters in bf16")):
        cells = of(answers, name)
        if cells:
            best = sentence(cells, "7 guesses of which 80 % are right take {} of the time of plain steps at one row, of which none is right {}. ", [oracle(80, 7), oracle(0, 7)])
            found.append(f"**{what}**: {best}{break_even(cells)}")
    for name, what in (("edits", "a function that is written again"), ("summaries", "a summary of a text"), ("questions", "a question about a text"), ("open", "a story that goes on")):
        found.append(sentence(of(answers, name), f"**{what}**, SmolLM2: look-up takes {{}} of the time of plain steps.", [lookup]))
    by_base = of(answers, "look-up").get(1, {})
    if {"causal", "causal,+ngram-lookup", lookup} <= by_base.keys():
        slow = by_base["causal,+ngram-lookup"]["time_ratio"] / by_base["causal"]["time_ratio"]
        found.append(f"**what is left to gain**: look-up takes {by_base[lookup]['time_ratio']:.2f} of the time of plain steps of `native`, and {slow:.2f} of those of `causal`, whose steps cost "
                     f"{by_base['causal']['time_ratio']:.2f} times as much.")
    found.append(sentence(of(answers, "layers"), "**a model's own first layers** as its draft: the first 8 of 30 take {} of the time of plain steps.", ["native,+early-exit:layers=8"]))
    return [line for line in found if line]
