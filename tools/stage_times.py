#!/usr/bin/env python3
"""Prints and keeps the times of the last tools/test --full: its stages, and the slowest files and tests.

usage: tools/stage_times.py [COUNT]

Reads build/stages/stages.tsv (stage, seconds, processor seconds), the logs of Ninja in build/*/ and what ctest wrote to
build/ci/ctest.xml; writes all of it to build/stages/times.json and prints the stages and the COUNT slowest files and tests.

example: tools/stage_times.py 10
"""

import glob
import json
import os
import sys
import xml.etree.ElementTree

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BUILD = os.path.join(ROOT, "build")


def stages() -> list[dict]:
    """One entry a stage, in the order in which they ran."""
    with open(os.path.join(BUILD, "stages", "stages.tsv"), encoding="utf-8") as file:
        rows = [line.rstrip("\n").split("\t") for line in file if line.strip()]
    return [{"stage": name, "seconds": int(wall), "processor_seconds": round(float(cpu), 1)} for name, wall, cpu in rows]


def built_files() -> list[dict]:
    """The last time that each output of each build took, longest first. Several run at once, so they add up to more than the wall's."""
    newest: dict[tuple[str, str], float] = {}
    for log in glob.glob(os.path.join(BUILD, "*", ".ninja_log")):
        preset = os.path.basename(os.path.dirname(log))
        with open(log, encoding="utf-8") as file:
            for line in file:
                fields = line.rstrip("\n").split("\t")
                if len(fields) == 5:
                    newest[preset, fields[3]] = (int(fields[1]) - int(fields[0])) / 1000
    return [{"preset": preset, "file": output, "seconds": seconds}
            for (preset, output), seconds in sorted(newest.items(), key=lambda item: -item[1])]


def tests() -> list[dict]:
    """The time of each test of the main run, longest first; none where it did not get that far."""
    path = os.path.join(BUILD, "ci", "ctest.xml")
    if not os.path.exists(path):
        return []
    cases = xml.etree.ElementTree.parse(path).getroot().iter("testcase")
    rows = [{"test": case.get("name"), "seconds": round(float(case.get("time") or 0), 2), "status": case.get("status")} for case in cases]
    return sorted(rows, key=lambda row: -row["seconds"])


def main(arguments: list[str]) -> int:
    if any(argument in ("-h", "--help") for argument in arguments):
        print(__doc__.strip())
        return 0
    count = int(arguments[0]) if arguments else 10
    times = {"stages": stages(), "files": built_files(), "tests": tests()}
    with open(os.path.join(BUILD, "stages", "times.json"), "w", encoding="utf-8") as file:
        json.dump(times, file, indent=1)
    print(f"{'stage':<18} {'seconds':>8} {'processor seconds':>18}")
    for row in times["stages"]:
        print(f"{row['stage']:<18} {row['seconds']:>8} {row['processor_seconds']:>18}")
    print(f"the {count} slowest files")
    for row in times["files"][:count]:
        print(f"{row['seconds']:>8.1f} s  {row['preset']}: {row['file']}")
    print(f"the {count} slowest tests")
    for row in times["tests"][:count]:
        print(f"{row['seconds']:>8.1f} s  {row['test']}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
