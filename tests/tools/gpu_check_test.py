"""Tests of tools/gpu_check with programs and an nvidia-smi that only write down how they were called; no GPU."""

import os
import shutil
import stat
import subprocess
import tempfile
import textwrap
import unittest

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "../.."))
SCRIPT = os.path.join(ROOT, "tools/gpu_check")

NVIDIA_SMI = """
    case $1 in
      -L) echo "GPU 0: A fake (UUID: GPU-0)" ;;
      *) echo "${FAKE_GPU_MB:-81920}" ;;
    esac
"""
# Writes its arguments down; a sweep leaves a store, as the real one does.
DECODELAB = """
    echo "$*" >> "$FAKE_CALLS"
    case $1 in
      list) [[ -z ${FAKE_NEEDS:-} || ${LD_LIBRARY_PATH:-} == *$FAKE_NEEDS* ]] || { echo "libtorch.so: cannot open" >&2; exit 127; }
            printf 'cpu\\n%s\\n' "${FAKE_DEVICE-cuda:0}" ;;
      sweep) touch "$FAKE_OUT/gpu.sqlite"; exit "${FAKE_SWEEP_CODE:-0}" ;;
      report) mkdir -p "$FAKE_OUT/report"; touch "$FAKE_OUT/report/report.html" ;;
      trace) printf '%s' "$FAKE_TRACE" > "${*: -1}"; exit 4 ;;
      store) [[ -f $FAKE_OUT/gpu.sqlite ]] ;;
    esac
"""
# The room that a disk has is not the same on every machine.
DF = """
    printf 'Filesystem 1048576-blocks Used Available Capacity Mounted on\\n/dev/fake 500000 0 %s 0%% /\\n' "${FAKE_DISK_MB:-400000}"
"""
# Runs what stands behind its two options.
NCU = 'shift 2; exec "$@"'
TRACE = '{"session": {"collectors": [{"name": "spans", "on": true, "reason": ""}, {"name": "cupti", "on": false, "reason": "%s"}]}}'
PASSING = '[==========] 3 tests from 2 test suites ran. (5 ms total)\n[  PASSED  ] 3 tests.'


class GpuCheckTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.bin, self.build, self.out = (os.path.join(self.folder, name) for name in ("bin", "build", "out"))
        self.calls = os.path.join(self.folder, "calls")
        for directory in (self.bin, self.build):
            os.mkdir(directory)
        self.write(self.bin, "nvidia-smi", NVIDIA_SMI)
        self.write(self.bin, "df", DF)
        self.write(self.bin, "ncu", NCU)
        self.write(self.build, "decodelab", DECODELAB)
        for program in ("engine_test", "variants_test"):
            self.write_test_program(program, PASSING)

    def write(self, folder, name, script):
        path = os.path.join(folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write("#!/usr/bin/env bash\n" + textwrap.dedent(script))
        os.chmod(path, os.stat(path).st_mode | stat.S_IXUSR)

    def write_test_program(self, name, output, code=0):
        self.write(self.build, name, f'echo "{name} $*" >> "$FAKE_CALLS"\ncat <<"END"\n{output}\nEND\nexit {code}\n')

    def run_script(self, *arguments, path=None, **environment):
        return subprocess.run([SCRIPT, "--build", self.build, "--out", self.out, *arguments], capture_output=True, text=True, timeout=120, check=False,
                              env={**os.environ, "PATH": path or f"{self.bin}:{os.environ['PATH']}", "FAKE_CALLS": self.calls, "FAKE_OUT": self.out,
                                   "FAKE_TRACE": TRACE % "ncu has it", **environment})

    def lines(self):
        with open(self.calls, encoding="utf-8") as file:
            return file.read().splitlines()

    def sweeps(self):
        return [line for line in self.lines() if line.startswith("sweep ")]

    def test_exits_with_77_and_runs_nothing_without_a_gpu(self):
        self.write(self.bin, "nvidia-smi", "exit 9")
        result = self.run_script()
        self.assertEqual(result.returncode, 77, result.stderr)
        self.assertIn("no GPU", result.stderr)
        self.assertFalse(os.path.exists(self.calls))

    def test_runs_tests_first_then_all_sweeps_and_leaves_a_page(self):
        result = self.run_script()
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        self.assertIn("all passed", result.stdout)
        programs = [line.split()[0] for line in self.lines()]
        self.assertEqual(programs[1:4], ["engine_test", "variants_test", "variants_test"], "the most telling come first")
        self.assertEqual([line.partition("--gtest_filter=")[2] for line in self.lines()[1:4]], ["*Cuda*", "*Cuda*-CudaCounters.*", "CudaCounters.*"],
                         "counters last, in a process of their own")
        first, second = (sum(f"-round{number} " in sweep for sweep in self.sweeps()) for number in (1, 2))
        self.assertEqual((first, second), (12, 12))
        for batch in (1, 32, 256):
            self.assertTrue(any(f"-m synthetic:santacoder --device cuda:0 --dtype fp16 --phase decode --batch {batch} " in sweep for sweep in self.sweeps()))
        for batch in (1, 8, 32, 256):
            self.assertTrue(any(f"-m synthetic:starcoder --device cuda:0 --dtype fp16 --phase decode --batch {batch} " in sweep for sweep in self.sweeps()))
        report = next(line for line in self.lines() if line.startswith("report "))
        self.assertEqual(report.count("gpu-"), 24)
        self.assertTrue(os.path.exists(os.path.join(self.out, "report/report.html")))

    def test_compares_graphs_in_decode_only_and_leaves_the_tanh_epilogue_out_of_starcoder(self):
        self.assertEqual(self.run_script().returncode, 0)
        for sweep in self.sweeps():
            self.assertEqual("+cuda-graph" in sweep, "--phase decode" in sweep, sweep)
            self.assertEqual("-fused-gelu" in sweep, "starcoder" in sweep, sweep)
            self.assertTrue("--arm causal " in sweep and "--arm bigcode " in sweep)

    def test_a_failed_test_a_skipped_one_and_none_at_all_are_failures(self):
        for output, code, reason in ((PASSING, 1, "exit code 1"), ("[  SKIPPED ] Cuda.Something", 0, "a GPU test skipped"),
                                     ("[==========] 0 tests from 0 test suites ran.", 0, "no test matches")):
            with self.subTest(reason):
                self.write_test_program("engine_test", output, code)
                result = self.run_script()
                self.assertEqual(result.returncode, 1)
                self.assertIn("FAIL  engine_test", result.stdout)
                self.assertIn(reason, result.stdout)
                self.assertIn("pass  variants_test", result.stdout, "the others run all the same")

    def test_counters_that_a_device_keeps_are_told_and_not_called_passed(self):
        refused = "device_counters_test.cpp:1: Skipped\nthe device's counters are refused: it is not ours\n\n[  SKIPPED ] CudaCounters.One (1 ms)\n"
        for skips, code in ((refused, 0), (refused + "[  SKIPPED ] Cuda.Another (1 ms)\n", 1)):
            with self.subTest(skips):
                self.write_test_program("variants_test", skips)
                result = self.run_script()
                self.assertEqual(result.returncode, code, result.stdout)
                self.assertNotIn("all passed", result.stdout)
                if code == 0:
                    self.assertIn("not checked: 1 of variants_test CudaCounters.*: the device's counters are refused: it is not ours", result.stdout)

    def test_a_trace_under_ncu_has_its_kernels_or_says_why_not(self):
        result = self.run_script()
        self.assertIn("pass  a trace under ncu", result.stdout)
        with open(os.path.join(self.out, "under_ncu.log"), encoding="utf-8") as log:
            self.assertIn("cupti under ncu: off: ncu has it", log.read())
        result = self.run_script(FAKE_TRACE=TRACE % "")
        self.assertEqual(result.returncode, 1)
        self.assertIn("does not say why", result.stdout)

    def test_a_machine_without_ncu_is_told_and_not_called_passed(self):
        os.remove(os.path.join(self.bin, "ncu"))
        if shutil.which("ncu"):
            self.skipTest("this machine has an ncu of its own")
        result = self.run_script()
        self.assertIn("not checked: a trace under ncu", result.stdout)
        self.assertNotIn("all passed", result.stdout)

    def test_a_program_that_is_not_built_is_named(self):
        os.remove(os.path.join(self.build, "decodelab"))
        result = self.run_script()
        self.assertEqual(result.returncode, 1)
        self.assertIn("decodelab is not built", result.stderr)

    def test_outputs_that_differ_fail_but_stay_in_the_report(self):
        result = self.run_script(FAKE_SWEEP_CODE="5")
        self.assertEqual(result.returncode, 1)
        self.assertIn("outputs differ", result.stdout)
        self.assertTrue(any(line.startswith("report ") for line in self.lines()))

    def test_an_interrupted_sweep_is_no_failure(self):
        self.assertEqual(self.run_script(FAKE_SWEEP_CODE="130").returncode, 0)

    def test_starts_no_sweep_that_the_budget_has_no_time_for(self):
        self.assertEqual(self.run_script("--budget", "1").returncode, 0)
        # 60 s less 30 for the report is less than any sweep gets.
        self.assertEqual(self.sweeps(), [])
        self.assertIn("nothing was measured", self.run_script("--budget", "1").stdout)

    def test_refuses_a_budget_that_is_no_number(self):
        for budget in ("0", "ten", "1.5"):
            result = self.run_script("--budget", budget)
            self.assertEqual(result.returncode, 1)
            self.assertIn(budget, result.stderr)

    def test_leaves_starcoder_out_where_the_gpu_is_too_small_and_says_so(self):
        result = self.run_script(FAKE_GPU_MB="24000")
        self.assertEqual(result.returncode, 0, result.stdout)
        self.assertIn("skip  starcoder: the GPU has 24000 MB", result.stdout)
        self.assertTrue(self.sweeps() and all("santacoder" in sweep for sweep in self.sweeps()))

    def test_leaves_starcoder_out_where_the_disk_is_too_small_and_says_so(self):
        result = self.run_script(FAKE_DISK_MB="31000")
        self.assertEqual(result.returncode, 0, result.stdout)
        self.assertIn("has 31000 MB of room", result.stdout)
        self.assertTrue(self.sweeps() and all("santacoder" in sweep for sweep in self.sweeps()))

    def test_finds_libtorch_through_python_where_the_programs_do_not_start(self):
        site = os.path.join(self.folder, "site")
        for directory in ("torch/lib", "nvidia/cu13/lib"):
            os.makedirs(os.path.join(site, directory))
        with open(os.path.join(site, "torch/__init__.py"), "w", encoding="utf-8") as file:
            file.write("raise ImportError('looking for torch must not import it')\n")
        result = self.run_script(FAKE_NEEDS=f"{site}/torch/lib:{site}/nvidia/cu13/lib", PYTHONPATH=site)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        self.assertIn(f"{self.build}/lib", result.stdout)

    def test_says_why_the_programs_do_not_start(self):
        result = self.run_script(FAKE_NEEDS="/nowhere/at/all")
        self.assertEqual(result.returncode, 1)
        self.assertIn("libtorch.so: cannot open", result.stderr)

    def test_a_build_without_cuda_is_told_apart_from_a_machine_without(self):
        result = self.run_script(FAKE_DEVICE="")
        self.assertEqual(result.returncode, 1)
        self.assertIn("sees no CUDA device", result.stderr)

    def test_a_bundle_has_the_programs_and_needs_no_gpu(self):
        self.write(self.bin, "nvidia-smi", "exit 9")
        self.write(self.bin, "ldd", """
            printf '\\tlibtorch_cpu.so => %s/torch/lib/libtorch_cpu.so (0x1)\\n' "$FAKE_OUT"
            printf '\\tlibc.so.6 => /lib/libc.so.6 (0x1)\\n\\tlibours.so.1 => %s/libours.so.1 (0x1)\\n' "$FAKE_LIBRARIES"
        """)
        with open(os.path.join(self.folder, "libours.so.1"), "w", encoding="utf-8") as file:
            file.write("a library")
        bundle = os.path.join(self.folder, "bundle")
        self.write(self.build, "libdecodelab_cuda.so", "")
        result = self.run_script("--bundle", bundle, FAKE_LIBRARIES=self.folder)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(sorted(os.listdir(bundle)), ["decodelab", "engine_test", "lib", "libdecodelab_cuda.so", "variants_test"])
        self.assertEqual(os.listdir(os.path.join(bundle, "lib")), ["libours.so.1"])


if __name__ == "__main__":
    unittest.main()
