"""`decodelab trace`: files that say the same in every format, verdicts and exit codes, and ranges that NVTX sees."""

import json
import os
import sqlite3
import unittest

from program import ProgramTest

CELL = ("-m", "synthetic:tiny", "--phase", "decode", "--batch", "2", "--length", "16", "--threads", "1", "--steps", "4")
# The perturbation depends on what else the machine does, and its check may contaminate a trace; tests of files leave it out.
UNDISTURBED = ("--pairs", "0")


class TraceTest(ProgramTest):
    def trace(self, *arguments, expect=0, **changes):
        return self.run_program("trace", *CELL, *UNDISTURBED, *arguments, expect=expect, **changes)

    def summary(self, path):
        with open(path, encoding="utf-8") as file:
            return json.load(file)

    def test_all_formats_hold_the_same_trace(self):
        files = [self.path(name) for name in ("t.sqlite", "t.pt.trace.json.gz")]
        outputs = [word for file in files for word in ("--out", file)]
        printed = self.trace("--arm", "bigcode", *outputs).stdout
        self.assertIn("verdict ok", printed)
        self.assertIn("in no stage", printed)
        explained = [self.run_program("trace", "explain", file).stdout for file in files]
        self.assertEqual(len(set(explained)), 1, "\n".join(explained))
        for file in files:
            self.assertIn(file, printed)
            self.assertIn("I16  passed", self.run_program("trace", "verify", file).stdout)

    def test_stages_and_residual_add_up_to_the_steps_in_sql(self):
        self.trace("--arm", "causal", "--out", self.path("t.sqlite"), "--out", self.path("t.json"))
        with sqlite3.connect(self.path("t.sqlite")) as database:
            rows = database.execute("select step, batch, keys, spanNs, residualNs, timerNs from STEP order by step").fetchall()
        self.assertEqual([row[:3] for row in rows], [(step, 2, 16 + step) for step in range(4)])
        for step in rows:
            self.assertGreater(step[4], 0, "no step is without any time outside of stages")
            self.assertLess(step[4], step[3])
        span, timer = sum(row[3] for row in rows), sum(row[5] for row in rows)
        self.assertAlmostEqual(timer / span, 1, delta=0.005)
        asked = self.run_program("trace", "sql", self.path("t.json"), "select count(*) as steps from STEP").stdout
        self.assertEqual(asked, "steps\n4\n")

    def test_each_arm_has_its_own_file_and_their_difference_is_explained(self):
        self.trace("--arm", "causal", "--arm", "bigcode", "--out", self.path("t.sqlite"))
        difference = self.run_program("trace", "diff", self.path("t-causal.sqlite"), self.path("t-bigcode.sqlite")).stdout
        self.assertIn("kv_write", difference)
        self.assertIn("sum", difference)

    def test_a_continuation_shows_what_was_guessed_checked_and_accepted(self):
        continuation = ["trace", *("continue" if word == "decode" else word for word in CELL), *UNDISTURBED, "--max-tokens", "8", "--arm"]
        printed = self.run_program(*continuation, "native,+oracle-draft:tokens=3").stdout
        self.assertIn("verdict ok", printed)
        for stage in ("draft", "verify", "accept", "attention"):
            self.assertRegex(printed, rf"\b{stage}\b")
        self.assertNotRegex(self.run_program(*continuation, "native").stdout, r"\bverify\b")

    def test_bytes_that_cannot_be_counted_are_a_sentence(self):
        printed = self.trace("--arm", "causal", "--bytes").stdout
        self.assertIn("verdict ok", printed)
        self.assertIn("bytes were not counted: a CPU does not tell", printed)

    def test_a_file_becomes_another(self):
        self.trace("--arm", "causal", "--out", self.path("t.sqlite"))
        self.run_program("trace", "import", self.path("t.sqlite"), "--out", self.path("t.summary.json"))
        summary = self.summary(self.path("t.summary.json"))
        self.assertEqual(len(summary["steps"]), 4)

    def test_a_run_keeps_the_account_of_each_arm(self):
        self.run_program("sweep", "-m", "synthetic:tiny", "--arm", "causal", "--arm", "bigcode", "--phase", "decode", "--batch", "1", "--length", "16",
                         "--threads", "1", "--quick", "--store", self.store)
        self.run_program("trace", "--run", "latest", "--store", self.store, "--steps", "4", *UNDISTURBED, "--out", self.path("r.pftrace"))
        for arm in ("causal", "bigcode"):
            self.assertTrue(os.path.exists(self.path(f"r-decode-b1-l16-{arm}.pftrace")), arm)
        with sqlite3.connect(self.store) as database:
            tables = {name for (name,) in database.execute("select name from sqlite_master where type = 'table'")}
            table = next(name for name in tables if "trace" in name and "share" not in name)
            self.assertEqual(database.execute(f"select count(*) from {table}").fetchone(), (2,))

    def test_mistakes_are_one_sentence(self):
        self.assert_one_sentence(self.trace("--arm", "causal", "--out", "t.xyz", expect=2), "--out", "t.xyz")
        self.assert_one_sentence(self.trace("--arm", "causal", "--out", "nowhere/t.pftrace", expect=2), "--out", "nowhere")
        self.assert_one_sentence(self.trace("--arm", "causal", "--batch", "1,2", expect=2), "--batch")
        self.assert_one_sentence(self.trace("--arm", "causal", "--tier", "3", expect=2), "--tier")
        self.assert_one_sentence(self.trace("--arm", "causal", "--most-events", "50", expect=2), "--steps")
        self.assert_one_sentence(self.run_program("trace", "verify", "absent.sqlite", expect=2), "absent.sqlite")
        with open(self.path("broken.trace"), "wb") as file:
            file.write(b"\x0b\xff\xff\xff\xff\x0f not a trace")
        self.assert_one_sentence(self.run_program("trace", "verify", self.path("broken.trace"), expect=2), "broken.trace")
        self.trace("--arm", "causal", "--out", self.path("t.sqlite"), "--out", self.path("t.pftrace"))
        for words in (("verify",), ("explain",), ("diff", self.path("t.sqlite"))):
            self.assert_one_sentence(self.run_program("trace", *words, self.path("t.pftrace"), expect=2), "t.pftrace", "--out t.sqlite")
        self.assert_one_sentence(self.run_program("trace", "sql", self.path("t.sqlite"), "select nothing", expect=2), "nothing")

    def test_doctor_names_every_collector_and_why_one_is_off(self):
        lines = self.run_program("trace", "doctor").stdout.splitlines()
        states = {line.split()[0]: line.split(maxsplit=2)[1:] for line in lines if line and not line.startswith("-")}
        for collector in ("spans", "operators", "perf", "nvml", "cupti", "nvtx"):
            self.assertIn(collector, states)
            if states[collector][0] == "off":
                self.assertGreater(len(states[collector]), 1, f"{collector} is off and does not say why")
        self.assertEqual(states["operators"][0], "runs")

    def test_the_command_of_nsys_keeps_kernels_in_graphs(self):
        printed = self.run_program("trace", "nsys-command", "--", "-m", "synthetic:tiny", "--arm", "bigcode,+cuda-graph").stdout
        for part in ("--cuda-graph-trace=node", "--capture-range=nvtx", "--nvtx-capture='window@decode'", "--arm bigcode,+cuda-graph"):
            self.assertIn(part, printed)

    def test_help_of_every_subcommand_has_an_example(self):
        for words in ((), ("verify",), ("explain",), ("diff",), ("sql",), ("import",), ("doctor",), ("nsys-command",)):
            self.assertIn("Example:", self.run_program("trace", *words, "--help").stdout, words)


class NvtxTest(ProgramTest):
    """The engine's ranges through the library that NVTX_INJECTION64_PATH names, in a process of its own."""

    def setUp(self):
        super().setUp()
        self.library = os.environ.get("NVTX_LIBRARY", "")
        if not os.path.exists(self.library):
            if os.environ.get("CI") == "true":
                self.fail("the build has no library that listens to NVTX, and bootstrap brings NVTX's headers")
            self.skipTest("NVTX_LIBRARY names no library: a build without NVTX, or a test that ctest did not start")

    def test_order_of_spans_is_that_of_the_trace(self):
        recorded = self.path("nvtx.txt")
        self.run_program("trace", *CELL, *UNDISTURBED, "--arm", "bigcode", "--tier", "1", "--out", self.path("t.sqlite"),
                         NVTX_INJECTION64_PATH=self.library, NVTX_RECORDER_FILE=recorded)
        with open(recorded, encoding="utf-8") as file:
            events = [line.rstrip("\n").split("\t") for line in file]
        self.assertEqual({event[1] for event in events}, {"decode"})
        window = next(index for index, event in enumerate(events) if event[2] == "window")
        depth, pushed = 0, []
        for kind, _, text, registered, payload in events[window:]:
            depth += 1 if kind == "push" else -1
            if kind == "push":
                self.assertEqual(registered, "registered", text)
                pushed.append((text, int(payload)))
            if depth == 0:
                break
        self.assertEqual(depth, 0, "the window was never left")
        self.assertEqual([payload for text, payload in pushed if text == "step"], [0, 1, 2, 3])
        in_steps = [text for text, _ in pushed[1:]]
        with sqlite3.connect(self.path("t.sqlite")) as database:
            spans = [text for (text,) in database.execute(
                "select coalesce(text, value) from NVTX_EVENTS left join StringIds on textId = id order by start, end desc, NVTX_EVENTS.rowid")]
        engine = [span for span in spans if span and not span.startswith("aten::") and not span.startswith("decodelab")]
        self.assertEqual(in_steps, engine)


if __name__ == "__main__":
    unittest.main()
