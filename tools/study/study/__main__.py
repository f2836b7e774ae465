"""Measures what is missing and writes the page."""

import argparse
import pathlib
import platform
import sys
import time

from validation import program

from . import page
from .questions import QUESTIONS

ROOT = pathlib.Path(__file__).resolve().parents[3]


def arguments_of(question, options):
    words = ["sweep", "-m", options.model, "--device", options.device]
    for flag, value in {"--launches": options.launches, "--blocks": 1, **question.sweep}.items():
        if value is True:
            words.append(flag)
        else:
            for one in value if isinstance(value, list) else [value]:
                words += [flag, one]
    return [str(word) for word in words]


def main():
    parser = argparse.ArgumentParser(prog="tools/findings", description=__doc__)
    parser.add_argument("-m", "--model", default="synthetic:tiny-starcoder")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--launches", type=int, default=6)
    parser.add_argument("--only", action="append", choices=[question.name for question in QUESTIONS])
    parser.add_argument("--store", default=str(ROOT / "findings.sqlite"))
    parser.add_argument("--out", default=str(ROOT / "reports/measured/findings.md"))
    parser.add_argument("--report-only", action="store_true")
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args()
    if options.list:
        for question in QUESTIONS:
            print(f"{question.name:12} {question.title}")
        return 0
    chosen = [question for question in QUESTIONS if not options.only or question.name in options.only]
    for number, question in enumerate(chosen, 1):
        if options.report_only or page.run_of(options.store, question) is not None:
            continue
        start = time.monotonic()
        program.run(*arguments_of(question, options), "--name", question.name, "--store", options.store)
        print(f"{number} of {len(chosen)}: {question.title} {time.monotonic() - start:.0f} s", file=sys.stderr, flush=True)
    text, complete = page.whole(options.store, QUESTIONS, lambda question: arguments_of(question, options), platform.machine())
    out = pathlib.Path(options.out)
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(text)
    print(f"{out}", file=sys.stderr)
    return 0 if complete else 3


if __name__ == "__main__":
    sys.exit(main())
