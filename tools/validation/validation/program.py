"""Runs decodelab and reads its store."""

import array
import functools
import json
import os
import signal
import sqlite3
import subprocess

PROGRAM = os.environ.get("DECODELAB", "decodelab")
# Huge pages for what malloc gives, here and in the program's own processes: steps vary less from launch to launch.
os.environ.setdefault("GLIBC_TUNABLES", "glibc.malloc.hugetlb=1")
INTERRUPTED = 130


def run(*arguments, allowed=(0,), timeout=3600):
    """stdout and exit code; any exit code that is not `allowed` is an error with what was printed."""
    result = subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True, timeout=timeout)
    if result.returncode not in allowed:
        raise RuntimeError(f"decodelab {' '.join(map(str, arguments))} ended with {result.returncode}:\n{result.stdout}\n{result.stderr}")
    return result.stdout, result.returncode


def run_with_messages(*arguments, timeout=3600):
    """What the program says on stderr."""
    return subprocess.run([PROGRAM, *map(str, arguments)], check=True, capture_output=True, text=True, timeout=timeout).stderr


def run_for(seconds, *arguments):
    """Interrupts it then; the block in hand is finished."""
    with subprocess.Popen([PROGRAM, *map(str, arguments)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        try:
            _, said = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGINT)
            _, said = process.communicate(timeout=600)
        if process.returncode not in (0, INTERRUPTED):
            raise RuntimeError(f"decodelab {' '.join(map(str, arguments))} ended with {process.returncode}:\n{said}")


@functools.cache
def build():
    """What the program calls itself."""
    return run("--version")[0].splitlines()[0]


@functools.cache
def processor():
    """The processor's model, as the kernel names it, and the number of cores."""
    with open("/proc/cpuinfo") as file:
        names = [line.split(":", 1)[1].strip() for line in file if line.startswith("model name")]
    return f"{names[0] if names else 'unknown'}, {threads()} cores"


def run_json(*arguments, **keywords):
    out, _ = run(*arguments, "-o", "json", **keywords)
    return json.loads(out)


def threads():
    """One for each core, as the program takes by default."""
    return len(os.sched_getaffinity(0))


def query(store, sql, *values):
    connection = sqlite3.connect(f"file:{store}?mode=ro", uri=True)
    try:
        return connection.execute(sql, values).fetchall()
    finally:
        connection.close()


def visits(store, run_id):
    """(launch, block, cell, arm label, position, samples_ns) of a run, in the order in which they ran."""
    rows = query(store, "SELECT b.launch, b.block, b.cell_id, a.label, v.position, v.samples_ns FROM visits v JOIN blocks b ON b.id = v.block_id "
                        "JOIN arms a ON a.id = v.arm_id WHERE b.run_id = ? ORDER BY b.id, v.position", run_id)
    return [(*row[:5], array.array("q", row[5]).tolist()) for row in rows]

