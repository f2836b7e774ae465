"""What is stored stays stored: kills at any moment, writes that fail, a full disk, a read-only store, two writers, a clock that jumps."""

import hashlib
import os
import random
import signal
import sqlite3
import subprocess
import time
import unittest

from program import PROGRAM, ProgramTest

HERE = os.path.dirname(os.path.abspath(__file__))
KILLS = int(os.environ.get("DECODELAB_KILLS", "12"))
CELL = ["-m", "synthetic:tiny", "--phase", "decode", "--batch", "1", "--length", "16"]
ARMS = [*CELL, "--arm", "causal", "--arm", "bigcode"]
SWEEP = [*ARMS, "--launches", "3", "--blocks", "2"]
GATE = [*CELL, "--baseline-arm", "bigcode", "--candidate-arm", "bigcode", "--no-preflight"]


class AStore(ProgramTest):
    def read(self, sql):
        connection = sqlite3.connect(f"file:{self.store}?mode=ro", uri=True, timeout=60)
        try:
            return connection.execute(sql).fetchall()
        finally:
            connection.close()

    def blocks(self):
        """{place of a block: digest of what it measured}, once the file is whole."""
        if not os.path.exists(self.store) or not self.read("SELECT count(*) FROM sqlite_master WHERE name = 'visits'")[0][0]:
            return {}
        self.assertEqual(self.read("PRAGMA integrity_check"), [("ok",)])
        self.assertEqual(self.read("PRAGMA foreign_key_check"), [])
        blocks = {}
        for *place, position, samples in self.read("SELECT run_id, launch, block, cell_id, position, samples_ns FROM visits JOIN blocks ON blocks.id = block_id "
                                                   "ORDER BY 1, 2, 3, 4, 5"):
            blocks.setdefault(tuple(place), hashlib.sha256()).update(bytes([position]) + samples)
        return {place: digest.hexdigest() for place, digest in blocks.items()}

    def assert_kept(self, before):
        after = self.blocks()
        for place, digest in before.items():
            self.assertEqual(after.get(place), digest, f"block {place} was lost or changed")
        return after

    def wait_until_alone(self):
        """Until no process works on the store: the launches of a killed sweep die with it."""
        deadline = time.monotonic() + 30
        while self.is_worked_on():
            self.assertLess(time.monotonic(), deadline, "a killed program left a process behind")
            time.sleep(0.02)

    def is_worked_on(self):
        for process in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{process}/cmdline", "rb") as file:
                    if self.store.encode() in file.read():
                        return True
            except OSError:
                pass  # it ended meanwhile
        return False

    def unfinished_sweep(self):
        """The newest sweep without an end, or nothing."""
        rows = self.read("SELECT id FROM runs WHERE ended_unix_ns = 0 AND command NOT LIKE '%gate%' ORDER BY id DESC LIMIT 1") if os.path.exists(self.store) else []
        return rows[0][0] if rows else None


class AKill(AStore):
    def test_at_a_random_moment_loses_no_finished_block(self):
        chance = random.Random(int(os.environ.get("DECODELAB_SEED", "1")))
        self.run_program("sweep", *ARMS, "--launches", 1, "--blocks", 1, "--store", self.store)
        known = self.blocks()
        resumed = 0
        for _ in range(KILLS):
            open_run = self.unfinished_sweep()
            if chance.random() < 0.3:
                command = ["gate", *GATE]
            elif open_run is not None and chance.random() < 0.7:
                command = ["sweep", "--resume", str(open_run)]
                resumed += 1
            else:
                command = ["sweep", *SWEEP]
            process = subprocess.Popen([PROGRAM, *command, "--store", self.store], cwd=self.folder, env=self.environment(), stdout=subprocess.DEVNULL,
                                       stderr=subprocess.DEVNULL)
            try:
                process.wait(timeout=chance.uniform(0.02, 4))
            except subprocess.TimeoutExpired:
                os.kill(process.pid, signal.SIGKILL)
                process.wait()
            self.wait_until_alone()
            known = self.assert_kept(known)
        self.assertGreater(len(known), 1)
        if KILLS >= 10:
            self.assertGreater(resumed, 0)
        open_run = self.unfinished_sweep()
        if open_run is not None:
            answer = self.run_json("sweep", "--resume", open_run, "--store", self.store)
            self.assertEqual({(row["status"], row["blocks"]) for row in answer["rows"]}, {("ok", 6)})
            self.assert_kept(known)


class AFault(AStore):
    @classmethod
    def setUpClass(cls):
        cls.library = os.path.join(os.environ.get("TMPDIR", "/tmp"), f"decodelab-fault-{os.getpid()}.so")
        cls.addClassCleanup(lambda: os.path.exists(cls.library) and os.remove(cls.library))
        subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", cls.library, os.path.join(HERE, "fault.c"), "-ldl"], check=True)

    def run_with_fault(self, kind, *arguments, after=0, expect=None):
        return self.run_program(*arguments, "--store", self.store, expect=expect, LD_PRELOAD=self.library, FAULT_KIND=kind, FAULT_PATH="store.sqlite",
                                FAULT_AFTER=str(after))

    def test_of_the_disk_loses_no_finished_block_and_is_named(self):
        self.run_program("sweep", *SWEEP, "--store", self.store)
        known = self.blocks()
        for kind, word in (("full", "full"), ("broken", "I/O")):
            for after in (0, 3, 10, 25, 40):
                with self.subTest(kind=kind, after=after):
                    result = self.run_with_fault(kind, "sweep", *ARMS, "--launches", 1, "--blocks", 12, after=after)
                    self.assertNotEqual(result.returncode, 0)
                    self.assertIn("store.sqlite", result.stderr)
                    self.assertTrue(word in result.stderr or "No space left" in result.stderr, result.stderr)
                    self.assertLessEqual(len(result.stderr.strip().splitlines()), 2, result.stderr)
                    known = self.assert_kept(known)
        # With room again, what was begun goes on.
        open_run = self.unfinished_sweep()
        self.assertIsNotNone(open_run)
        self.run_program("sweep", "--resume", open_run, "--store", self.store)
        self.assert_kept(known)

    def test_of_a_read_only_store_is_named_before_anything_is_measured(self):
        self.run_program("sweep", *ARMS, "--launches", 1, "--blocks", 1, "--store", self.store)
        known = self.blocks()
        start = time.monotonic()
        result = self.run_with_fault("readonly", "sweep", *SWEEP)
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assert_one_sentence(result, "store.sqlite", "read-only")
        self.assertLess(time.monotonic() - start, 10)
        self.assertEqual(self.blocks(), known)
        self.run_with_fault("readonly", "report", "latest", "--out", self.path("report"), expect=0)

    def test_of_the_clock_changes_neither_times_nor_order(self):
        result = self.run_with_fault("clock", "sweep", *SWEEP, "-o", "json", expect=0)
        self.assertIn('"status": "ok"', result.stdout)
        self.assertEqual(len(self.blocks()), 6)
        # A step takes milliseconds; one that was timed by a clock that jumps would take an hour, or less than nothing.
        lowest, highest = self.read("SELECT min(wall_ns), max(wall_ns) FROM visits")[0]
        self.assertGreater(lowest, 0)
        self.assertLess(highest, 60e9)
        self.run_program("report", "latest", "--store", self.store, "--out", self.path("report"))


class TwoWriters(AStore):
    def test_of_one_store_both_finish(self):
        processes = [subprocess.Popen([PROGRAM, "sweep", *SWEEP, "--name", name, "--store", self.store], cwd=self.folder, env=self.environment(),
                                      stdout=subprocess.DEVNULL) for name in ("one", "two")]
        self.assertEqual([process.wait(timeout=300) for process in processes], [0, 0])
        self.assertEqual(len(self.blocks()), 2 * 6)


if __name__ == "__main__":
    unittest.main()
