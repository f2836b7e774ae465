"""The installed package, from a build outside of the tree: the programs of tests/engine/package."""

import pathlib
import subprocess
import sys
import unittest

from program import PROGRAM, ProgramTest

BUILD = pathlib.Path(PROGRAM).parent
EXAMPLES = pathlib.Path(__file__).resolve().parents[1] / "engine/package"
CMAKE = pathlib.Path(sys.executable).with_name("cmake")


class AnInstalledPackage(ProgramTest):
    def call(self, *words, **keywords):
        done = subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=600, env=self.environment(), **keywords)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def test_builds_and_runs_the_programs_of_a_user(self):
        folder = pathlib.Path(self.folder)
        cmake = CMAKE if CMAKE.exists() else "cmake"
        self.call(cmake, "--install", BUILD, "--prefix", folder / "installed")
        self.call(cmake, "-S", EXAMPLES, "-B", folder / "build", f"-Ddecodelab_ROOT={folder / 'installed'}", "-DCMAKE_BUILD_TYPE=Debug")
        self.call(cmake, "--build", folder / "build", "-j", 2)

        def run(name):
            return self.call(folder / "build" / name, cwd=folder).split("\n")[:-1]

        samples = run("samples")
        self.assertEqual([len(line.split()) for line in samples], [6] * 4)
        self.assertGreater(len(set(samples)), 1, "samples draw numbers of their own")
        self.assertEqual([len(line.split()) for line in run("chat")], [4] * 3)
        text, reason = run("pattern")[0].split()
        self.assertRegex(text, r"^(ab|c)*a?d?$")
        self.assertIn(reason, ("eos", "length"))
        ids = run("learned_prefix")
        whole = self.run_json("generate", "-m", "synthetic:tiny", "--prompt-ids", "5,6,7,8,9", "--max-tokens", 2)["completions"][0]["token_ids"]
        self.assertEqual([int(line.split()[0]) for line in ids], whole, "a prefix from a file is worth its tokens")
        self.assertIn("decodelab", self.call(folder / "installed/bin/decodelab", "--version"))


if __name__ == "__main__":
    unittest.main()
