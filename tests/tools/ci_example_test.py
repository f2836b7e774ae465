"""The workflow of tools/ci_example, step by step in a clean clone, with the programs that its build steps would make."""

import os
import shutil
import stat
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

import yaml

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "../.."))
PROGRAM = os.path.abspath(os.environ.get("DECODELAB", os.path.join(ROOT, "build/release/decodelab")))
SMALL = 'model = "synthetic:tiny"\nphase = "decode"\nbatch = "1"\nlength = "16"\nthreads = 1\nno-preflight = true\ntime-budget = 1\n'


class TheWorkflow(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="decodelab-ci-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.clone = os.path.join(self.folder, "clone")
        subprocess.run(["git", "clone", "--quiet", "--no-hardlinks", ROOT, self.clone], check=True)
        with open(os.path.join(self.clone, "tools/ci_example/decode-gate.yml"), encoding="utf-8") as file:
            self.workflow = yaml.safe_load(file)
        # What is committed is what users copy; only the cells are made smaller.
        with open(os.path.join(self.clone, "tools/ci_example/cells.toml"), "w", encoding="utf-8") as file:
            file.write(SMALL)

    def put_program(self, place, arm=None):
        """A program where a build step would have put it; with `arm`, one whose worker is that arm, whatever it is asked for."""
        path = os.path.join(self.folder, place, "build/release/decodelab")
        os.makedirs(os.path.dirname(path))
        with open(path, "w", encoding="utf-8") as file:
            swap = f'if [ "$1" = worker ]; then set -- worker --arm {arm}; fi\n' if arm else ""
            file.write(f"#!/bin/sh\n{swap}exec '{PROGRAM}' \"$@\"\n")
        os.chmod(path, os.stat(path).st_mode | stat.S_IXUSR)

    def run_steps(self):
        """{name of a step that is a script: its exit code}, as a runner does it: after a failure only what always runs."""
        environment = {**os.environ, **self.workflow["env"], "GITHUB_STEP_SUMMARY": os.path.join(self.folder, "summary.md"), "GITHUB_BASE_REF": "main"}
        environment.setdefault("DECODELAB_CACHE", os.path.join(tempfile.gettempdir(), "decodelab-test-cache"))
        codes = {}
        for step in self.workflow["jobs"]["gate"]["steps"]:
            if "run" not in step or step["name"].startswith("Build"):
                continue
            if any(codes.values()) and step.get("if") != "always()":
                continue
            result = subprocess.run(["bash", "-e", "-o", "pipefail", "-c", step["run"]], cwd=self.clone, env=environment, capture_output=True, text=True, timeout=500)
            sys.stderr.write(result.stdout[-2000:] + result.stderr[-2000:])
            codes[step["name"]] = result.returncode
        return codes

    def test_fails_a_change_that_does_more_and_shows_what(self):
        self.put_program("clone", arm="causal")
        self.put_program("baseline")
        self.assertEqual(self.run_steps(), {"Gate against the branch": 1, "Show the summaries": 0})
        with open(os.path.join(self.folder, "summary.md"), encoding="utf-8") as file:
            self.assertIn("copied_cache_bytes", file.read().replace("\\_", "_"))
        self.assertTrue(xml.etree.ElementTree.parse(os.path.join(self.clone, "gate-branch.xml")).getroot().findall(".//failure"))

    def test_passes_a_build_against_itself_and_against_the_last_release(self):
        for place in ("clone", "baseline", "release"):
            self.put_program(place)
        codes = self.run_steps()
        # Six gate blocks decide, or the budget of a second leaves it open, which this policy lets pass; noise may make it invalid.
        self.assertIn(codes["Gate against the branch"], (0, 4))
        self.assertEqual(codes["Show the summaries"], 0)
        if codes["Gate against the branch"] == 0:
            self.assertIn(codes["Gate against the last release"], (0, 4))
        with open(os.path.join(self.folder, "summary.md"), encoding="utf-8") as file:
            self.assertNotIn("FAIL", file.read())

    def test_builds_what_it_gates(self):
        steps = {step["name"]: step["run"] for step in self.workflow["jobs"]["gate"]["steps"] if "run" in step}
        for place in ("build/release", "../baseline/build/release", "../release/build/release"):
            self.assertTrue(any(f"{place}/decodelab" in script for script in steps.values()), place)
        self.assertEqual(steps["Build the candidate"], "tools/build release")
        for name, place in (("Build the baseline", "../baseline"), ("Build the last release", "../release")):
            self.assertIn(f"git worktree add {place}", steps[name])
            self.assertIn(f"{place}/tools/build release", steps[name])


if __name__ == "__main__":
    unittest.main()
