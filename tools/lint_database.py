#!/usr/bin/env python3
"""Writes the compile commands that clang-tidy reads, and prints what it is to look at.

usage: tools/lint_database.py BUILD OUT units|torch

BUILD/compile_commands.json is what CMake wrote; OUT/compile_commands.json gets the same without the options that only g++ knows. Where
files are compiled together (DECODELAB_UNITY), OUT has an entry for the unit, which reads common headers once, and one for each file in it.

  units   prints the units, and the files that are compiled by themselves, of all code that sees no header of libtorch
  torch   prints the files that do

Tests are in neither list.
"""
import json
import os
import re
import sys

DROPPED = re.compile(r" -Werror| -fopenmp| -fvect-cost-model=[a-z-]*| -fpch-preprocess| -Winvalid-pch -include [^ ]*cmake_pch\.hxx")
INCLUDE = re.compile(r'^#include "(.*)"$', re.M)


def parts_of(file):
    """The sources that a unit of CMake's includes; the file itself where it is no unit."""
    if "/Unity/" not in file:
        return [file]
    with open(file, encoding="utf-8") as text:
        return INCLUDE.findall(text.read())


def is_ours(file):
    name = os.path.relpath(file)
    return name.endswith(".cpp") and not name.startswith(("tests/", "build/"))


def main():
    build, out, wanted = sys.argv[1:]
    with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as text:
        entries = json.load(text)
    database, units, torch = [], [], []
    for entry in entries:
        parts = parts_of(entry["file"])
        ours = [part for part in parts if is_ours(part)]
        if not ours:
            continue
        command = DROPPED.sub("", entry["command"])
        database += [{**entry, "command": command.replace(entry["file"], file), "file": file} for file in {entry["file"], *parts}]
        if "/torch/include" in command:
            torch += map(os.path.relpath, ours)
        else:
            units.append(os.path.relpath(entry["file"]))
    os.makedirs(out, exist_ok=True)
    with open(os.path.join(out, "compile_commands.json"), "w", encoding="utf-8") as text:
        json.dump(database, text)
    print(*sorted(set(units if wanted == "units" else torch)), sep="\n")


if __name__ == "__main__":
    main()
