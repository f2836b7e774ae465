"""Trials of a part, one JSON line each, kept as they end, so that a part that was stopped goes on."""

import json
import pathlib

from . import host, program


class Trials:
    def __init__(self, folder, name):
        self.path = pathlib.Path(folder) / f"{name}.jsonl"
        self.rows = []
        self.begun = None  # what the host had stolen when the trial in hand began
        if self.path.exists():
            # A line that was being written when the part was stopped has no end.
            for line in self.path.read_text().splitlines(keepends=True):
                if line.endswith("\n"):
                    self.rows.append(json.loads(line))

    def another(self, wanted, keep_going):
        """Whether a trial is to be run; it begins now."""
        begins = len(self.rows) < wanted and keep_going()
        self.begun = host.CoreTime()
        return begins

    def add(self, **row):
        row["stolen"] = round(self.begun.stolen_share(), 4)
        row["build"] = program.build()
        row["machine"] = program.processor()
        self.rows.append(row)
        with self.path.open("a") as file:
            file.write(json.dumps(row) + "\n")

    def __len__(self):
        return len(self.rows)
