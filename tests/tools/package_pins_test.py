"""The pins of pyproject.toml are those of tools/requirements.txt, and its dependencies those of the torch that builds."""

import importlib.util
import pathlib
import tomllib
import unittest
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PLUGIN = next(entry for entry in PROJECT["tool"]["dynamic-metadata"] if "others" in entry)


def pins():
    lines = (ROOT / "tools" / "requirements.txt").read_text(encoding="utf-8").splitlines()
    return {line.split()[0] for line in lines if line.strip() and not line.startswith("#")}


def plugin():
    spec = importlib.util.spec_from_file_location("torch_requirement", ROOT / PLUGIN["provider"]["path"] / "torch_requirement.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class PackagePins(unittest.TestCase):
    def test_what_builds_and_what_draws_is_pinned_as_in_the_checkout(self):
        for requirement in (*PROJECT["build-system"]["requires"], *PLUGIN["others"]):
            self.assertIn(requirement, pins())

    def test_a_wheel_depends_on_the_minor_release_of_the_torch_that_builds_it(self):
        module = plugin()
        with mock.patch.object(module, "version", return_value="2.12.1+cpu"):
            self.assertEqual(module.dynamic_metadata(PLUGIN, {}), {"dependencies": ["torch==2.12.*", *PLUGIN["others"]]})
        with mock.patch.object(module, "version", side_effect=module.PackageNotFoundError), self.assertRaisesRegex(SystemExit, "tools/bootstrap"):
            module.dynamic_metadata(PLUGIN, {})


if __name__ == "__main__":
    unittest.main()
