"""tools/slurm/submit on a real slurmctld, slurmd and munged, which the test starts on this machine and ends again.

Skips where it is not root or the packages slurm-wlm and munge are missing; tools/test --full installs them.
"""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "../.."))
PROGRAM = os.path.abspath(os.environ.get("DECODELAB", os.path.join(ROOT, "build/release/decodelab")))
SUBMIT = os.path.join(ROOT, "tools/slurm/submit")
DAEMONS = ("munged", "slurmctld", "slurmd")
START_LIMIT_S = 60
JOBS_LIMIT_S = 200
SWEEP = ["-m", "synthetic:tiny", "--arm", "causal", "--arm", "bigcode", "--phase", "decode", "--batch", "1,2", "--length", "16", "--launches", "2", "--blocks", "1",
         "--threads", "1", "--name", "sharded"]

CONFIGURATION = """
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller_port}
SlurmdPort={node_port}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SlurmUser=root
SlurmdUser=root
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
MpiDefault=none
MailProg=/bin/true
ReturnToService=2
SlurmdParameters=config_overrides
NodeName={host} NodeAddr=127.0.0.1 CPUs={cpus} RealMemory=500 State=UNKNOWN
PartitionName=p Nodes={host} Default=YES MaxTime=INFINITE State=UP
"""


def why_not():
    if os.geteuid() != 0:
        return "slurmd runs jobs as other users and has to be root"
    missing = [name for name in DAEMONS if not shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")]
    if missing:
        return f"{', '.join(missing)} missing: apt-get install slurm-wlm munge"
    if not os.access(PROGRAM, os.X_OK):
        return f"{PROGRAM} is not built"
    return ""


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Cluster:
    """One node, its controller and their munged, in a folder of their own and on ports of their own."""

    def __init__(self, folder):
        self.folder = folder
        self.daemons = []
        for name in ("state", "spool"):
            os.mkdir(os.path.join(folder, name))
        with open(self.path("munge.key"), "wb") as key:
            os.chmod(key.fileno(), 0o600)
            key.write(os.urandom(128))
        with open(self.path("slurm.conf"), "w", encoding="utf-8") as file:
            file.write(CONFIGURATION.format(folder=folder, host=socket.gethostname().split(".")[0], cpus=os.cpu_count(), controller_port=free_port(),
                                            node_port=free_port()))
        self.environment = {**os.environ, "SLURM_CONF": self.path("slurm.conf"), "PATH": os.environ["PATH"] + ":/usr/sbin:/sbin"}

    def path(self, name):
        return os.path.join(self.folder, name)

    def start(self):
        self.daemon("munged", "--foreground", "--force", "--key-file", self.path("munge.key"), "--socket", self.path("munge.socket"), "--pid-file",
                    self.path("munged.pid"), "--log-file", self.path("munged.log"), "--seed-file", self.path("munged.seed"))
        self.wait_until(lambda: os.path.exists(self.path("munge.socket")))
        self.daemon("slurmctld", "-D", "-c")
        self.daemon("slurmd", "-D")
        self.wait_until(lambda: self.ask("sinfo", "--noheader", "--format=%t") == "idle")

    def daemon(self, name, *arguments):
        log = open(self.path(name + ".out"), "w", encoding="utf-8")
        self.daemons.append(subprocess.Popen([name, *arguments], stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=self.environment))
        log.close()

    def ask(self, *command):
        result = subprocess.run(command, capture_output=True, text=True, env=self.environment, timeout=60)
        return result.stdout.strip() if result.returncode == 0 else f"failed: {result.stderr.strip()}"

    def wait_until(self, true, limit_s=START_LIMIT_S):
        deadline = time.monotonic() + limit_s
        while not true():
            dead = [daemon.args[0] for daemon in self.daemons if daemon.poll() is not None]
            if dead or time.monotonic() > deadline:
                raise RuntimeError(f"dead: {dead}; {self.ask('squeue')}; {self.ask('scontrol', 'show', 'jobs')}\n{self.logs()}")
            time.sleep(0.2)

    def wait_for_jobs(self):
        self.wait_until(lambda: self.ask("squeue", "--noheader") == "", JOBS_LIMIT_S)

    def logs(self):
        texts = []
        for name in sorted(os.listdir(self.folder)):
            if name.endswith((".out", ".log")):
                with open(self.path(name), encoding="utf-8", errors="replace") as file:
                    texts.append(f"-- {name}\n{file.read()[-3000:]}")
        return "\n".join(texts)

    def stop(self):
        self.ask("scancel", "--user=root")
        for daemon in reversed(self.daemons):
            daemon.send_signal(signal.SIGTERM)
            try:
                daemon.wait(timeout=20)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()


class Slurm(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        reason = why_not()
        if reason:
            print(f"SKIPPED: {reason}", file=sys.stderr)
            raise unittest.SkipTest(reason)
        # munged wants every folder above its socket to be closed to other writers, which /tmp is by its sticky bit.
        folder = tempfile.mkdtemp(prefix="decodelab-slurm-")
        os.chmod(folder, 0o755)
        cls.addClassCleanup(shutil.rmtree, folder, ignore_errors=True)
        cls.cluster = Cluster(folder)
        cls.addClassCleanup(cls.cluster.stop)
        cls.cluster.start()

    def submit(self, *arguments, expect=0):
        environment = {**self.cluster.environment, "DECODELAB_CACHE": self.cluster.path("cache")}
        result = subprocess.run([SUBMIT, *arguments], capture_output=True, text=True, env=environment, cwd=self.cluster.folder, timeout=60)
        self.assertEqual(result.returncode, expect, result.stdout + result.stderr)
        return result

    def rows(self, store):
        result = subprocess.run([PROGRAM, "store", "export", "latest", "--store", store, "-o", "jsonl"], capture_output=True, text=True, timeout=60)
        self.assertEqual(result.returncode, 0, result.stderr + self.cluster.logs())
        return [json.loads(line) for line in result.stdout.splitlines()]

    def read(self, *parts):
        with open(os.path.join(*parts), encoding="utf-8") as file:
            return file.read()

    def test_measures_every_cell_in_one_shard_and_merges_them(self):
        out = self.cluster.path("out")
        printed = self.submit("2", "--out", out, "--program", PROGRAM, "--", *SWEEP).stdout
        self.assertIn(os.path.join(out, "merged.sqlite"), printed)
        self.cluster.wait_for_jobs()
        logs = {name: self.read(out, name) for name in sorted(os.listdir(out)) if name.endswith(".log")}
        self.assertIn("merged.sqlite", os.listdir(out), logs)
        rows = self.rows(os.path.join(out, "merged.sqlite"))
        self.assertEqual([(row["batch"], row["arm"], row["status"], row["blocks"]) for row in rows],
                         [(batch, arm, "ok", 2) for batch in (1, 2) for arm in ("causal", "bigcode")], logs)
        for index in (1, 2):
            statuses = {row["batch"]: row["status"] for row in self.rows(os.path.join(out, f"shard-{index}.sqlite"))}
            self.assertEqual(statuses, {index: "ok", 3 - index: "planned"})
        self.assertIn("1 runs added, 1 completed", logs["merge.log"])

        # The same folder again would mix two sweeps.
        self.assertIn("earlier sweep", self.submit("2", "--out", out, "--program", PROGRAM, "--", *SWEEP, expect=1).stderr)

    def test_merges_nothing_where_a_shard_failed(self):
        out = self.cluster.path("failing")
        program = self.cluster.path("failing-program")
        with open(program, "w", encoding="utf-8") as file:
            file.write(f'#!/bin/sh\ncase "$*" in *dry-run*) exit 0 ;; *"--shard 2/2"*) echo died; exit 70 ;; esac\nexec {PROGRAM} "$@"\n')
        os.chmod(program, 0o755)
        self.submit("2", "--out", out, "--program", program, "--", *SWEEP)
        self.cluster.wait_for_jobs()
        self.assertIn("died", self.read(out, "shard-2.log"))
        self.assertEqual({row["status"] for row in self.rows(os.path.join(out, "shard-1.sqlite"))}, {"ok", "planned"})
        self.assertNotIn("merged.sqlite", os.listdir(out))

    def test_starts_the_ranks_of_a_model_as_tasks(self):
        """As a user would: in an allocation, the first rank's process is the job's, and srun starts the others."""
        starts, store = self.cluster.path("starts"), self.cluster.path("ranks.sqlite")
        srun = self.cluster.path("started-by-srun")
        with open(srun, "w", encoding="utf-8") as file:
            file.write(f'#!/bin/sh\necho "$SLURM_JOB_ID" >> {starts}\nexec srun --overlap --ntasks=1 "$@"\n')
        os.chmod(srun, 0o755)
        words = [word for word in SWEEP if word not in ("causal", "bigcode", "--arm")]
        command = ["salloc", "--quiet", "--ntasks=1", PROGRAM, "sweep", *words, "--arm", "native", "--arm", "native,+shm-ranks", "--store", store]
        environment = {**self.cluster.environment, "DECODELAB_CACHE": self.cluster.path("cache"), "DECODELAB_RANKS_BY": srun}
        result = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=self.cluster.folder, timeout=JOBS_LIMIT_S)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr + self.cluster.logs())
        self.assertEqual([(row["arm"], row["status"], row["reason"]) for row in self.rows(store)], [(arm, "ok", None) for arm in ("native", "native,+shm-ranks")] * 2)
        jobs = self.read(starts).split()
        self.assertEqual(len(jobs), 2, "a rank for each launch")
        self.assertEqual(len(set(jobs)), 1)
        self.assertTrue(jobs[0].isdigit(), jobs)
        self.cluster.wait_for_jobs()

    def test_refuses_before_it_submits(self):
        out = self.cluster.path("refused")
        for words, arguments in ((["--shard 3/3", "2 cells"], ["3", "--", *SWEEP]), (["--arm"], ["2", "--", "-m", "synthetic:tiny"]),
                                 (["--store", "leave it away"], ["2", "--", *SWEEP, "--store", "x"]), (["how many shards"], ["--", *SWEEP]),
                                 (["no sweep"], ["2"])):
            result = self.submit("--out", out, "--program", PROGRAM, *arguments, expect=1)
            for word in words:
                self.assertIn(word, result.stderr)
        self.assertEqual(self.cluster.ask("squeue", "--noheader"), "")
        self.assertFalse(os.path.exists(out))


class TheJob(unittest.TestCase):
    """What a task does, with a program that only writes down what it was asked for."""

    def run_shard(self, **codes):
        with tempfile.TemporaryDirectory() as folder:
            program = os.path.join(folder, "program")
            with open(program, "w", encoding="utf-8") as file:
                file.write(f'#!/bin/sh\necho "$*" >>{folder}/calls\n[ "$1" = store ] && exit {codes["store"]}\nexit {codes["sweep"]}\n')
            os.chmod(program, 0o755)
            result = subprocess.run([os.path.join(ROOT, "tools/slurm/job"), "shard", program, "/out", "3", "-m", "a b"], env={**os.environ, "SLURM_ARRAY_TASK_ID": "2"},
                                    capture_output=True, text=True, timeout=60)
            with open(os.path.join(folder, "calls"), encoding="utf-8") as file:
                return result.returncode, file.read().splitlines()[-1]

    def test_begins_its_shard_and_goes_on_with_one_that_its_store_has(self):
        self.assertEqual(self.run_shard(store=2, sweep=0), (0, "sweep -m a b --shard 2/3 --store /out/shard-2.sqlite"))
        self.assertEqual(self.run_shard(store=0, sweep=0), (0, "sweep --resume latest --store /out/shard-2.sqlite"))

    def test_fails_with_its_sweep_unless_only_outputs_differ(self):
        self.assertEqual(self.run_shard(store=2, sweep=70)[0], 70)
        self.assertEqual(self.run_shard(store=2, sweep=130)[0], 130)
        self.assertEqual(self.run_shard(store=2, sweep=5)[0], 0)


if __name__ == "__main__":
    unittest.main()
