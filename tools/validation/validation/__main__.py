"""Runs the parts that were asked for and prints every figure beside its target."""

import argparse
import collections
import pathlib
import sys
import time

from . import false_alarms, host, operating, overhead, power, rivals
from .table import markdown

# Of `--quick`, for CI: the whole machinery, too few trials for most verdicts.
QUICK_MINUTES = 6
# A machine that others use has bad minutes, and a gate is allowed a false alarm in twenty: what a quick run misses, it must miss so many
# times running before it says so. A defect of the harness misses every time.
QUICK_ATTEMPTS = 3
# Of its gates and of its power: too short for a verdict, which a few trials do not give either.
QUICK_SECONDS = 15
# What differs from another part by its load alone, so that a quick run goes without.
NOT_IN_QUICK = ("gates-N2", "gates-saturated", "power-relaunched-calm", "rivals-calm")


def parts(quick):
    """name: (collect(out, keep_going) -> trials, judge(trials) -> rows), in the order in which they run."""

    def size(full, few):
        return few if quick else full

    table = {"operating": (operating.collect, operating.judge), "overhead": (overhead.collect, overhead.judge)}
    decisions = size(false_alarms.DECISIONS, 4)
    table["false-alarms"] = (lambda out, go: false_alarms.collect_decisions(out, decisions, go, quick), lambda trials: false_alarms.judge_decisions(trials, decisions))
    # Of the loaded gates half run beside each load.
    for name, gates, passes in (("calm", 60, 57), ("N1", 30, 23), ("N2", 30, 23), ("saturated", 3, 0)):
        count = size(gates, 1)
        table[f"gates-{name}"] = (lambda out, go, name=name, count=count: false_alarms.collect_gates(out, name, count, go, QUICK_SECONDS if quick else None),
                                  lambda trials, name=name, count=gates, passes=passes: false_alarms.judge_gates(trials, count, name, passes))
    table["power-in-process"] = (lambda out, go: power.in_one_process(out, size(60, 1), go, seconds=size(30, QUICK_SECONDS)),
                                 lambda trials: power.judge(trials, 60, 51, "+0.5 % in one process, calm", 30, lambda row: row["p"] <= 0.05 and row["mean"] > 0))
    for name, share, seconds, look, needed in (("calm", 0.02, 60, 6, 20), ("N1", 0.03, 90, 8, 18)):
        table[f"power-relaunched-{name}"] = (lambda out, go, name=name, share=share, seconds=seconds, look=look: power.relaunched(out, name, size(24, 1), go, share, size(seconds, QUICK_SECONDS), look),
                                             lambda trials, name=name, share=share, seconds=seconds, needed=needed: power.judge(
                                                 trials, 24, needed, f"+{100 * share:.0f} % relaunched, {name}", seconds, lambda row: row["exit"] == 1))
    for name in ("calm", "N1"):
        table[f"rivals-{name}"] = (lambda out, go, name=name: rivals.collect(out, name, size(60, 1), go), lambda trials, name=name: rivals.judge(trials, 60, name))
    return {name: part for name, part in table.items() if not quick or name not in NOT_IN_QUICK}


def missed(rows):
    return [row for row in rows if row["ok"] is False]


def judged(part, out, keep_going, attempts):
    """The trials of a part and their rows; a part that missed a target is run again from nothing while attempts are left."""
    collect, judge = part
    for left in reversed(range(attempts)):
        trials = collect(out, keep_going)
        rows = judge(trials)
        if not missed(rows) or not left:
            return trials, rows
        for row in missed(rows):
            print(f"missed, so once more: {row['what']}: seen {row['seen']}, wanted {row['target']}", file=sys.stderr, flush=True)
        trials.path.unlink()


def page(rows):
    words = {True: "ok", False: "**missed**", None: "not complete"}
    return markdown(["what", "seen", "target", ""], [[row["what"], row["seen"], row["target"], words[row["ok"]]] for row in rows])


HEAD = """# Can decodelab's verdicts be trusted?

Printed by `tools/validate_measurement --report-only`; [what each part does](../../../tools/validation/README.md). The trials stand beside this page, a line each.
"""


def places(where):
    """Which trials were run where."""
    lines = [[place, ", ".join(f"{name} {count}" for name, count in counts.items())] for place, counts in where.items()]
    return markdown(["machine and build", "trials"], lines)


def main():
    parser = argparse.ArgumentParser(prog="tools/validate_measurement", description=__doc__)
    table = parts(False)
    parser.add_argument("--part", action="append", choices=list(table), help="only this part; repeat for more")
    parser.add_argument("--quick", action="store_true", help=f"a few trials of most parts, within {QUICK_MINUTES} minutes: most verdicts need more")
    parser.add_argument("--out", default="reports/measured/validation", help="folder of the trials and the page (default: %(default)s under the repository)")
    parser.add_argument("--time", type=float, default=float("inf"), metavar="LIMIT_S", help="begin no further trial after so many seconds")
    parser.add_argument("--report-only", action="store_true", help="run nothing, print what is stored")
    arguments = parser.parse_args()
    out = pathlib.Path(arguments.out)
    if not out.is_absolute():
        out = pathlib.Path(__file__).resolve().parents[3] / out
    out.mkdir(parents=True, exist_ok=True)
    start = time.monotonic()

    def within_time():
        return not arguments.report_only and time.monotonic() - start < arguments.time

    def keep_going():
        return within_time() and (arguments.quick or host.wait_until_quiet(within_time))

    rows, where = [], {}
    attempts = QUICK_ATTEMPTS if arguments.quick and not arguments.report_only else 1
    for name, part in parts(arguments.quick).items():
        if arguments.part and name not in arguments.part:
            continue
        if not arguments.report_only:
            print(f"{time.strftime('%H:%M:%S')} {name}", file=sys.stderr, flush=True)
        trials, found = judged(part, out, keep_going, attempts)
        rows += found
        for row in trials.rows:
            where.setdefault(f"{row['machine']}, {row['build']}", collections.Counter())[name] += 1
    text = page(rows)
    if not arguments.part:
        (out / "validation.md").write_text(f"{HEAD}\n{text}\n{places(where)}")
    print(text, end="")
    # Whoever reads a long log sees its end.
    for row in missed(rows):
        print(f"missed: {row['what']}: seen {row['seen']}, wanted {row['target']}")
    return 1 if missed(rows) else 3 if any(row["ok"] is None for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
