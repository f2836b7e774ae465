"""What the tests of traces in other people's readers share: the sample traces, and what a reader must find in them."""

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
PROGRAM = os.environ.get("TRACE_SAMPLES", os.path.join(HERE, "../../build/release/trace_samples"))
TRACES = ("sample", "eager", "graph", "cpu", "traps")


def need(present, what):
    """Skips a test visibly where a tool is missing; in CI, where bootstrap installs it, that is a failure."""
    if present:
        return
    if os.environ.get("CI") == "true":
        raise AssertionError(f"{what} is missing, though tools/bootstrap installs it")
    print(f"SKIPPED: no {what}", file=sys.stderr)
    raise unittest.SkipTest(f"no {what}")


def has_module(name):
    return importlib.util.find_spec(name) is not None


class Traces(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        subprocess.run([PROGRAM, cls.folder.name], check=True)

    def path(self, name, ending):
        return os.path.join(self.folder.name, name + ending)

    def expected(self, name):
        with open(self.path(name, ".expected.json"), encoding="utf-8") as file:
            return json.load(file)
