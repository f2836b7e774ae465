"""What the harness itself costs: the share of a sweep's time that is neither a timed step nor warm-up."""

import pathlib
import sqlite3
import tempfile
import time

from . import program
from .power import ARM, CELL
from .trials import Trials

MOST = 0.25


def collect(out, keep_going):
    trials = Trials(out, "overhead")
    if len(trials) == 0 and keep_going():
        with tempfile.TemporaryDirectory() as folder:
            store = pathlib.Path(folder) / "o.sqlite"
            start = time.monotonic()
            program.run("sweep", *CELL, "--arm", "causal", "--arm", ARM, "--launches", 5, "--blocks", 2, "--store", store)
            took = time.monotonic() - start
            connection = sqlite3.connect(f"file:{store}?mode=ro", uri=True)
            rows = connection.execute("SELECT wall_ns, warmup_steps, length(samples_ns) / 8 FROM visits").fetchall()
            connection.close()
        timed = sum(wall for wall, _, _ in rows) * 1e-9
        # Warm-up steps are counted, not stored; they take what the timed ones of their visit take.
        warm = sum(wall / samples * steps for wall, steps, samples in rows) * 1e-9
        step_ms = 1e3 * timed / sum(samples for _, _, samples in rows)
        trials.add(seconds=took, timed=timed, warm=warm, step_ms=step_ms)
    return trials


def judge(trials):
    if not trials.rows:
        return [{"what": "share of a sweep outside of steps and warm-up", "seen": "-", "target": f"under {MOST:.0%}", "ok": None}]
    row = trials.rows[0]
    share = 1 - (row["timed"] + row["warm"]) / row["seconds"]
    return [{"what": f"share of a sweep outside of steps and warm-up, {row['step_ms']:.1f} ms a step", "seen": f"{share:.1%}", "target": f"under {MOST:.0%} at 5 ms",
             "ok": share < MOST}]
