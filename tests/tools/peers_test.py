"""Tests of the worker protocol's server (tools/peers) with an engine that computes nothing; no torch."""

import json
import os
import subprocess
import sys
import tempfile
import time
import types
import unittest
import unittest.mock

from fake_worker import FakeEngine, next_token
from worker_driver import PEERS, WARMUP, Worker, prepare, read_logits
from worker_protocol import Server, Warmup

import checkpoint
import kept_state

FAKE = [sys.executable, os.path.join(os.path.dirname(os.path.abspath(__file__)), "fake_worker.py")]
PROMPTS = [[1, 2, 3], [4, 5, 6]]


def following(token, count):
    tokens = []
    for _ in range(count):
        token = next_token(token)
        tokens.append(token)
    return tokens


class WarmupTest(unittest.TestCase):
    def steps_until_done(self, samples, **changes):
        rule = Warmup(**{"minimum_ns": 20, "window": 8, "quiet_share": 0.01, "slow_step_ns": 500, "maximum_steps": 50, **changes})
        for sample in samples:
            if rule.add(sample):
                break
        return len(rule.samples), rule.quiet()

    def test_ends_when_the_halves_of_the_window_agree(self):
        self.assertEqual(self.steps_until_done([400, 300, 200, 150] + [100] * 50), (10, True))

    def test_noise_does_not_keep_it_from_ending(self):
        self.assertEqual(self.steps_until_done([100, 104, 190, 97, 107, 111, 120, 104] + [100] * 50), (8, True))

    def test_goes_on_until_the_minimum_although_quiet(self):
        self.assertEqual(self.steps_until_done([10] * 50, minimum_ns=200), (20, True))

    def test_ends_unquiet_after_a_window_and_the_most_time(self):
        self.assertEqual(self.steps_until_done([100 + 50 * step for step in range(50)], maximum_ns=2000), (8, False))

    def test_needs_a_whole_window_before_it_is_quiet(self):
        self.assertEqual(self.steps_until_done([100] * 50), (8, True))

    def test_one_slow_step_is_enough(self):
        self.assertEqual(self.steps_until_done([501, 100, 100]), (1, True))

    def test_ends_unquiet_at_the_most_steps(self):
        self.assertEqual(self.steps_until_done([100 * 2**step for step in range(50)], slow_step_ns=10**20, maximum_ns=10**20), (50, False))


class ServerTest(unittest.TestCase):
    """Requests answered in this process, so that what the engine was called with can be seen."""

    def setUp(self):
        self.engine = FakeEngine()
        self.server = Server(self.engine)

    def ask(self, request, **keys):
        return self.server.answer(json.dumps({"request": request, **keys}))[0]

    def ready(self, prompts=PROMPTS, **changes):
        self.ask("load", model="m", dtype="fp32", device="cpu", threads=1, seed=1)
        return self.ask("prepare", **prepare(prompts, **changes))

    def assert_error(self, reply, kind, *words):
        self.assertEqual((reply["reply"], reply["kind"]), ("error", kind), reply)
        self.assertNotIn("\n", reply["message"])
        for text in words:
            self.assertIn(text, reply["message"])

    def test_hello_says_what_the_engine_can_do(self):
        self.assertEqual(self.ask("hello", protocol=1), {"reply": "hello", "protocol": 1, "engine": "fake", "version": "1.0", "settings": {"colour": "none"},
                                                         "phases": ["prefill", "decode", "generate", "continue"], "scopes": ["step", "generate", "continue", "serving"], "fills": ["generated"],
                                                         "dtypes": ["fp32", "bf16"], "devices": ["cpu"], "turns": True})

    def test_speaks_the_newest_protocol_that_both_sides_know(self):
        for newest in (2, 7):
            hello = self.ask("hello", protocol=1, newest=newest)
            self.assertEqual((hello["protocol"], hello["samples"], hello["sampling"]), (2, True, []))
            self.assertFalse(hello["prefixes"])
        self.assert_error(self.ask("hello", protocol=3), "unsupported", "protocol 3", "speaks 1 and 2")

    def test_at_the_scope_of_servers_a_step_is_the_step_itself(self):
        for phase in ("prefill", "decode", "generate"):
            self.assertEqual(self.ready(phase=phase, scope="serving")["reply"], "prepared")
        self.assert_error(self.ready(phase="continue", scope="serving"), "unsupported", "scope serving")

    def test_gives_each_sample_of_a_prompt_a_row(self):
        self.assertEqual(self.ready(phase="generate", scope="generate-samples-3", samples=3)["reply"], "prepared")
        reply = self.ask("outputs", steps=2, forced=None, logits=False)
        self.assertEqual(list(zip(*reply["tokens"])), [tuple(following(row[-1], 2)) for row in PROMPTS for _ in range(3)])
        self.assert_error(self.ready(phase="generate", scope="generate-samples-3", samples=2), "unsupported", "generate-samples-3")

    def test_refuses_sampling_that_the_engine_does_not_do_by_its_name(self):
        sampling = {"sample": True, "temperature": 1.0, "top_k": 50, "top_p": 1.0, "typical_p": 1.0, "repetition_penalty": 1.0}
        self.assert_error(self.ready(phase="generate", scope="generate-warped", sampling=sampling), "unsupported", "sample")
        self.engine.sampling = ("sample",)
        self.assert_error(self.ready(phase="generate", scope="generate-warped", sampling=sampling), "unsupported", "top_k")
        self.engine.sampling = ("sample", "top_k")
        self.assertEqual(self.ready(phase="generate", scope="generate-warped", sampling=sampling)["reply"], "prepared")
        self.assertEqual(self.engine.cell.sampling["top_k"], 50)

    def test_a_decode_cell_begins_after_the_choice_that_the_prompt_gave(self):
        self.assertEqual(self.ready(), {"reply": "prepared", "bytes_needed": 128})
        reply = self.ask("outputs", steps=4, forced=None, logits=False)
        self.assertEqual(list(zip(*reply["tokens"])), [tuple(following(row[-1], 5)[1:]) for row in PROMPTS])
        self.assertIsNone(reply["logits_file"])

    def test_a_prefill_cell_begins_with_the_choice_that_the_prompt_gave(self):
        self.ready(phase="prefill")
        reply = self.ask("outputs", steps=4, forced=None, logits=False)
        self.assertEqual(list(zip(*reply["tokens"])), [tuple(following(row[-1], 4)) for row in PROMPTS])

    def test_a_decode_cell_begins_with_the_first_tokens_that_it_is_given(self):
        self.ready()
        self.engine.log.clear()
        self.ask("outputs", steps=2, forced=[[9, 8], [7, 6]], first=[5, 4], logits=False)
        self.assertEqual([call[1:] for call in self.engine.log if call != "prefill"], [(5, 4), (9, 8)])
        self.assert_error(self.ask("outputs", steps=2, forced=[[9, 8]], first=[5], logits=False), "failed", "2 ids")

    def test_forced_tokens_are_fed_instead_of_its_own_choices(self):
        forced = [[9, 8], [7, 6], [5, 4]]
        first = tuple(next_token(row[-1]) for row in PROMPTS)
        for phase, fed in (("prefill", [(9, 8), (7, 6)]), ("decode", [first, (9, 8), (7, 6)])):
            with self.subTest(phase=phase):
                self.ready(phase=phase)
                self.engine.log.clear()
                reply = self.ask("outputs", steps=3, forced=forced, logits=False)
                self.assertEqual([call[1:] for call in self.engine.log if call != "prefill"], fed)
                self.assertEqual(reply["tokens"][1], [next_token(9), next_token(8)])

    def test_the_logits_file_holds_a_row_for_each_step_and_prompt(self):
        self.ready(phase="prefill")
        reply = self.ask("outputs", steps=3, forced=None, logits=True)
        logits = read_logits(reply, rows=2)
        self.assertEqual((len(logits), len(logits[0]), len(logits[0][0])), (3, 2, 11))
        self.assertEqual([[row.index(1.0) for row in step] for step in logits], reply["tokens"])

    def test_a_visit_has_exactly_the_steps_that_were_asked_for(self):
        for phase in ("prefill", "decode", "generate"):
            for steps in (1, 7, 40):
                with self.subTest(phase=phase, steps=steps):
                    self.ready(phase=phase)
                    reply = self.ask("visit", steps=steps, warmup=WARMUP)
                    self.assertEqual(len(reply["samples_ns"]), steps)
                    self.assertTrue(all(isinstance(sample, int) and sample > 0 for sample in reply["samples_ns"]))
                    self.assertGreaterEqual(reply["wall_ns"], sum(reply["samples_ns"]))
                    self.assertTrue(1 <= reply["warmup_steps"] <= WARMUP["maximum_steps"])

    def test_a_visit_fills_again_where_the_room_ends(self):
        self.ready(room=3)
        self.engine.log.clear()
        self.ask("visit", steps=8, warmup={**WARMUP, "maximum_steps": 1})
        fed = self.engine.log[2:]  # after the warm-up's fill and its one step
        self.assertEqual([call == "prefill" for call in fed], [True, False, False, False] * 2 + [True, False, False])

    def test_turns_go_on_where_the_last_one_ended(self):
        self.ready(room=5)
        begun = self.ask("begin", steps=8, warmup={**WARMUP, "maximum_steps": 1})
        self.assertEqual((begun["reply"], begun["warmup_steps"]), ("begun", 1))
        self.engine.log.clear()
        for steps in (3, 3, 2):
            reply = self.ask("turn", steps=steps)
            self.assertEqual((reply["reply"], len(reply["samples_ns"])), ("turn", steps))
            self.assertGreaterEqual(reply["wall_ns"], sum(reply["samples_ns"]))
        self.assertEqual([call == "prefill" for call in self.engine.log], [True, *[False] * 5, True, *[False] * 3])

    def test_a_cell_that_can_be_saved_is_filled_by_one_prefill(self):
        engine = self.engine
        engine.save = lambda: (("state", list(engine.last)), 1000)
        engine.restore = lambda state: engine.log.append(("restore", *state[1]))
        self.ready(room=3)
        first = self.ask("outputs", steps=3, forced=None, logits=False)
        self.ask("counters")
        again = self.ask("outputs", steps=3, forced=None, logits=False)
        self.ask("visit", steps=8, warmup={**WARMUP, "maximum_steps": 1})
        self.assertEqual(engine.log.count("prefill"), 1)
        self.assertGreater(sum(call[0] == "restore" for call in engine.log if call != "prefill"), 4)
        self.assertEqual(first["tokens"], again["tokens"], "the steps after a restored fill are those after a prefill")
        self.ready(prompts=[[9, 8, 7]])
        self.ask("outputs", steps=1, forced=None, logits=False)
        self.ready(room=3)
        self.ask("outputs", steps=1, forced=None, logits=False)
        self.assertEqual(engine.log.count("prefill"), 2 + 1, "loading again forgets what was kept")

    def test_a_state_is_kept_for_later_processes_until_it_is_damaged(self):
        with tempfile.TemporaryDirectory() as folder, unittest.mock.patch.dict(os.environ, {"DECODELAB_CACHE": folder}):
            def process(name="same"):
                """Another process: what was called, and its tokens."""
                self.setUp()
                engine = self.engine
                engine.save = lambda: ([b"a state", bytes(engine.last)], 9)
                engine.restore = lambda state: engine.log.append(("restore", *state[1]))
                engine.state_key = lambda: name
                self.ready()
                reply = self.ask("outputs", steps=3, forced=None, logits=False)
                return engine.log.count("prefill"), reply["tokens"]

            first = process()
            self.assertEqual(first[0], 1)
            self.assertEqual(process(), (0, first[1]))
            self.assertEqual(process("other settings")[0], 1)
            cells = os.path.join(folder, "peers", "cells")
            for name in os.listdir(cells):
                with open(os.path.join(cells, name), "r+b") as file:
                    file.seek(-1, os.SEEK_END)
                    file.write(b"?")
            self.assertEqual(process(), first, "a damaged state is not believed")
            self.assertEqual(process()[0], 0, "and is made anew")
            self.assertEqual([name for name in os.listdir(cells) if name.startswith("draft-")], [])

    def test_states_that_were_not_used_for_longest_go_first(self):
        with tempfile.TemporaryDirectory() as folder, unittest.mock.patch("kept_state.MOST_BYTES", 2500):
            for age, key in ((300, "old"), (200, "older but used"), (100, "young")):
                kept_state.keep(folder, key, [1], [bytes(1000)])
                os.utime(kept_state.place(folder, key), (time.time() - age,) * 2)
                if key == "older but used":
                    self.assertIsNotNone(kept_state.load(folder, "old"))
                    os.utime(kept_state.place(folder, "old"), (time.time() - 300,) * 2)
            self.assertIsNone(kept_state.load(folder, "old"))
            self.assertIsNotNone(kept_state.load(folder, "older but used"))
            self.assertEqual(kept_state.load(folder, "young"), ([1], [bytes(1000)]))

    def test_replies_say_what_filling_took(self):
        self.ready()
        self.assertGreater(self.ask("outputs", steps=1, forced=None, logits=False)["spent"]["filling_ns"], 0)
        self.ready(phase="prefill")
        self.assertNotIn("spent", self.ask("outputs", steps=1, forced=None, logits=False))

    def test_a_turn_needs_a_visit_that_has_begun(self):
        self.ready()
        self.assert_error(self.ask("turn", steps=3), "failed", "before begin")
        self.ask("begin", steps=8, warmup=WARMUP)
        self.assert_error(self.ask("turn", steps=0), "failed", "0 steps")
        self.ask("counters")
        self.assert_error(self.ask("turn", steps=3), "failed", "before begin")

    def test_an_engine_that_keeps_its_loop_knows_no_turns(self):
        self.engine.turns = False
        self.ready()
        self.assert_error(self.ask("begin", steps=8, warmup=WARMUP), "unsupported", "no turns")

    def test_a_visit_fills_again_where_the_positions_end(self):
        self.ready([[1] * 30], room=50)
        self.engine.log.clear()
        self.assertEqual(len(self.ask("visit", steps=5, warmup={**WARMUP, "maximum_steps": 1})["samples_ns"]), 5)
        self.assertEqual(self.engine.log.count("prefill"), 1 + 3)

    def test_a_visit_begins_afresh_after_its_warmup(self):
        self.ready()
        self.engine.log.clear()
        self.ask("visit", steps=1, warmup={**WARMUP, "maximum_steps": 4, "window": 0})
        first = ("decode", *(next_token(row[-1]) for row in PROMPTS))
        self.assertEqual(self.engine.log[-2:], ["prefill", first])

    def test_a_completion_is_one_sample(self):
        self.ready(phase="generate", max_tokens=5)
        self.engine.log.clear()
        self.ask("visit", steps=2, warmup={**WARMUP, "maximum_steps": 1})
        self.assertEqual([call == "prefill" for call in self.engine.log], [True, False, False, False, False] * 3)

    def test_counters_say_the_fastest_step(self):
        self.ready()
        reply = self.ask("counters")
        self.assertGreater(reply["step_ns"], 0)
        self.assertEqual({key: reply[key] for key in ("peak_bytes", "counters", "unsteady", "engaged", "missing")},
                         {"peak_bytes": None, "counters": {}, "unsteady": [], "engaged": None, "missing": ""})

    def test_what_an_engine_throws_is_an_error_and_the_worker_stays_usable(self):
        for model, kind, message in (("oom", "oom", "no memory"), ("torch-oom", "oom", "can't allocate memory"), ("unsupported", "unsupported", "no such model"),
                                     ("failed", "failed", "first line")):
            with self.subTest(model=model):
                self.assert_error(self.ask("load", model=model, dtype="fp32", device="cpu", threads=1, seed=1), kind, message)
                self.assertEqual(self.ready()["reply"], "prepared")
        self.assert_error(self.ask("prepare", **prepare([[1] * 13])), "oom", "thirteen")
        self.assert_error(self.ask("visit", steps=1, warmup=WARMUP), "failed", "before prepare")
        self.assertEqual(self.ready()["reply"], "prepared")

    def test_rubbish_gets_an_error(self):
        for line in ("", "rubbish", "[]", "{}", '{"request": 7}', '{"request": "hello"', '{"request": "sing"}', '{"request": "load"}', '{"request": "visit"}',
                     "[" * 100_000, "\xff\x00"):
            with self.subTest(line=line[:20]):
                reply, going = self.server.answer(line)
                self.assert_error(reply, "failed")
                self.assertTrue(going)
        self.assert_error(self.ask("load", model="m"), "failed", "lacks the key 'dtype'")

    def test_refuses_what_comes_in_the_wrong_order(self):
        self.assert_error(self.ask("prepare", **prepare(PROMPTS)), "failed", "send load first")
        self.assert_error(self.ask("counters"), "failed", "send load and prepare first")

    def test_refuses_cells_that_the_engine_has_not(self):
        for changes, kind, text in (({"scope": "forward"}, "unsupported", "scope forward"), ({"phase": "train"}, "unsupported", "train"),
                                    ({"fill": "random"}, "unsupported", "fill 'random'"),
                                    ({"dtype": "bf16"}, "failed", "send load again"), ({"room": 0}, "unsupported", "room is 0"), ({"batch": 3}, "failed", "expected 3 prompts"),
                                    ({"length": 2}, "failed", "of 2 ids")):
            with self.subTest(changes=changes):
                self.assert_error(self.ready(**changes), kind, text)
        self.assert_error(self.ready([[1] * 32]), "unsupported", "33 positions")
        self.assert_error(self.ready([[1, 11]]), "failed", "0 to 10")

    def test_refuses_outputs_beyond_the_room(self):
        self.ready(room=4)
        self.assertEqual(len(self.ask("outputs", steps=4, forced=None, logits=False)["tokens"]), 4)
        self.assert_error(self.ask("outputs", steps=5, forced=None, logits=False), "failed", "1 to 4")
        self.assert_error(self.ask("outputs", steps=3, forced=[[1, 2]], logits=False), "failed", "2 rows of 2")
        self.assert_error(self.ask("outputs", steps=3, forced=[[1], [2]], logits=False), "failed", "2 rows of 2")

    def test_refuses_a_dtype_or_device_before_it_loads(self):
        self.assert_error(self.ask("load", model="failed", dtype="fp8", device="cpu", threads=1, seed=1), "unsupported", "no fp8", "fp32, bf16")
        self.assert_error(self.ask("load", model="failed", dtype="fp32", device="cuda:0", threads=1, seed=1), "unsupported", "cuda:0")


class ConversionTest(unittest.TestCase):
    def test_a_conversion_is_made_once_and_its_folder_says_when_it_was_last_asked_for(self):
        made = []

        def convert(draft):
            made.append(draft)
            with open(os.path.join(draft, "model.gguf"), "w", encoding="utf-8") as file:
                file.write("weights")

        with tempfile.TemporaryDirectory() as folder, unittest.mock.patch.dict(os.environ, {"DECODELAB_CACHE": folder}):
            model = types.SimpleNamespace(files=lambda: [__file__])
            first, second = (checkpoint.converted(model, "llama.cpp", dtype, convert) for dtype in ("fp32", "bf16"))
            for age, place in enumerate((second, first)):
                os.utime(place, (1000 - age, 1000 - age))
            self.assertEqual(checkpoint.converted(model, "llama.cpp", "fp32", convert), first)
            self.assertEqual(len(made), 2)
            self.assertGreater(os.stat(first).st_mtime, os.stat(second).st_mtime)
            self.assertEqual(os.listdir(first), ["model.gguf"])


class ProcessTest(unittest.TestCase):
    """The descriptors, and how the process ends."""

    def test_answers_in_order_whatever_the_engine_prints(self):
        worker = Worker(FAKE)
        self.assertEqual(worker.ask("hello", protocol=1)["engine"], "fake")
        self.assertEqual(worker.load("m"), {"reply": "loaded", "settings": {"threads": 1}})
        self.assertEqual(worker.ask("prepare", **prepare(PROMPTS))["reply"], "prepared")
        self.assertEqual(worker.send(b"\xff\xfe rubbish")["reply"], "error")
        self.assertEqual(len(worker.ask("visit", steps=16, warmup=WARMUP)["samples_ns"]), 16)
        self.assertEqual(worker.close(), 0)

    def test_says_bye_and_exits_with_0(self):
        worker = Worker(FAKE)
        self.assertEqual(worker.ask("bye"), {"reply": "bye"})
        self.assertEqual(worker.process.wait(timeout=60), 0)
        worker.close()

    def test_the_end_of_requests_ends_it(self):
        self.assertEqual(Worker(FAKE).close(), 0)

    def test_without_its_descriptors_it_says_what_it_is_for(self):
        done = subprocess.run(FAKE, capture_output=True, text=True, close_fds=True, timeout=60, check=False)
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("descriptors 3 and 4", done.stderr)

    def test_the_scripts_name_what_they_know(self):
        for script in ("environment", "run"):
            with self.subTest(script=script):
                done = subprocess.run([os.path.join(PEERS, script), "nonsense"], capture_output=True, text=True, timeout=60, check=False)
                self.assertEqual(done.returncode, 1)
                self.assertIn("expected transformers, ctranslate2", done.stderr)


if __name__ == "__main__":
    unittest.main()
