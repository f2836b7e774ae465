"""Tests of the Python package's launcher, python/decodelab, with a program that prints what it was given and a torch of two files."""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

PYTHON = os.path.abspath(sys.executable)
PACKAGE = pathlib.Path(__file__).resolve().parents[2] / "python" / "decodelab"
PROGRAM = '#!/bin/sh\necho "$* | $DECODELAB_PYTHON | $LD_LIBRARY_PATH"\nexit 5\n'
VERSION = "__version__ = '{}'\ncuda: Optional[str] = {}\n"


class TheLauncher(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name).resolve()
        self.site = self.folder / "site"
        self.package = self.site / "decodelab"
        shutil.copytree(PACKAGE, self.package, ignore=shutil.ignore_patterns("__pycache__"))
        self.built_with("2.11.0+cu130", "13.0")
        program = self.package / "bin" / "decodelab"
        program.parent.mkdir()
        program.write_text(PROGRAM)
        program.chmod(0o755)

    def built_with(self, torch, cuda):
        (self.package / "built_with.py").write_text(f'TORCH = "{torch}"\nCUDA = "{cuda}"\n')

    def install_torch(self, site, version="2.11.0+cu130", cuda="'13.0'"):
        torch = site / "torch"
        (torch / "lib").mkdir(parents=True)
        (torch / "__init__.py").write_text("raise ImportError('torch is not to be imported')\n")
        (torch / "version.py").write_text(VERSION.format(version, cuda))
        (torch / "lib" / "libtorch_cpu.so").touch()
        return torch

    def launch(self, *paths, **environment):
        """The exit code and what was printed, with these folders of packages and, but for the standard library, no others."""
        kept = {name: value for name, value in os.environ.items() if name not in ("DECODELAB_PYTHON", "LD_LIBRARY_PATH")}
        done = subprocess.run([PYTHON, "-S", "-m", "decodelab", "list", "models"], capture_output=True, text=True, check=False, cwd=self.folder,
                              env={**kept, "PYTHONPATH": os.pathsep.join(map(str, [self.site, *paths])), "PYTHONDONTWRITEBYTECODE": "1", **environment})
        return done.returncode, (done.stdout or done.stderr).strip()

    def assert_refused(self, result, *words):
        code, text = result
        self.assertEqual(code, 70, text)
        self.assertTrue(text.startswith("decodelab: "), text)
        self.assertEqual(len(text.splitlines()), 1, text)
        for word in words:
            self.assertIn(word, text)

    def test_hands_over_arguments_exit_code_and_its_own_python(self):
        self.install_torch(self.site)
        self.assertEqual(self.launch(), (5, f"list models | {PYTHON} |"))
        self.assertEqual(self.launch(DECODELAB_PYTHON="/other/python", LD_LIBRARY_PATH="/mine"), (5, "list models | /other/python | /mine"))

    def test_says_where_libtorch_is_only_where_the_program_does_not_look_itself(self):
        elsewhere = self.folder / "elsewhere"
        torch = self.install_torch(elsewhere)
        (elsewhere / "nvidia" / "cu13" / "lib").mkdir(parents=True)
        folders = f"{torch}/lib:{elsewhere}/nvidia/cu13/lib"
        self.assertEqual(self.launch(elsewhere)[1].split(" | ")[2], folders)
        self.assertEqual(self.launch(elsewhere, LD_LIBRARY_PATH="/mine")[1].split(" | ")[2], f"{folders}:/mine")
        self.install_torch(self.site)
        self.assertEqual(self.launch(elsewhere)[1].split(" |")[2], "", "the program takes the torch beside it")

    def test_without_torch_says_how_to_have_it(self):
        self.assert_refused(self.launch(), PYTHON, "has no torch", "--no-deps")
        hollow = self.folder / "hollow" / "torch"
        hollow.mkdir(parents=True)
        self.assert_refused(self.launch(hollow.parent), "has no torch")

    def test_refuses_a_torch_of_another_release(self):
        torch = self.install_torch(self.site, "2.13.0+cpu", "None")
        self.assert_refused(self.launch(), "built with torch 2.11.0+cu130", f"{torch} is torch 2.13.0+cpu", 'pip install "torch==2.11.*"')

    def test_takes_a_later_patch_of_the_same_release(self):
        self.install_torch(self.site, "2.11.3+cu130")
        self.assertEqual(self.launch()[0], 5)

    def test_refuses_a_torch_for_cpus_or_another_cuda_where_it_was_built_with_cuda(self):
        torch = self.install_torch(self.site, "2.11.0+cpu", "None")
        self.assert_refused(self.launch(), "for CUDA 13.0", "CPUs alone")
        (torch / "version.py").write_text(VERSION.format("2.11.0+cu126", "'12.6'"))
        self.assert_refused(self.launch(), "for CUDA 13.0", "CUDA 12.6")
        self.built_with("2.11.0+cu130", "")
        self.assertEqual(self.launch()[0], 5, "built without CUDA, it runs with either")

    def test_without_its_program_says_how_to_install_it(self):
        self.install_torch(self.site)
        shutil.rmtree(self.package / "bin")
        self.assert_refused(self.launch(), "bin/decodelab is not there", "pip install .")


if __name__ == "__main__":
    unittest.main()
