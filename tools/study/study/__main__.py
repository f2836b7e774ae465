"""Measures what is missing and writes the page."""

import argparse
import pathlib
import sys
import time

from . import page
from .answers import Answers
from .engines import ENGINES
from .families import FAMILIES
from .questions import STUDY
from .ranks import RANKS
from .sequences import SEQUENCES
from .serving import SERVING
from .speculation import SPECULATION
from .top_tokens import TOP_TOKENS
from .weights import WEIGHTS

STUDIES = {"findings": STUDY, "engines": ENGINES, "families": FAMILIES, "ranks": RANKS, "sequences": SEQUENCES, "serving": SERVING, "speculation": SPECULATION, "top-tokens": TOP_TOKENS, "weights": WEIGHTS}
DEFAULT_MODEL = "synthetic:tiny-starcoder"
DEFAULT_LAUNCHES = 6  # of a question that has no number of its own
ROOT = pathlib.Path(__file__).resolve().parents[3]


def arguments_of(question, options, answers):
    words = [question.command, "-m", options.model or question.model or DEFAULT_MODEL, "--device", options.device]
    sweep = question.sweep(answers) if callable(question.sweep) else question.sweep
    repeats, asked = {}, {}
    if question.command == "sweep":
        repeats = {"--launches": DEFAULT_LAUNCHES, "--blocks": 1}
        asked = {"--launches": options.launches} if options.launches else {}
    for flag, value in {**repeats, **sweep, **asked}.items():
        if value is True:
            words.append(flag)
        else:
            for one in value if isinstance(value, list) else [value]:
                words += [flag, one]
    return [str(word) for word in words]


def main():
    parser = argparse.ArgumentParser(prog="tools/findings", description=__doc__, add_help=False)
    parser.add_argument("--study", default="findings", choices=list(STUDIES))
    name = parser.parse_known_args()[0].study
    study = STUDIES[name]
    parser = argparse.ArgumentParser(prog=study.command, description=__doc__, parents=[parser])
    parser.add_argument("-m", "--model", default="")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--launches", type=int, help="of every question, instead of its own number")
    parser.add_argument("--only", action="append", choices=[question.name for question in study.questions])
    parser.add_argument("--store", default=str(ROOT / f"{name}.sqlite"))
    parser.add_argument("--out", default=str(ROOT / f"reports/measured/{name}.md"))
    parser.add_argument("--report-only", action="store_true")
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args()
    if options.model and study is not STUDY:
        parser.error(f"-m goes with the study's own questions; those of --study {name} name their models")
    if options.list:
        for question in study.questions:
            print(f"{question.name:12} {question.title}")
        return 0
    out = pathlib.Path(options.out)
    answers = Answers(out.with_suffix(""))
    chosen = [question for question in study.questions if not options.only or question.name in options.only]
    for number, question in enumerate(chosen, 1):
        if options.report_only or answers.get(question) is not None:
            continue
        start = time.monotonic()
        answers.measure(question, arguments_of(question, options, answers), options.store)
        print(f"{number} of {len(chosen)}: {question.title} {time.monotonic() - start:.0f} s", file=sys.stderr, flush=True)
    text, complete = page.whole(study, answers)
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(text)
    print(f"{out}", file=sys.stderr)
    return 0 if complete else 3


if __name__ == "__main__":
    sys.exit(main())
