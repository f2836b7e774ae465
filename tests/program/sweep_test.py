"""A sweep from outside: its rows, its report, its exit codes, and its death."""

import json
import os
import re
import resource
import signal
import sqlite3
import subprocess
import time
import unittest

from program import PROGRAM, ProgramTest

KEYS = """arm model phase scope batch length dtype device threads status reason engaged launches blocks steps warmup median_ns mean_ns min_ns max_ns p90_ns p95_ns
p99_ns time_ratio time_ratio_low time_ratio_high speedup mde verdict bound_share peak_bytes flags counters verdict_reason p_t p_sign_flip p_family""".split()
# A visit fills 0.2 s however small the model is, so that the tests are as few cells, launches and blocks as they can be.
SMALL = ["-m", "synthetic:tiny", "--arm", "causal", "--arm", "bigcode", "--batch", "2", "--length", "16"]


class ASweep(ProgramTest):
    def sweep(self, *arguments, **keywords):
        return self.run_json("sweep", "--store", self.store, *arguments, **keywords)

    def test_has_a_row_with_every_key_for_each_cell_and_arm(self):
        answer = self.sweep(*SMALL, "--phase", "prefill,decode,generate", "--launches", 2, "--blocks", 1, "--max-tokens", 4)
        self.assertEqual(answer["schema_version"], 1)
        rows = answer["rows"]
        self.assertEqual(len(rows), 3 * 2)
        for row in rows:
            self.assertEqual([key for key in KEYS if key not in row], [])
            self.assertEqual(row["status"], "ok", row)
            self.assertEqual(row["engaged"], True if row["arm"] == "bigcode" and row["phase"] != "generate" else None, row["reason"])
            self.assertGreater(row["counters"]["operators"], 0)
            self.assertEqual(row["counters"]["counted_steps"], 8 if row["phase"] == "decode" else 1)
            self.assertEqual((row["launches"], row["blocks"]), (2, 2))
            self.assertGreater(row["min_ns"], 0)
            self.assertLessEqual(row["min_ns"], row["median_ns"])
            self.assertLessEqual(row["median_ns"], row["max_ns"])
            self.assertGreater(row["peak_bytes"], 0)
            if row["arm"] == "bigcode":
                self.assertLess(row["time_ratio_low"], row["time_ratio"])
                self.assertLess(row["time_ratio"], row["time_ratio_high"])
        prefill = {(row["batch"], row["length"], row["arm"]): row for row in rows if row["phase"] == "prefill"}
        self.assertLess(prefill[2, 16, "bigcode"]["peak_bytes"], prefill[2, 16, "causal"]["peak_bytes"])

    def test_says_the_answer_first_and_adds_the_launches_that_a_verdict_needs(self):
        one_cell = [*SMALL, "--phase", "decode"]
        text = self.run_program("sweep", "--store", self.store, *one_cell, "--launches", 2, "--blocks", 1).stdout
        sentence = " ".join(text.split("\n\n")[0].split())
        self.assertRegex(sentence, r"^(bigcode takes|No difference between bigcode and causal was resolved)")
        more = re.search(r"Not a verdict yet: 2 launches, 6 needed \(about .* more: `decodelab (sweep --resume 1) --store \S+ (--launches 6)`\)", sentence)
        self.assertTrue(more, sentence)
        self.assertNotIn("Batch Size", text, "latency tables are for --verbose")
        answer = self.sweep(*more[1].split()[1:], *more[2].split())
        self.assertEqual([(row["launches"], row["blocks"]) for row in answer["rows"]], [(6, 6)] * 2)
        refused = self.run_program("sweep", "--store", self.store, "--resume", "1", "--launches", 8, expect=2)
        self.assert_one_sentence(refused, "false alarms")
        fewer = self.run_program("sweep", "--store", self.store, "--resume", "1", "--launches", 3, expect=2)
        self.assert_one_sentence(fewer, "--launches 3")

    def test_says_what_it_would_do_and_does_nothing(self):
        result = self.run_program("sweep", "--store", self.store, *SMALL, "--dry-run")
        self.assertIn("b2 tg @ d16", result.stdout)
        self.assertIn("about", result.stdout)
        self.assertFalse(os.path.exists(self.store))

    def test_makes_rows_of_cells_that_do_not_fit_the_model(self):
        answer = self.sweep("-m", "synthetic:tiny", "--arm", "causal", "--phase", "decode", "--length", "16,2041", "--launches", 1, "--blocks", 1)
        self.assertEqual([row["status"] for row in answer["rows"]], ["ok", "unsupported"])
        self.assertIn("positions", answer["rows"][1]["reason"])

    def test_never_tries_a_cell_that_cannot_fit_into_memory(self):
        answer = self.sweep("-m", "synthetic:tiny", "--arm", "causal", "--arm", "bigcode", "--phase", "prefill", "--batch", "1,1000000", "--length", "128",
                            "--launches", 1, "--blocks", 1)
        by_batch = {(row["batch"], row["arm"]): row for row in answer["rows"]}
        self.assertEqual(by_batch[1000000, "causal"]["status"], "oom")
        self.assertIn("GB", by_batch[1000000, "causal"]["reason"])
        self.assertEqual(by_batch[1, "causal"]["status"], "ok")

    def test_makes_nothing_of_a_model_that_cannot_fit_into_memory(self):
        cache = self.path("cache")
        # StarCoder takes 31 GB in bf16.
        few = lambda: resource.setrlimit(resource.RLIMIT_AS, (20 << 30, 20 << 30))
        result = subprocess.run([PROGRAM, "sweep", "-m", "synthetic:starcoder", "--dtype", "bf16", "--arm", "causal", "--arm", "native", "--length", "16",
                                 "--phase", "prefill,decode", "--store", self.store, "-o", "json"],
                                capture_output=True, text=True, env=self.environment(DECODELAB_CACHE=cache), preexec_fn=few, timeout=60)
        self.assertEqual(result.returncode, 0, result.stderr)
        rows = json.loads(result.stdout)["rows"]
        self.assertEqual([row["status"] for row in rows], ["oom"] * 4)
        self.assertIn("synthetic:starcoder takes 31.", rows[0]["reason"])
        self.assertFalse(os.path.exists(cache))
        result = subprocess.run([PROGRAM, "generate", "-m", "synthetic:starcoder", "--dtype", "bf16", "--prompt-ids", "1"],
                                capture_output=True, text=True, env=self.environment(DECODELAB_CACHE=cache), preexec_fn=few, timeout=60)
        self.assertNotEqual(result.returncode, 0)
        self.assert_one_sentence(result, "not enough memory", "16-bit dtype")

    def test_measures_an_arm_without_each_of_its_switches_and_with_it_what_cannot_run_without(self):
        arguments = ["-m", "synthetic:tiny", "--arm", "causal,+fused-gelu,+packed-linear", "--ablate", "leave-one-out", "--phase", "decode", "--length", "16",
                     "--launches", 2, "--blocks", 1]
        planned = self.run_program("sweep", *arguments, "--dry-run").stdout
        self.assertIn("3 arms: causal,+fused-gelu,+packed-linear (baseline)", planned)
        # The tanh form of gelu is fused into own products alone.
        rows = {row["arm"]: row for row in self.sweep(*arguments)["rows"]}
        for arm in ("causal,+packed-linear", "causal"):
            self.assertEqual(rows[arm]["status"], "ok")
            self.assertGreater(rows[arm]["time_ratio_high"], 0)
        self.run_program("report", "latest", "--store", self.store, "--out", self.path("report"))
        with open(self.path("report", "report.md"), encoding="utf-8") as report:
            self.assertIn("Switches by effect, compared with causal,+fused-gelu,+packed-linear", report.read())

    def test_says_and_keeps_where_its_time_went(self):
        result = self.run_program("sweep", "--store", self.store, *SMALL, "--phase", "decode", "--launches", 2, "--blocks", 1, "-o", "json")
        times = json.loads(result.stdout)["times_spent"]
        self.assertEqual({time["launch"] for time in times}, {0, 1})
        spent = {(time["launch"], time["arm"], time["activity"]): time["ns"] for time in times}
        for launch in (0, 1):
            for arm in ("causal", "bigcode"):
                for activity in ("checking", "filling", "warming", "timing"):
                    self.assertGreater(spent[launch, arm, activity], 0, (launch, arm, activity))
            self.assertGreater(spent[launch, None, "rest"], 0)
        self.assertIn((0, "causal", "counting"), spent)
        self.assertNotIn((1, "causal", "counting"), spent, "counters are counted once a run")
        timed = sum(sum(self.decoded(samples)) for (samples,) in self.query("SELECT samples_ns FROM visits"))
        self.assertGreaterEqual(sum(ns for (_, _, activity), ns in spent.items() if activity == "timing"), timed)
        lines = result.stderr.strip().splitlines()
        self.assertRegex(lines[-4], r"^decodelab: [\w ]+: [\d.]+ % timed steps, [\d.]+ % warm-up, ")
        self.assertRegex(lines[-3], r"^decodelab:   causal, [\w ]+: ")
        self.assertRegex(lines[-1], r"^decodelab:   shared by all arms, [\w ]+: ")
        self.run_program("report", "latest", "--store", self.store, "--out", self.path("report"))
        with open(self.path("report", "report.html"), encoding="utf-8") as page:
            self.assertIn("Where the time went", page.read())

    def test_cuts_its_rows_from_prompts_and_shows_what_arms_say_to_them(self):
        prompts = self.path("prompts.jsonl")
        with open(prompts, "w", encoding="utf-8") as file:
            file.write('{"prompt_ids": [5, 17, 96, 3], "class": "numbers"}\n{"prompt_ids": [7]}\n')
        rows = self.run_json("sweep", "-m", "synthetic:tiny", "--prompts", prompts, "--arm", "causal", "--arm", "native", "--phase", "prefill,decode", "--batch", "2",
                             "--length", "9", "--launches", 2, "--blocks", 1, "--store", self.path("a.sqlite"), "--name", "real")["rows"]
        self.assertEqual({row["status"] for row in rows}, {"ok"})
        with sqlite3.connect(self.path("a.sqlite")) as store:
            self.assertEqual(store.execute("SELECT DISTINCT fill FROM cells").fetchall(), [("generated",)])
        self.run_program("report", "real", "--store", self.path("a.sqlite"), "--out", self.path("report"), "--format", "md,html")
        with open(self.path("report", "report.md"), encoding="utf-8") as file:
            text = file.read()
        self.assertIn("What it says", text)
        self.assertIn("every arm says the same", text)
        self.assertIn("numbers: 4 tokens", text)
        says = [completion["token_ids"] for completion in
                self.run_json("generate", "-m", "synthetic:tiny", "--prompts", prompts, "--max-tokens", 24)["completions"]]
        self.assertIn("token ids " + ", ".join(map(str, says[0])), text)

    def test_refuses_prompts_that_it_cannot_use(self):
        prompts = self.path("prompts.jsonl")
        for line, words in (('{"prompt": "words"}', ("--prompts", "tokenizer")), ('{"prompt_ids": [999999]}', ("prompt 1", "999999")),
                            ('{"text": "words"}', ("line 1", "text"))):
            with self.subTest(line):
                with open(prompts, "w", encoding="utf-8") as file:
                    file.write(line + "\n")
                refused = self.run_program("sweep", "-m", "synthetic:tiny", "--prompts", prompts, "--arm", "causal", "--store", self.path("a.sqlite"), expect=2)
                self.assert_one_sentence(refused, *words)

    def test_holds_later_launches_against_what_the_first_proved(self):
        arguments = [*SMALL, "--phase", "decode", "--launches", 2, "--blocks", 1]
        self.sweep(*arguments)
        self.assertEqual([len(tokens) for (tokens,) in [(json.loads(text),) for (text,) in self.query("SELECT tokens FROM cell_proofs")]], [8])
        digests = [chosen for (chosen,) in self.query("SELECT chosen FROM arm_proofs")]
        self.assertEqual((len(digests), len(set(digests))), (2, 1), "in fp32 both arms choose the reference's tokens")
        # A run whose proof is not what its arms choose: they are compared with the reference anew, and go on.
        with sqlite3.connect(self.store) as connection:
            connection.execute("UPDATE arm_proofs SET chosen = 'other'")
            connection.execute("DELETE FROM blocks WHERE launch = 1")
            connection.execute("UPDATE runs SET ended_unix_ns = 0")
        rows = self.run_json("sweep", "--store", self.store, "--resume", "latest")["rows"]
        self.assertEqual([(row["status"], row["blocks"]) for row in rows], [("ok", 2)] * 2)
        self.assertEqual({chosen for (chosen,) in self.query("SELECT chosen FROM arm_proofs")}, set(digests))

    def test_plans_a_row_for_every_variant_that_could_be_added(self):
        planned = self.run_program("sweep", "-m", "synthetic:tiny", "--ablate", "add-one", "--arm", "bigcode", "--phase", "decode", "--length", "16",
                                   "--dry-run").stdout
        self.assertIn("bigcode,+lean-forward", planned)
        self.assertIn("'kv-grow' and 'kv-static' both bind the slot 'kv_growth'", planned)
        refused = self.run_program("sweep", *SMALL, "--ablate", "half", expect=2)
        self.assert_one_sentence(refused, "--ablate", "add-one", "leave-one-out")

    def test_resumes_after_a_sigkill_with_every_finished_block(self):
        arguments = [PROGRAM, "sweep", "--store", self.store, *SMALL, "--launches", "3", "--blocks", "2", "--name", "killed"]
        process = subprocess.Popen(arguments, cwd=self.folder, env=self.environment(), stdout=subprocess.DEVNULL, start_new_session=True)
        self.addCleanup(process.kill)
        finished = 0
        deadline = time.monotonic() + 300
        while finished < 3 and time.monotonic() < deadline:
            time.sleep(0.05)
            finished = self.blocks()
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        time.sleep(0.5)  # The launch dies with its parent; what it was storing is stored or not.
        kept = self.blocks()
        self.assertGreaterEqual(kept, 3)
        self.assertLess(kept, 3 * 2 * 2)
        before = self.samples()
        answer = self.run_json("sweep", "--store", self.store, "--resume", "killed")
        self.assertEqual(self.blocks(), 3 * 2 * 2)
        self.assertEqual(before, self.samples()[:len(before)])
        for row in answer["rows"]:
            self.assertEqual((row["status"], row["launches"], row["blocks"]), ("ok", 3, 6))

    def test_closes_the_block_in_hand_when_it_is_interrupted(self):
        arguments = [PROGRAM, "sweep", "--store", self.store, *SMALL, "--launches", "50", "--blocks", "3"]
        process = subprocess.Popen(arguments, cwd=self.folder, env=self.environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.kill)
        deadline = time.monotonic() + 300
        while self.blocks() < 3 and time.monotonic() < deadline:
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130)
        self.assertIn("--resume 1", errors)

    def test_binds_its_threads_to_the_cores_that_it_is_given(self):
        core = min(os.sched_getaffinity(0))
        answer = self.sweep("-m", "synthetic:tiny", "--arm", "causal", "--phase", "decode", "--length", "16", "--launches", 1, "--blocks", 1, "--affinity", core)
        self.assertEqual(answer["rows"][0]["threads"], 1)
        self.assertEqual(json.loads(self.query("SELECT plan_json FROM runs")[0][0])["affinity"], [core])
        self.assert_one_sentence(self.run_program("sweep", *SMALL, "--affinity", f"{core},5000", expect=2), "5000")

    def test_makes_as_few_launches_as_the_time_allows(self):
        answer = self.sweep("-m", "synthetic:tiny", "--arm", "causal", "--arm", "bigcode", "--phase", "decode", "--length", "16", "--blocks", 1, "--launches", 40,
                            "--time-budget", 8)
        launches = answer["rows"][0]["launches"]
        self.assertGreaterEqual(launches, 2)
        self.assertLess(launches, 40)
        self.assertEqual(self.query("SELECT launches, ended_unix_ns > 0 FROM runs"), [(launches, 1)])

    def test_reads_its_flags_from_a_file(self):
        with open(self.path("sweep.toml"), "w", encoding="utf-8") as file:
            file.write('model = "synthetic:tiny"\narm = ["causal", "bigcode,+kv-grow:tokens=16"]\nphase = "decode"\nbatch = "1,2"\nlength = 16\nlaunches = 1\nblocks = 1\n')
        answer = self.sweep("--config", self.path("sweep.toml"), "--batch", "2")
        self.assertEqual([(row["arm"], row["batch"]) for row in answer["rows"]], [("causal", 2), ("bigcode,+kv-grow:tokens=16", 2)])
        with open(self.path("sweep.toml"), "a", encoding="utf-8") as file:
            file.write("lenght = 3\n")
        self.assert_one_sentence(self.run_program("sweep", "--config", self.path("sweep.toml"), expect=2), "lenght")
        self.assert_one_sentence(self.run_program("sweep", "--config", self.path("none.toml"), expect=2), "none.toml")

    def blocks(self):
        return self.query("SELECT count(*) FROM blocks")[0][0] if os.path.exists(self.store) else 0

    def decoded(self, samples):
        return [int.from_bytes(samples[place : place + 8], "little") for place in range(0, len(samples), 8)]

    def samples(self):
        return self.query("SELECT samples_ns FROM visits ORDER BY block_id, position")

    def query(self, sql):
        try:
            connection = sqlite3.connect(f"file:{self.store}?mode=ro", uri=True, timeout=30)
            with connection:
                return connection.execute(sql).fetchall()
        except sqlite3.OperationalError as error:
            if "no such table" not in str(error) and "unable to open" not in str(error):
                raise
            return [[0]]  # Not made yet.


class AReport(ProgramTest):
    def test_is_written_for_a_run_by_its_name(self):
        self.run_program("sweep", "--store", self.store, *SMALL, "--launches", 2, "--blocks", 1, "--name", "first")
        out = self.path("report")
        result = self.run_program("report", "first", "--store", self.store, "--out", out)
        self.assertTrue(result.stdout.strip().endswith("report.html"))
        with open(os.path.join(out, "report.json"), encoding="utf-8") as file:
            self.assertIn("schema_version", json.load(file))
        from chromium import dump_dom
        dom = dump_dom(os.path.join(out, "report.html"))
        self.assertIn("bigcode", dom)
        self.assertGreater(dom.count("<svg"), 1)


class SayingWhatThereIs(ProgramTest):
    def test_version_names_commit_compiler_libtorch_and_cuda(self):
        printed = self.run_program("--version").stdout
        for word in ("decodelab ", "compiler", "libtorch  2.", "CUDA"):
            self.assertIn(word, printed)

    def test_list_names_variants_presets_models_slots_and_devices(self):
        printed = self.run_program("list").stdout
        for word in ("kv-grow", "bigcode", "synthetic:santacoder", "kv_growth", "cpu"):
            self.assertIn(word, printed)

    def test_every_subcommand_has_help_with_an_example(self):
        for command in ("sweep", "report", "generate", "list"):
            printed = self.run_program(command, "--help").stdout
            self.assertIn("Example:", printed)
            self.assertIn(f"decodelab {command}", printed)


if __name__ == "__main__":
    unittest.main()
