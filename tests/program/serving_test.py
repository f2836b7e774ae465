"""A server behind HTTP as an arm: `decodelab worker --serve` and `--url`, against a fake one."""

import os
import re
import socket
import subprocess
import sys
import time
import urllib.request

import unittest

from program import PROGRAM, ProgramTest

FAKE = os.path.abspath(os.path.join(os.path.dirname(__file__), "../data/fake_server.py"))
CELL = ["-m", "synthetic:tiny", "--length", "8", "--threads", "1", "--blocks", "1", "--max-tokens", "4"]


def worker(*options, more=()):
    """The command of a worker that starts a fake server."""
    serve = " ".join([sys.executable, FAKE, "--port {port}", *options])
    return " ".join([PROGRAM, "worker", f"--serve '{serve}'", *more])


class Serving(ProgramTest):
    def sweep(self, *arguments, launches=1, **keywords):
        return self.run_json("sweep", "--store", self.store, *CELL, "--launches", launches, *arguments, **keywords)["rows"]

    def assert_nothing_is_left(self):
        left = subprocess.run(["pgrep", "-f", FAKE], capture_output=True, text=True)
        self.assertEqual(left.stdout, "", "no server outlives its sweep")

    def test_a_server_is_measured_beside_our_own_arms_and_chooses_the_same_tokens(self):
        right = worker(f"--program {PROGRAM} --model synthetic:tiny")
        rows = self.sweep("--scope", "serving", "--phase", "prefill,decode,generate", "--arm", "causal", "--arm", "bigcode", "--worker", f"server={right}", launches=2)
        self.assertEqual(len(rows), 9)
        for row in rows:
            self.assertEqual((row["status"], row["scope"]), ("ok", "serving"), row)
        served = [row for row in rows if row["arm"] == "server"]
        self.assertEqual([row["phase"] for row in served], ["prefill", "decode", "generate"])
        for row in served:
            self.assertIn("tokens-only", row["flags"])
            self.assertNotIn("tokens-bundled", row["flags"])
            self.assertGreater(row["counters"]["client_cpu_ns"], 0)
            self.assertGreater(row["counters"]["empty_round_trip_ns"], 0)
        decode = served[1]
        # Of single steps nothing can be said: a token that is read late is soon followed by the next.
        self.assertGreater(decode["median_ns"], 500_000, "a token takes the fake server a millisecond")
        report = self.path("report")
        self.run_program("report", "latest", "--store", self.store, "--out", report, "--format", "md")
        with open(os.path.join(report, "report.md")) as file:
            self.assertIn("scope serving", file.read())
        self.assert_nothing_is_left()

    def test_each_misbehaviour_is_a_row_with_a_reason_and_never_a_hang(self):
        cases = {
            "wrong": (worker(), "incorrect", "the arm chose id"),
            "silent": (worker("--shows-no-ids"), "unsupported", "shows no token ids"),
            "dies": (worker("--dies-after 0"), "failed", "the server ended with exit code 3; its last line: the fake server ran out of patience"),
            "stalls": (worker("--hangs-after 0", more=["--stall-seconds 1"]), "failed", "sent nothing for 1 s"),
            "absent": (f"{PROGRAM} worker --url http://127.0.0.1:{self.free_port()}", "failed", "cannot be connected to"),
            "broken": (worker("--no-such-flag"), "failed", "the server ended with exit code 2"),
        }
        workers = [word for name, (command, _, _) in cases.items() for word in ("--worker", f"{name}={command}")]
        # 5: one of them is incorrect.
        rows = {row["arm"]: row for row in self.sweep("--scope", "serving", "--phase", "decode", "--arm", "causal", *workers, expect=5)}
        self.assertEqual(rows["causal"]["status"], "ok")
        for name, (_, status, reason) in cases.items():
            self.assertEqual(rows[name]["status"], status, rows[name])
            self.assertIn(reason, rows[name]["reason"])
        self.assert_nothing_is_left()

    def test_one_that_dies_while_it_is_timed_loses_its_further_visits(self):
        # Two workers that say the same: one is the reference of the other.
        rows = {row["arm"]: row for row in self.sweep("--scope", "serving", "--phase", "decode", "--worker", f"first={worker()}", "--worker",
                                                     f"second={worker('--dies-after 6')}")}
        self.assertEqual(rows["first"]["status"], "ok", rows["first"])
        self.assertEqual(rows["second"]["status"], "failed", rows["second"])
        self.assertIn("exit code 3", rows["second"]["reason"])
        self.assert_nothing_is_left()

    def test_tokens_that_come_bundled_are_marked(self):
        rows = self.sweep("--scope", "serving", "--phase", "decode", "--worker", f"first={worker()}", "--worker", f"bundles={worker('--bundle 3')}")
        flags = {row["arm"]: row["flags"] for row in rows}
        self.assertIn("tokens-bundled", flags["bundles"])
        self.assertNotIn("tokens-bundled", flags["first"])

    def test_llama_servers_own_form_is_spoken_too_and_batches_are_served(self):
        command = worker(more=["--api llama.cpp"])
        rows = self.sweep("--scope", "serving", "--phase", "decode,batching", "--batch", "2", "--worker", f"first={command}", "--worker", f"second={worker()}")
        self.assertEqual({row["scope"] for row in rows}, {"serving", "served", "first-token", "between-tokens"})
        for row in rows:
            self.assertEqual(row["status"], "ok", row)
        tokens = [row["counters"]["new_tokens"] for row in rows if row["scope"] == "served"]
        self.assertEqual(len(set(tokens)), 1)

    def test_a_server_needs_the_scope_that_it_has(self):
        rows = self.sweep("--phase", "decode,generate", "--arm", "causal", "--worker", f"server={worker()}")
        for row in rows:
            if row["arm"] == "server":
                self.assertEqual(row["status"], "unsupported")
                self.assertIn("pass --scope serving", row["reason"])

    def test_what_a_server_cannot_do_is_said_by_name(self):
        for label, flags, reason in (("server", ["--samples", "2"], "2 samples of each prompt are asked for"), ("server@samples=2", [], "2 samples of each prompt are asked for"),
                                     ("server@prefix=0.5", [], "@prefix")):
            rows = self.sweep("--scope", "serving", "--phase", "prefill", "--arm", "causal", "--worker", f"{label}={worker()}", *flags)
            refused = [row for row in rows if row["status"] == "unsupported"]
            self.assertEqual(len(refused), 1, rows)
            self.assertIn(reason, refused[0]["reason"])
        rows = self.sweep("--phase", "continue", "--arm", "causal", "--worker", f"server={worker()}")
        self.assertIn("the worker has no phase continue", next(row["reason"] for row in rows if row["arm"] == "server"))
        rows = self.sweep("--phase", "decode", "--temperature", "0.8", "--arm", "causal", "--worker", f"server={worker()}")
        self.assertIn("the worker cannot sample with", next(row["reason"] for row in rows if row["arm"] == "server"))
        for setting in ("@regex=a*", "@top-tokens=3", "@prompt-top-tokens=3", "@typical-p=0.5"):
            rows = self.sweep("--scope", "serving", "--phase", "prefill", "--arm", "causal", "--worker", f"server{setting}={worker()}")
            self.assertEqual([row["status"] for row in rows if row["arm"] == "causal"], ["ok"])
            [refused] = [row for row in rows if row["arm"].startswith("server")]
            self.assertEqual(refused["status"], "unsupported")
            self.assertTrue(refused["reason"].startswith(setting.split("=")[0] + ": workers "), refused["reason"])
        result = self.run_program("sweep", "--store", self.store, *CELL, "--arm", "causal", "--scope", "serving", "--temperature", "0.8", expect=2)
        self.assert_one_sentence(result, "serving-warped")

    def test_one_that_runs_already_is_asked_by_its_url(self):
        port = self.free_port()
        server = subprocess.Popen([sys.executable, FAKE, "--port", str(port)])
        self.addCleanup(server.wait)
        self.addCleanup(server.kill)
        for _ in range(200):
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/health").close()
                break
            except OSError:
                time.sleep(0.05)
        url = f"{PROGRAM} worker --url http://127.0.0.1:{port}"
        rows = self.sweep("--scope", "serving", "--phase", "prefill", "--worker", f"first={url}", "--worker", f"second={url} --api llama.cpp")
        self.assertEqual([row["status"] for row in rows], ["ok", "ok"], rows)
        self.assertIsNone(server.poll(), "it is not the worker's to end")

    def test_a_killed_sweep_leaves_no_server_behind(self):
        sweep = subprocess.Popen([PROGRAM, "sweep", "--store", self.store, *CELL, "--launches", "50", "--scope", "serving", "--phase", "decode", "--worker", f"first={worker()}",
                                  "--worker", f"second={worker()}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=self.environment())
        servers = ["pgrep", "-f", f"^{sys.executable} {FAKE}"]
        self.wait_until(lambda: len(subprocess.run(servers, capture_output=True).stdout.split()) == 2)
        sweep.kill()
        sweep.wait()
        self.wait_until(lambda: not subprocess.run(["pgrep", "-f", FAKE], capture_output=True).stdout)

    def wait_until(self, holds):
        for _ in range(400):
            if holds():
                return
            time.sleep(0.05)
        self.fail("it never came to that")

    def test_bad_flags_are_refused_in_a_sentence(self):
        for words, named in ((["--url", "ftp://x"], "http://"), (["--url", "http://h", "--serve", "s {port}"], "--serve"), (["--serve", "s"], "{port}"),
                             (["--url", "http://h", "--api", "grpc"], "--api"), (["--url", "http://h", "--arm", "native"], "--arm"), (["--model", "m"], "--url"),
                             (["--url", "http://h", "--stall-seconds", "0"], "--stall-seconds"), (["--url", "http://h"], "descriptor 3")):
            self.assert_one_sentence(self.run_program("worker", *words, expect=2), named)
        self.assertTrue(re.search(r"--url.*llama\.cpp", self.run_program("worker", "--help").stdout, re.S))

    @staticmethod
    def free_port():
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
            return listener.getsockname()[1]


if __name__ == "__main__":
    unittest.main()
