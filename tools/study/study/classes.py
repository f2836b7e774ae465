"""Prompts of four kinds of text, made of this Python's own documentation and source, and what became of guesses in each."""

import difflib
import heapq
import inspect
import json
import pathlib
import platform
import pydoc_data.topics
import random
import statistics
import tempfile
import textwrap

from validation import program
from validation.table import markdown

ROOT = pathlib.Path(__file__).resolve().parents[3]
FOLDER = pathlib.Path("build/prompts")  # below the root
HELD = {"summaries": 256, "edits": 256, "questions": 256, "open": 24}  # tokens of a prompt
TOPICS = ("class", "dict", "import", "raise", "try", "with")
FUNCTIONS = (textwrap.dedent, statistics.median_grouped, statistics.quantiles, random.Random.sample, heapq.nsmallest, difflib.get_close_matches)
OPENINGS = (
    "The lighthouse keeper had not seen a ship for eleven days when, on the twelfth morning, the fog lifted and showed him a small red boat that drifted without oars.",
    "My grandmother kept bees behind the old school, and every spring she let the children of the village name the new queens before the hives were opened.",
    "Most people think that a desert is quiet, but whoever has spent a night among the dunes knows that the sand itself can sing when the wind turns.",
    "In the last year of the war the orchestra lost its conductor, its hall and half of its violins, and yet it played on every Sunday in a different kitchen.",
    "There are three things that a good baker knows before the sun is up: how warm the room is, how old the flour is, and who will come through the door.",
    "When the first train crossed the new bridge, nobody on board noticed the boy who ran beside it with a lantern and counted the wheels.",
)
RESAMPLES = 2000
LEAST_GUESSES = 10  # that a position needs for a point of the figure


def texts():
    """What each prompt is made of: a text, and what asks for more of it."""
    made = {"summaries": [], "edits": [], "questions": [], "open": [(opening, "") for opening in OPENINGS]}
    for topic in TOPICS:
        text = pydoc_data.topics.topics[topic]
        made["summaries"].append((text, "\n\nA summary of the text above:\n\n"))
        made["questions"].append((text, f"\n\nQuestion: What does the text above say about \"{topic}\"?\nAnswer:"))
    for function in FUNCTIONS:
        source = textwrap.dedent(inspect.getsource(function))
        made["edits"].append((source, f"\n\n# The same function, with a comment at each line:\n\ndef {function.__name__}("))
    return made


def tokens(model, parts):
    """The token ids of texts, as the program makes them."""
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "parts.jsonl"
        file.write_text("".join(json.dumps({"prompt": part}) + "\n" for part in parts))
        lines = map(json.loads, program.run("generate", "-m", model, "--prompts", file, "--max-tokens", 1, "-o", "jsonl")[0].splitlines())
        return [line["prompt_ids"] for line in sorted(lines, key=lambda line: line["index"])]


def make(model):
    """Writes a file of prompts for each class, and one of all; each prompt has as many tokens as its class holds, of which the last ask for more."""
    made = texts()
    prompts = {}
    for name, pairs in made.items():
        bodies = tokens(model, [body[:20 * HELD[name]] for body, _ in pairs])
        requests = tokens(model, [request for _, request in pairs]) if name != "open" else [[]] * len(pairs)
        prompts[name] = [{"class": name, "prompt_ids": body[:HELD[name] - len(request)] + request} for body, request in zip(bodies, requests, strict=True)]
        short = [len(prompt["prompt_ids"]) for prompt in prompts[name] if len(prompt["prompt_ids"]) != HELD[name]]
        if short:
            raise ValueError(f"a prompt of class {name} has {short[0]} tokens, not {HELD[name]}: this Python ({platform.python_version()}) has a shorter text")
    (ROOT / FOLDER).mkdir(parents=True, exist_ok=True)
    for name, lines in (*prompts.items(), ("all", [line for lines in prompts.values() for line in lines])):
        (ROOT / FOLDER / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


def file_of(name, model="smollm2"):
    """The prompts of a class, or of all, made where they are not there. Relative to the root, which commands run in."""
    if not (ROOT / FOLDER / f"{name}.jsonl").exists():
        make(model)
    return str(FOLDER / f"{name}.jsonl")


def class_of(index):
    """Of a line of the file of all prompts."""
    return [name for name, pairs in texts().items() for _ in pairs][index]


def completion(line):
    """What is kept of a completion of the file of all prompts."""
    return {"class": class_of(line["index"]), "rounds": line["rounds"]}


def rates(completions):
    """Of all guesses of some completions: the share that stood, tokens a round, the share of tokens that were skipped."""
    rounds = [pair for completion in completions for pair in completion["rounds"]]
    proposed, kept = (sum(pair[which] for pair in rounds) for which in (0, 1))
    return (kept / proposed if proposed else 0, (kept + len(rounds)) / len(rounds), kept / (kept + len(rounds)))


def by_position(completions):
    """Of the guesses at a position, in rounds whose guesses before it all stood: how many there were, and how many stood."""
    counts = {}
    for completion in completions:
        for proposed, kept in completion["rounds"]:
            for position in range(1, min(proposed, kept + 1) + 1):
                asked, stood = counts.get(position, (0, 0))
                counts[position] = (asked + 1, stood + (position <= kept))
    return dict(sorted(counts.items()))


def share_at(completions, position):
    asked, stood = by_position(completions).get(position, (0, 0))
    return stood / asked if asked else 0


def between(values):
    """The middle 95 % of resampled values."""
    ordered = sorted(values)
    return ordered[len(ordered) // 40], ordered[-1 - len(ordered) // 40]


def bootstrapped(completions, statistic):
    """A statistic with its interval over prompts, of which as many are drawn again, with replacement."""
    draw = random.Random(7)
    again = [statistic(draw.choices(completions, k=len(completions))) for _ in range(RESAMPLES)]
    return statistic(completions), *between(again)


def by_class(rows):
    classes = {}
    for row in rows:
        classes.setdefault(row["class"], []).append(row)
    return classes


def positions(rows):
    """For the figure: a share with its interval over prompts for each class and position that enough rounds came to."""
    values = []
    for name, completions in by_class(rows).items():
        for position, (asked, _) in by_position(completions).items():
            if asked < LEAST_GUESSES:
                break
            share, low, high = bootstrapped(completions, lambda drawn, position=position: share_at(drawn, position))
            values.append({"class": name, "position": position, "guesses": asked, "share": share, "low": low, "high": high})
    return values


def table(rows):
    lines = []
    for name, completions in by_class(rows).items():
        cells = []
        for which, form in ((0, "{:.0%}"), (1, "{:.2f}"), (2, "{:.0%}")):
            middle, low, high = bootstrapped(completions, lambda drawn, which=which: rates(drawn)[which])
            cells.append(f"{form.format(middle)} [{form.format(low)}, {form.format(high)}]")
        lines.append([name, str(len(completions)), str(sum(pair[0] for completion in completions for pair in completion["rounds"])), *cells])
    return markdown(["class", "prompts", "guesses", "of these right", "tokens a round", "skipped tokens of all"], lines)
