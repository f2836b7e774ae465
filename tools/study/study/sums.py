"""Sums between two ranks, as a program that stands beside the measured one times them."""

import json
import os
import pathlib
import subprocess

from validation.table import markdown

WORDS = ["ranks_benchmark", "--benchmark_format=json"]


def timed_sums():
    """Percentiles of sums between two processes, by bytes, as the program beside the measured one prints them."""
    name, *flags = WORDS
    program = pathlib.Path(os.environ["DECODELAB"]).with_name(name)
    found = json.loads(subprocess.run([str(program), *flags], check=True, capture_output=True, text=True).stdout)
    rows = []
    for one in found["benchmarks"]:
        _, dtype, *arguments = one["run_name"].split("/")
        values = dict(argument.split(":") for argument in arguments if ":" in argument)
        rows.append({"dtype": dtype, "ranks": int(values["ranks"]), "bytes": int(values["bytes"]), "p50_ns": one["p50_ns"], "p99_ns": one["p99_ns"]})
    return rows


def table(rows):
    lines = [[row["dtype"], f"{row['bytes']:,}", f"{row['p50_ns'] / 1e3:.2f}", f"{row['p99_ns'] / 1e3:.2f}", f"{row['bytes'] / row['p50_ns']:.2f}"] for row in rows]
    return markdown(["dtype", "bytes of a sum", "p50, us", "p99, us", "GB/s"], lines)
