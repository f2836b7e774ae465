"""Trials of a part, one JSON line each, kept as they end, so that a part that was stopped goes on."""

import json
import pathlib

from . import program


class Trials:
    def __init__(self, folder, name):
        self.path = pathlib.Path(folder) / f"{name}.jsonl"
        self.rows = []
        if self.path.exists():
            # A line that was being written when the part was stopped has no end.
            for line in self.path.read_text().splitlines(keepends=True):
                if line.endswith("\n"):
                    self.rows.append(json.loads(line))

    def add(self, **row):
        row["build"] = program.build()
        row["machine"] = program.processor()
        self.rows.append(row)
        with self.path.open("a") as file:
            file.write(json.dumps(row) + "\n")

    def __len__(self):
        return len(self.rows)
