"""The wheel of tools/wheel: what it holds, and what its program does in a fresh environment and an empty folder.

usage: [PYTHONS='python3.12 python3.13'] .venv/bin/python tests/wheel/wheel_test.py [WHEEL]

torch and vl-convert are those of the Python that runs this, so that nothing is downloaded.
"""

import importlib.util
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
MOST_BYTES = 30_000_000
# Of torch's packages, and of every Linux that torch itself runs on.
LIBRARIES = re.compile(r"lib(torch_cpu|torch_cuda|c10|c10_cuda)\.so|lib(gomp|cudart|nccl|stdc\+\+|m|gcc_s|c)\.so\.\d+|ld-linux-x86-64\.so\.2")
SITE = pathlib.Path(importlib.util.find_spec("torch").origin).resolve().parents[1]
SWEEP = ["sweep", "-m", "synthetic:tiny", "--arm", "causal", "--arm", "bigcode", "--worker", "other=decodelab worker --arm causal", "--phase", "decode",
         "--batch", "1", "--length", "16", "--launches", "2", "--blocks", "1", "--threads", "1", "--name", "first"]


def find_wheel():
    """The wheel that the command line names, else the one in build/dist."""
    named = [word for word in sys.argv[1:] if word.endswith(".whl")]
    found = [pathlib.Path(word) for word in named] or sorted((ROOT / "build" / "dist").glob("*.whl"))
    if len(found) != 1:
        sys.exit(f"one wheel was expected, and there are {len(found)}: run tools/wheel")
    return found[0].resolve()


class WhatTheWheelHolds(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.archive = zipfile.ZipFile(WHEEL)
        cls.addClassCleanup(cls.archive.close)
        cls.names = cls.archive.namelist()

    def text(self, ending):
        name, = (name for name in self.names if name.endswith(ending))
        return self.archive.read(name).decode()

    def test_is_small_and_for_every_python(self):
        self.assertTrue(WHEEL.name.endswith("-py3-none-linux_x86_64.whl"), WHEEL.name)
        self.assertLess(WHEEL.stat().st_size, MOST_BYTES)

    def test_has_the_program_its_launcher_and_its_scripts_and_nothing_to_build_with(self):
        for name in ("bin/decodelab", "launcher.py", "built_with.py", "tools/render_figures.py", "tools/fetch_model.py", "tools/requirements.txt"):
            self.assertIn(f"decodelab/{name}", self.names)
        self.assertEqual([name for name in self.names if name.endswith((".a", ".h", ".cmake", ".pyc"))], [])
        self.assertEqual({name.split("/")[0].partition("-")[0] for name in self.names}, {"decodelab"})

    def test_has_the_licences_of_what_is_linked_into_it(self):
        licences = {name.rsplit("/", 1)[1]: self.archive.read(name).decode() for name in self.names if name.startswith("decodelab/licences/")}
        for package in ("libboost-dev", "libcli11-dev", "libfmt-dev", "libpcre2-dev", "libprotozero-dev", "libsqlite3-dev", "libsqlitecpp-dev", "libutf8proc-dev", "nlohmann-json3-dev", "zlib1g-dev"):
            self.assertIn("Copyright", licences.get(f"{package}.txt", ""), package)

    def test_names_the_torch_that_it_runs_with(self):
        release = re.search(r'TORCH = "(\d+\.\d+)\.', self.text("/built_with.py"))[1]
        self.assertIn(f"Requires-Dist: torch=={release}.*\n", self.text("/METADATA"))
        self.assertIn("Requires-Dist: vl-convert-python==", self.text("/METADATA"))

    def test_asks_for_no_library_that_only_the_builder_has(self):
        carried = {name.rpartition("/")[2] for name in self.names if name.startswith("decodelab/lib/")}
        with tempfile.TemporaryDirectory() as folder:
            for name in self.names:
                if not name.startswith("decodelab/bin/"):
                    continue
                with self.subTest(name):
                    file = self.archive.extract(name, folder)
                    headers = subprocess.run(["readelf", "-d", file], capture_output=True, text=True, check=True).stdout
                    needed = re.findall(r"\(NEEDED\).*\[(.*)\]", headers)
                    self.assertEqual([library for library in needed if library not in carried and not LIBRARIES.fullmatch(library)], [])
                    path, = re.findall(r"\(RPATH\).*\[(.*)\]", headers)
                    self.assertEqual([part for part in path.split(":") if not part.startswith("$ORIGIN/../")], [])
                    self.assertNotIn(os.fsencode(ROOT), pathlib.Path(file).read_bytes(), "no path of the checkout")


class AFreshEnvironment(unittest.TestCase):
    python = sys.executable

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="decodelab-wheel-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name).resolve()
        self.environment_folder = self.folder / "environment"
        self.empty = self.folder / "empty"
        self.empty.mkdir()
        self.call([self.python, "-m", "venv", "--without-pip", self.environment_folder])
        interpreter = self.environment_folder / "bin" / "python"
        self.call([sys.executable, "-m", "pip", "--python", interpreter, "install", "--quiet", "--disable-pip-version-check", "--no-index", "--no-deps", WHEEL])
        self.site, = (self.environment_folder / "lib").glob("python3*/site-packages")

    def call(self, words):
        done = subprocess.run(list(map(str, words)), capture_output=True, text=True, check=False, timeout=300)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def run_program(self, *words, expect=0, **changes):
        """Runs the command of the environment in an empty folder, with no variable of ours."""
        environment = {"HOME": str(self.folder), "PATH": f"{self.environment_folder}/bin:/usr/bin:/bin", "OMP_WAIT_POLICY": "passive",
                       "DECODELAB_CACHE": os.path.join(tempfile.gettempdir(), "decodelab-test-cache"), **changes}
        done = subprocess.run(["decodelab", *words], capture_output=True, text=True, check=False, cwd=self.empty, env=environment, timeout=300)
        self.assertEqual(done.returncode, expect, f"{words}\n{done.stdout}\n{done.stderr}")
        return done

    def measure_and_draw(self):
        self.assertRegex(self.run_program("--version").stdout, r"(?m)^libtorch +\d")
        swept = self.run_program(*SWEEP).stdout
        for arm in ("causal", "bigcode", "other"):
            self.assertIn(arm, swept)
        reported = self.run_program("report", "first", "--out", "page")
        self.assertEqual(reported.stderr, "")
        self.assertIn("<svg ", (self.empty / "page" / "report.html").read_text(encoding="utf-8"))
        specs = sorted((self.empty / "page" / "figures").glob("*.vl.json"))
        self.assertGreater(len(specs), 2)
        for spec in specs:
            stem = str(spec).removesuffix(".vl.json")
            self.assertTrue(pathlib.Path(stem + ".svg").read_text(encoding="utf-8").startswith("<svg "), stem)
            self.assertTrue(pathlib.Path(stem + ".png").read_bytes().startswith(b"\x89PNG"), stem)

    def test_measures_and_draws_with_the_torch_beside_it_whatever_is_found_elsewhere(self):
        for name in ("torch", "nvidia", "vl_convert"):
            if (SITE / name).exists():
                (self.site / name).symlink_to(SITE / name)
        wrong = self.folder / "wrong"
        wrong.mkdir()
        (wrong / "libtorch_cpu.so").write_text("no library")
        self.run_program("list", "models", LD_LIBRARY_PATH=str(wrong))
        self.measure_and_draw()
        refused = self.run_program("fetch", "smollm2", expect=70, DECODELAB_CACHE=str(self.folder / "cache"))
        self.assertIn("has no pip", refused.stderr)

    def test_measures_and_draws_with_a_torch_elsewhere(self):
        (self.site / "elsewhere.pth").write_text(f"{SITE}\n")
        self.measure_and_draw()

    def test_says_what_is_missing_and_what_to_do(self):
        self.assertIn("has no torch", self.run_program("list", expect=70).stderr)
        (self.site / "torch").symlink_to(SITE / "torch")
        (self.site / "nvidia").symlink_to(SITE / "nvidia")
        self.run_program(*SWEEP)
        undrawn = self.run_program("report", "first", "--out", "page").stderr
        self.assertIn("No module named 'vl_convert'", undrawn)
        self.assertIn(str(self.environment_folder), undrawn, "the Python to install it in")
        missing = self.run_program("generate", "-m", "smollm2", "--prompt", "a", expect=2, DECODELAB_CACHE=str(self.folder / "cache")).stderr
        self.assertIn("'decodelab fetch smollm2' downloads it", missing)


def load_tests(loader, tests, pattern):
    """The environments once more for each interpreter of PYTHONS."""
    for name in os.environ.get("PYTHONS", "").split():
        python = shutil.which(name) or sys.exit(f"PYTHONS: {name} was not found")
        tests.addTests(loader.loadTestsFromTestCase(type(f"AFreshEnvironmentOf_{os.path.basename(name)}", (AFreshEnvironment,), {"python": python})))
    return tests


if __name__ == "__main__":
    WHEEL = find_wheel()
    unittest.main(argv=[word for word in sys.argv if not word.endswith(".whl")], verbosity=2)
