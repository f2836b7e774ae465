"""Ranks in processes share a model: the same tokens, and where one is killed at any stage a row with a reason, no hang and nothing left behind."""

import json
import os
import random
import signal
import sqlite3
import subprocess
import time
import unittest

from program import PROGRAM, ProgramTest

KILLS = int(os.environ.get("DECODELAB_KILLS", "12")) // 3
SHARED = "native,+shm-ranks"
SWEEP = ["sweep", "-m", "synthetic:tiny", "--phase", "prefill,decode", "--batch", "1,3", "--length", "16", "--arm", "native", "--arm", SHARED, "--launches", "1", "--blocks", "1",
         "--threads", "2"]


def ranks_of(folder):
    """The processes `decodelab rank` whose parents work in `folder`."""
    found = []
    for process in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{process}/cmdline", "rb") as file:
                if b"rank" in file.read().split(b"\0")[1:2] and os.readlink(f"/proc/{process}/cwd") == folder:
                    found.append(int(process))
        except OSError:
            pass  # it ended meanwhile
    return found


class Ranks(ProgramTest):
    def tokens(self, arm, model="synthetic:tiny"):
        answer = self.run_json("generate", "-m", model, "--arm", arm, "--prompt-ids", "1,2,3,4,5", "--prompt-ids", "9,8,7", "--max-tokens", "12", "--threads", "2")
        return [completion["token_ids"] for completion in answer["completions"]]

    def rows(self):
        connection = sqlite3.connect(self.store)
        try:
            return connection.execute("SELECT arms.label, cell_arms.status, cell_arms.reason FROM cell_arms JOIN arms ON arms.id = arm_id ORDER BY 1").fetchall()
        finally:
            connection.close()

    def assert_nothing_left(self):
        deadline = time.monotonic() + 20
        while ranks_of(os.path.realpath(self.folder)):
            self.assertLess(time.monotonic(), deadline, "a rank was left behind")
            time.sleep(0.05)

    def test_they_say_what_one_process_says(self):
        self.assertEqual(self.tokens(SHARED), self.tokens("native"))
        self.assertEqual(self.tokens(SHARED + ":ranks=4"), self.tokens("native"))
        self.assert_nothing_left()

    def test_a_sweep_compares_them_with_one_process(self):
        self.run_program(*SWEEP, "--store", self.store)
        self.assertEqual([(label, status) for label, status, _ in self.rows()], [("native", "ok")] * 4 + [(SHARED, "ok")] * 4, self.rows())
        self.assert_nothing_left()

    def test_they_serve_requests_that_come_at_a_rate(self):
        words = [word for word in SWEEP if word not in ("prefill,decode", "1,3")]
        words[words.index("--phase") + 1:words.index("--phase") + 1] = ["batching"]
        words[words.index("--batch") + 1:words.index("--batch") + 1] = ["2"]
        self.run_program(*words, "--max-tokens", "4", "--request-rate", "inf,100", "--goodput", "tpot=10000", "--store", self.store)
        self.assertEqual([(label, status) for label, status, _ in self.rows()], [("native", "ok")] * 8 + [(SHARED, "ok")] * 8, self.rows())
        self.assert_nothing_left()

    def test_a_trace_has_a_track_of_each(self):
        files = [os.path.join(self.folder, name) for name in ("t.sqlite", "t.pt.trace.json")]
        result = self.run_program("trace", "-m", "synthetic:tiny", "--length", "16", "--arm", SHARED + ":ranks=4", "--steps", "4", "--pairs", "0", "--threads", "4", "--out", files[0], "--out", files[1])
        for rank in ("rank 1", "rank 2", "rank 3"):
            self.assertRegex(result.stdout, rank + r" +[0-9.,]+ +[0-9.]+ %")
        connection = sqlite3.connect(files[0])
        try:
            sums = connection.execute("SELECT count(*) FROM NVTX_EVENTS e LEFT JOIN StringIds s ON s.id = e.textId WHERE coalesce(e.text, s.value) = 'all_reduce' GROUP BY globalTid").fetchall()
        finally:
            connection.close()
        self.assertEqual(len(sums), 4, sums)
        self.assertEqual(len(set(sums)), 1, "each rank takes part in as many sums")
        with open(files[1], encoding="utf-8") as file:
            events = json.load(file)["traceEvents"]
        named = {event["args"]["name"]: event["pid"] for event in events if event["name"] == "thread_name"}
        self.assertEqual(len({named[name] for name in ("main", "rank 1", "rank 2", "rank 3")}), 4, "each has a process of its own")
        self.run_program("trace", "verify", files[0])
        self.assert_nothing_left()

    def test_a_model_that_does_not_divide_is_a_row_with_a_reason(self):
        arm = SHARED + ":ranks=3"
        self.run_program(*[arm if word == SHARED else word for word in SWEEP], "--store", self.store)
        reasons = {reason for label, status, reason in self.rows() if label == arm and status == "unsupported"}
        self.assertEqual(len(reasons), 1, self.rows())
        self.assertIn("4 heads, which 3 ranks cannot share evenly", reasons.pop())

    def test_a_rank_that_is_killed_is_a_row_and_no_hang(self):
        """Killed after a random time: while it loads, prefills, decodes, or waits between them."""
        memory_files = set(os.listdir("/dev/shm"))
        generator = random.Random(5)
        failed = 0
        for _ in range(max(2, KILLS)):
            if os.path.exists(self.store):
                os.remove(self.store)
            sweep = subprocess.Popen([PROGRAM, *SWEEP, "--store", self.store], cwd=self.folder, env=self.environment(), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            deadline = time.monotonic() + 60
            while not (ranks := ranks_of(os.path.realpath(self.folder))) and sweep.poll() is None:
                self.assertLess(time.monotonic(), deadline, "no rank was started")
                time.sleep(0.005)
            time.sleep(generator.uniform(0, 1.2))
            for process in ranks:
                try:
                    os.kill(process, signal.SIGKILL)
                except ProcessLookupError:
                    pass  # the sweep is done with it
            _, errors = sweep.communicate(timeout=300)
            rows = self.rows()
            self.assertEqual(len(rows), 8, errors)
            for label, status, reason in rows:
                if label == "native":
                    self.assertEqual(status, "ok", reason)
                elif status != "ok":
                    failed += 1
                    self.assertEqual(status, "failed", reason)
                    self.assertRegex(reason, "rank 1 of 2 died of signal 9|ranks of the model have failed")
            self.assert_nothing_left()
        self.assertGreater(failed, 0, "no rank was killed while it was needed")
        self.assertEqual(set(os.listdir("/dev/shm")) - memory_files, set())

    def test_a_program_that_is_killed_takes_its_ranks_along(self):
        sweep = subprocess.Popen([PROGRAM, *SWEEP, "--store", self.store], cwd=self.folder, env=self.environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 60
        while not ranks_of(os.path.realpath(self.folder)):
            self.assertLess(time.monotonic(), deadline, "no rank was started")
            time.sleep(0.005)
        sweep.kill()
        sweep.wait()
        self.assert_nothing_left()

    def test_a_rank_is_not_started_by_hand(self):
        result = self.run_program("rank", "--checkpoint", "x", "--dtype", "fp32", "--device", "cpu", "--arm", "native", "--rank", "1", "--first", "1", "--threads", "1", "--memory", "/dev/nothing", expect=2)
        self.assert_one_sentence(result, "--memory", "not by hand")


if __name__ == "__main__":
    unittest.main()
