"""Tests of tools/check_includes.py on small trees in a temporary folder."""

import os
import subprocess
import sys
import tempfile
import unittest

TOOLS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tools")
SCRIPT = os.path.join(TOOLS, "check_includes.py")
sys.path.insert(0, TOOLS)
import check_includes  # noqa: E402

# What every tree has, so that a test states only what it is about.
COMMON = {
    "engine/tensor.h": "// The only include of ATen.\n#pragma once\n#include <ATen/ATen.h>\n",
    "engine/engine.h": "// The engine.\n#pragma once\n#include <vector>\n",
    "profiles/range.h": "// A range.\n#pragma once\n",
    "profiles/trace/trace.h": "// A trace.\n#pragma once\n",
    "reports/store/record.h": "// A record.\n#pragma once\n",
    "variants/registry.h": "// The registry.\n#pragma once\n",
    "bench/plan/arm.h": "// An arm.\n#pragma once\n",
    "tests/tolerance.h": "// Tolerances.\n#pragma once\n",
}


def cpp(*includes):
    return "// A file.\n" + "".join(f"#include {include}\n" for include in includes)


def write_tree(root, files):
    for path, text in {**COMMON, **files}.items():
        os.makedirs(os.path.dirname(os.path.join(root, path)), exist_ok=True)
        with open(os.path.join(root, path), "w", encoding="utf-8") as file:
            file.write(text)


class CheckIncludesTest(unittest.TestCase):
    def offences(self, files):
        """The offences in COMMON and `files`, as the script prints them."""
        with tempfile.TemporaryDirectory() as root:
            write_tree(root, files)
            return [str(offence) for offence in check_includes.check_tree(root)]

    def test_prints_a_line_per_offence_and_exits_with_1(self):
        for files, printed, code in (({}, "", 0), ({"engine/a.h": "// A.\n"}, "engine/a.h:1: a header needs #pragma once\n", 1)):
            with self.subTest(files=files), tempfile.TemporaryDirectory() as root:
                write_tree(root, files)
                done = subprocess.run([sys.executable, SCRIPT, root], capture_output=True, text=True, check=False)
                self.assertEqual((done.stdout, done.stderr, done.returncode), (printed, "", code))

    def test_a_room_includes_lower_rooms_only(self):
        self.assertEqual(self.offences({"engine/kernels/k.h": "// K.\n#pragma once\n",
                                        "engine/layers/l.cpp": cpp('"engine/kernels/k.h"', '"engine/tensor.h"')}), [])
        for path, target in (("engine/kernels/k.cpp", "engine/layers/l.h"), ("engine/layers/l.cpp", "engine/engine.h"),
                             ("reports/store/s.cpp", "reports/page/p.h"), ("profiles/trace/t.cpp", "profiles/write/w.h")):
            with self.subTest(path=path):
                lines = self.offences({path: cpp(f'"{target}"'), target: "// A header.\n#pragma once\n"})
                self.assertEqual(len(lines), 1, lines)
                self.assertIn("is in a room above", lines[0])

    def test_everybody_may_include_the_ground_floor_and_it_nobody(self):
        ground = {"base/text.h": "// Text.\n#pragma once\n"}
        for folder in ("base", "engine", "profiles", "reports", "variants", "bench", "tests"):
            with self.subTest(folder=folder):
                self.assertEqual(self.offences({**ground, f"{folder}/a.cpp": cpp('"base/text.h"')}), [])
        lines = self.offences({"base/a.cpp": cpp('"engine/engine.h"')})
        self.assertEqual(len(lines), 1, lines)
        self.assertIn("base/ may not include engine/engine.h", lines[0])

    def assert_allowed(self, path, *includes):
        self.assertEqual(self.offences({path: cpp(*includes)}), [])

    def assert_refused(self, path, include, sentence):
        """Exactly one offence, on the line of the include, with that text in its sentence."""
        lines = self.offences({path: cpp("<vector>", include)})
        self.assertEqual(len(lines), 1, lines)
        self.assertTrue(lines[0].startswith(f"{path}:3: "), lines)
        self.assertIn(sentence, lines[0])

    def test_accepts_every_allowed_edge(self):
        self.assert_allowed("engine/plan.cpp", '"engine/engine.h"', '"profiles/range.h"', '"engine/tensor.h"')
        self.assert_allowed("variants/softmax/fused.cpp", '"engine/tensor.h"', '"variants/registry.h"', '"profiles/range.h"')
        self.assert_allowed("bench/commands/sweep.cpp", '"variants/registry.h"', '"engine/engine.h"', '"profiles/trace/trace.h"',
                            '"reports/store/record.h"', '"bench/plan/arm.h"')
        self.assert_allowed("reports/store/store.cpp", '"reports/store/record.h"')
        self.assert_allowed("profiles/trace/trace.cpp", '"profiles/trace/trace.h"')
        self.assert_allowed("tests/engine/plan_test.cpp", '"engine/tensor.h"', '"bench/plan/arm.h"', '"reports/store/record.h"',
                            '"tests/tolerance.h"')

    def test_refuses_every_arrow_that_runs_back_up(self):
        for path, include in (
            ("engine/a.cpp", "variants/registry.h"), ("engine/a.cpp", "bench/plan/arm.h"), ("engine/a.cpp", "reports/store/record.h"),
            ("engine/a.cpp", "profiles/trace/trace.h"), ("variants/rng/a.cpp", "bench/plan/arm.h"),
            ("variants/rng/a.cpp", "profiles/trace/trace.h"), ("variants/rng/a.cpp", "reports/store/record.h"),
            ("reports/a.cpp", "profiles/range.h"), ("reports/a.cpp", "engine/engine.h"), ("profiles/a.cpp", "reports/store/record.h"),
            ("profiles/a.cpp", "engine/engine.h"), ("bench/a.cpp", "tests/tolerance.h"), ("engine/a.cpp", "tests/tolerance.h"),
        ):
            with self.subTest(path=path, include=include):
                self.assert_refused(path, f'"{include}"', f"may not include {include}")

    def test_refuses_an_arrow_in_angle_brackets_too(self):
        lines = self.offences({"reports/a.cpp": cpp("<engine/engine.h>")})
        self.assertEqual(len(lines), 2, lines)
        self.assertIn("may not include engine/engine.h", lines[1])

    def test_lets_only_the_tensor_header_include_torch(self):
        for path in ("engine/a.cpp", "variants/rng/a.cpp", "bench/measure/torch_ops.cpp", "bench/micro/a_benchmark.cpp",
                     "tests/engine/a_test.cpp", "reports/a.cpp"):
            for include in ("<ATen/ATen.h>", "<torch/torch.h>", "<c10/core/Device.h>", '"ATen/ATen.h"'):
                with self.subTest(path=path, include=include):
                    self.assert_refused(path, include, "torch is included through engine/tensor.h only")

    def test_lets_only_users_of_torch_include_the_tensor_header(self):
        for path in ("bench/measure/torch_ops.cpp", "bench/micro/a_benchmark.cpp", "tests/engine/a_test.cpp"):
            with self.subTest(path=path):
                self.assert_allowed(path, '"engine/tensor.h"')
        for path in ("bench/measure/steps.cpp", "bench/commands/sweep.cpp", "bench/main.cpp"):
            with self.subTest(path=path):
                self.assert_refused(path, '"engine/tensor.h"', "forward-declare at::Tensor")

    def test_refuses_torch_in_cuda_files_directly_and_through_headers(self):
        self.assert_refused("engine/kernels/a.cu", "<ATen/ATen.h>", "a CUDA file includes no torch header")
        self.assert_refused("engine/kernels/a.cu", '"engine/tensor.h"', "a CUDA file includes no torch header")
        lines = self.offences({
            "engine/kernels/deep.h": "// Deep.\n#pragma once\n#include \"engine/tensor.h\"\n",
            "engine/kernels/near.h": "// Near.\n#pragma once\n#include \"engine/kernels/deep.h\"\n",
            "engine/kernels/a.cu": cpp("<cuda_runtime.h>", '"engine/kernels/near.h"'),
        })
        self.assertEqual(lines, ["engine/kernels/a.cu:3: a CUDA file includes no torch header, but this reaches "
                                 "engine/kernels/near.h -> engine/kernels/deep.h -> engine/tensor.h"])

    def test_survives_headers_that_include_each_other(self):
        self.assertEqual(self.offences({
            "engine/a.cuh": "// A.\n#pragma once\n#include \"engine/b.cuh\"\n",
            "engine/b.cuh": "// B.\n#pragma once\n#include \"engine/a.cuh\"\n",
        }), [])

    def test_wants_own_includes_from_the_root_in_quotes(self):
        self.assert_refused("engine/a.cpp", '"engine.h"', "from the repository's root")
        self.assert_refused("engine/layers/a.cpp", '"../engine.h"', "from the repository's root")
        self.assert_refused("engine/a.cpp", '"nlohmann/json.hpp"', "in angle brackets")
        self.assert_refused("engine/a.cpp", "<engine/engine.h>", 'write "engine/engine.h"')
        self.assert_allowed("bench/commands/version.cpp", '"decodelab_commit.h"', "<nlohmann/json.hpp>")

    def test_wants_a_comment_on_the_first_line(self):
        self.assertEqual(self.offences({"engine/a.cpp": "#include <vector>\n"}),
                         ["engine/a.cpp:1: line 1 is one sentence on what the file is for, in a comment"])
        self.assertEqual(len(self.offences({"engine/a.cpp": ""})), 1)
        self.assertEqual(len(self.offences({"cmake/a.cmake": "include_guard(GLOBAL)\n"})), 1)
        self.assertEqual(len(self.offences({"CMakeLists.txt": "project(a)\n"})), 1)
        self.assertEqual(len(self.offences({"tools/peers/a.py": "import os\n"})), 1)
        self.assertEqual(self.offences({"tools/peers/a.py": '"""A worker."""\n'}), [])

    def test_wants_the_comment_of_a_script_below_its_first_line(self):
        self.assertEqual(self.offences({"tools/build": "#!/usr/bin/env bash\n# Builds.\n"}), [])
        self.assertEqual(self.offences({"tools/build": "#!/usr/bin/env bash\nset -e\n"}),
                         ["tools/build:2: line 2 is one sentence on what the file is for, in a comment"])

    def test_wants_pragma_once_in_headers_only(self):
        self.assertEqual(self.offences({"engine/a.h": "// A.\nint a();\n"}), ["engine/a.h:1: a header needs #pragma once"])
        self.assertEqual(self.offences({"engine/a.cpp": "// A.\nint a();\n"}), [])

    def test_refuses_the_line_after_the_five_hundredth(self):
        self.assertEqual(self.offences({"engine/a.cpp": "// A.\n" * 500}), [])
        self.assertEqual(self.offences({"engine/a.cpp": "// A.\n" * 501}), ["engine/a.cpp:501: 501 lines; a file has at most 500"])

    def test_leaves_data_and_products_alone(self):
        self.assertEqual(self.offences({"tests/data/a.py": "import os\n", "build/release/a.cpp": "int a;\n",
                                        ".venv/lib/a.py": "import os\n", "README.md": "text\n"}), [])

    def test_does_not_take_a_comment_for_an_include(self):
        self.assert_allowed("reports/a.cpp", "<vector>  // not #include \"engine/engine.h\"")
        self.assertEqual(self.offences({"reports/a.cpp": '// A.\n// #include "engine/engine.h"\n'}), [])


if __name__ == "__main__":
    unittest.main()
