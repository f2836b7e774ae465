"""Tests of tools/peers/serve and of the worker of vLLM with engines that compute nothing: neither llama-server nor vLLM has to be there."""

import contextlib
import io
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import types
import unittest
import unittest.mock

from worker_driver import PEERS, WARMUP, prepare

sys.path.insert(0, PEERS)
import llama_cpp_server  # noqa: E402
import server_arguments  # noqa: E402
import vllm_model  # noqa: E402
import vllm_server  # noqa: E402
import vllm_worker  # noqa: E402
from worker_protocol import Server  # noqa: E402

CONFIG = {"model_type": "llama", "architectures": ["LlamaForCausalLM"], "num_hidden_layers": 1, "hidden_size": 8, "intermediate_size": 16, "num_attention_heads": 2, "max_position_embeddings": 96,
          "vocab_size": 11, "rms_norm_eps": 1e-5}


def run(script, *words, **more):
    return subprocess.run([os.path.join(PEERS, script), *words], capture_output=True, text=True, timeout=60, check=False, **more)


def write_checkpoint(folder):
    """A directory whose safetensors file holds no weight."""
    pathlib.Path(folder, "config.json").write_text(json.dumps(CONFIG))
    pathlib.Path(folder, "model.safetensors").write_bytes((2).to_bytes(8, "little") + b"{}")


def after(words, flag):
    return words[words.index(flag) + 1]


class ScriptsTest(unittest.TestCase):
    def test_serve_names_the_engines_that_bring_a_server(self):
        done = run("serve", "nonsense")
        self.assertEqual(done.returncode, 1)
        self.assertIn("unknown server 'nonsense': expected llama_cpp or vllm", done.stderr)
        self.assertIn("brings no server", run("serve", "transformers").stderr)

    def test_a_server_that_was_not_built_is_named_with_what_makes_it(self):
        with tempfile.TemporaryDirectory() as root:
            tools = pathlib.Path(root, "tools", "peers")
            tools.mkdir(parents=True)
            for name in ("peers/serve", "peers/run", "_common.sh"):
                (tools.parent / name).write_bytes(pathlib.Path(PEERS, "..", name).read_bytes())
            for words, missing in ((("serve", "llama_cpp"), "tools/peers/environment llama_cpp --server"), (("serve", "vllm"), "tools/peers/environment vllm"),
                                   (("run", "vllm"), "tools/peers/environment vllm")):
                with self.subTest(words=words):
                    done = subprocess.run(["bash", str(tools / words[0]), *words[1:]], capture_output=True, text=True, timeout=60, check=False)
                    self.assertEqual(done.returncode, 1)
                    self.assertIn(f"is missing: run {missing}", done.stderr)

    def test_only_llama_cpp_is_built_with_tools_of_its_own(self):
        for flag in ("--bench", "--server"):
            done = run("environment", "vllm", flag)
            self.assertEqual(done.returncode, 1)
            self.assertIn(f"{flag} is llama_cpp's", done.stderr)

    def test_a_command_that_runs_alone_keeps_its_words_and_its_exit_code(self):
        done = run("alone", "sh", "-c", 'echo "$1"; exit 7', "sh", "two  words")
        self.assertEqual((done.returncode, done.stdout), (7, "two  words\n"))
        self.assertEqual(run("alone").returncode, 1)

    def test_a_command_that_runs_alone_keeps_its_descriptors_and_sees_no_network(self):
        reader, writer = os.pipe()
        done = run("alone", "sh", "-c", f"cat /proc/net/dev >&{writer}", pass_fds=(writer,))
        os.close(writer)
        with os.fdopen(reader) as file:
            devices = [line.split(":")[0].strip() for line in file if ":" in line]
        self.assertEqual(done.returncode, 0)
        if "no network of its own" in done.stderr:
            self.skipTest("this system allows no network of its own")
        self.assertEqual(devices, ["lo"])


class CommandTest(unittest.TestCase):
    """What the servers are told."""

    def options(self, parser, *words):
        with tempfile.TemporaryDirectory() as folder:
            write_checkpoint(folder)
            return server_arguments.parse(parser, ["--model", folder, "--dtype", "fp32", "--threads", "2", "--port", "7000", *words])

    def llama_parser(self):
        parser = server_arguments.parser_of("llama_cpp")
        parser.set_defaults(flash_attention="auto", kv=None, kv_unified="off", ubatch=512)
        return parser

    def refused(self, *words):
        said = io.StringIO()
        with contextlib.redirect_stderr(said), self.assertRaises(SystemExit):
            server_arguments.parse(self.llama_parser(), list(words))
        return said.getvalue()

    def test_llama_server_keeps_nothing_and_has_room_for_every_row(self):
        options, _, theirs = self.options(self.llama_parser(), "--rows", "3", "--context", "64", "--", "--verbose")
        words = llama_cpp_server.command("llama-server", "m.gguf", options)
        self.assertEqual(theirs, ["--verbose"])
        self.assertEqual([after(words, flag) for flag in ("--model", "--port", "--host", "--threads", "--parallel", "--ctx-size", "--cache-ram", "--ctx-checkpoints")],
                         ["m.gguf", "7000", "127.0.0.1", "2", "3", "192", "0", "0"])
        self.assertLessEqual({"--no-cache-prompt", "--no-context-shift", "--no-webui", "--offline", "--no-kv-unified"}, set(words))

    def test_llama_server_fuses_attention_where_the_worker_does(self):
        for dtype, asked, kv, fused, kind in (("fp32", "auto", None, "off", "f32"), ("bf16", "auto", None, "on", "bf16"), ("bf16", "off", None, "off", "bf16"), ("fp32", "auto", "fp16", "on", "f16"),
                                              ("fp32", "on", None, "on", "f32")):
            with self.subTest(dtype=dtype, asked=asked, kv=kv):
                options, _, _ = self.options(self.llama_parser())
                options.dtype, options.flash_attention, options.kv = dtype, asked, kv
                words = llama_cpp_server.command("llama-server", "m.gguf", options)
                self.assertEqual([after(words, flag) for flag in ("--flash-attn", "--cache-type-k", "--cache-type-v")], [fused, kind, kind])

    def test_vllm_keeps_nothing_and_goes_by_no_file_of_generation(self):
        parser = server_arguments.parser_of("vllm")
        parser.set_defaults(eager=False)
        options, _, _ = self.options(parser)
        words = vllm_server.command("vllm", "folder", options)
        self.assertEqual(words[:3], ["vllm", "serve", "folder"])
        self.assertEqual([after(words, flag) for flag in ("--dtype", "--host", "--max-num-seqs", "--generation-config")], ["float32", "127.0.0.1", str(server_arguments.ROWS), "vllm"])
        self.assertIn("--no-enable-prefix-caching", words)
        self.assertNotIn("--enforce-eager", words)
        options.eager = True
        self.assertIn("--enforce-eager", vllm_server.command("vllm", "folder", options))

    def test_a_row_is_no_longer_than_the_model(self):
        options, checkpoint, _ = self.options(self.llama_parser())
        self.assertEqual((options.context, checkpoint.config.positions), (96, 96))
        self.assertEqual(self.options(self.llama_parser(), "--context", "50")[0].context, 50)

    def test_what_makes_no_sense_is_named(self):
        with tempfile.TemporaryDirectory() as folder:
            write_checkpoint(folder)
            self.assertIn("--rows: expected at least 1, got 0", self.refused("--model", folder, "--dtype", "fp32", "--threads", "2", "--port", "1", "--rows", "0"))
            self.assertIn("--port", self.refused("--model", folder, "--dtype", "fp32", "--threads", "2"))
            self.assertIn("invalid choice: 'fp8'", self.refused("--model", folder, "--dtype", "fp8", "--threads", "2", "--port", "1"))
            self.assertIn("--model", self.refused("--model", os.path.join(folder, "nowhere"), "--dtype", "fp32", "--threads", "2", "--port", "1"))

    def test_smollm2_is_the_file_that_bootstrap_fetches(self):
        with unittest.mock.patch.dict(os.environ, {"DECODELAB_CACHE": "/cache"}):
            self.assertEqual(server_arguments.path_of("smollm2"), "/cache/smollm2/SmolLM2-135M-Instruct.Q4_1.gguf")
        self.assertEqual(server_arguments.path_of("/a/model"), "/a/model")


class FolderTest(unittest.TestCase):
    def test_vllm_gets_the_weights_where_they_lie_and_a_word_for_each_id(self):
        from checkpoint import Checkpoint

        with tempfile.TemporaryDirectory() as source, tempfile.TemporaryDirectory() as cache, unittest.mock.patch.dict(os.environ, {"DECODELAB_CACHE": cache}):
            write_checkpoint(source)
            folder = pathlib.Path(vllm_model.model_folder(Checkpoint(source)))
            self.assertEqual(os.path.realpath(folder / "model.safetensors"), os.path.realpath(pathlib.Path(source, "model.safetensors")))
            self.assertEqual(json.loads((folder / "config.json").read_text()), CONFIG)
            self.assertEqual(json.loads((folder / "tokenizer.json").read_text())["model"]["vocab"], {f"t{token}": token for token in range(11)})
            self.assertEqual(vllm_model.model_folder(Checkpoint(source)), str(folder), "it is written once")

    def test_a_word_for_each_id_is_read_back_as_the_id(self):
        try:
            from tokenizers import Tokenizer
        except ImportError:
            self.skipTest("no tokenizers in Python here")
        with tempfile.TemporaryDirectory() as folder:
            vllm_model.write_words(types.SimpleNamespace(vocabulary=300, positions=16), folder)
            tokenizer = Tokenizer.from_file(os.path.join(folder, "tokenizer.json"))
            ids = [299, 0, 7, 7, 120]
            self.assertEqual(tokenizer.encode(tokenizer.decode(ids)).ids, ids)


class FakeLogits:
    """A row of logits whose largest is that of one token."""

    def __init__(self, token):
        self.token = token

    def argmax(self):
        return self.token

    def fill_(self, value):
        self.token = None

    def __setitem__(self, token, value):
        self.token = token


class FakeLlm:
    """vLLM's engine, whose rows choose 7 t + 3 after t, and which takes prompts in passes of `tokens_at_once`."""

    vocabulary = 11

    def __init__(self, engine, tokens_at_once=1000):
        self.engine, self.tokens_at_once, self.requests, self.log = engine, tokens_at_once, {}, []

    def add_request(self, name, prompt, parameters):
        row, tokens = parameters
        self.requests[name] = {"row": row, "last": prompt["prompt_token_ids"][-1], "waits": len(prompt["prompt_token_ids"]), "left": tokens}

    def abort_request(self, names):
        for name in names:
            self.requests.pop(name, None)

    def step(self):
        self.log.append(len(self.requests))
        budget, answers = self.tokens_at_once, []
        for name, request in list(self.requests.items()):
            taken = min(request["waits"], budget)
            request["waits"] -= taken
            budget -= taken
            if request["waits"]:
                continue
            logits = FakeLogits((7 * request["last"] + 3) % self.vocabulary)
            if self.engine.tape is not None:
                self.engine.tape.write(request["row"], logits)
            request["last"] = logits.token
            request["left"] -= 1
            answers.append(types.SimpleNamespace(request_id=name, outputs=[types.SimpleNamespace(token_ids=[logits.token])]))
            if request["left"] == 0:
                del self.requests[name]
        return answers


def following(token, count):
    tokens = []
    for _ in range(count):
        token = (7 * token + 3) % FakeLlm.vocabulary
        tokens.append(token)
    return tokens


class VllmWorkerTest(unittest.TestCase):
    PROMPTS = [[1, 2, 3], [4, 5, 6]]

    def ready(self, phase, prompts=PROMPTS, tokens_at_once=1000, **changes):
        with unittest.mock.patch.object(vllm_worker, "version", return_value="1"):
            engine = vllm_worker.VllmEngine(eager=False, rows=4, context=64, kv_space=1)
        engine.llm, engine.dtype, engine.positions, engine.vocabulary = FakeLlm(engine, tokens_at_once), "fp32", 64, FakeLlm.vocabulary
        engine.config = types.SimpleNamespace(layers=1, kv_heads=1, head_dim=8)
        engine.parameters = lambda row, tokens: (row, tokens)
        server = Server(engine)
        server.loaded = {"dtype": "fp32", "device": "cpu", "threads": 1}
        self.engine, self.ask = engine, lambda request, **keys: server.answer(json.dumps({"request": request, **keys}))[0]
        with unittest.mock.patch.object(vllm_worker, "BATCHED_TOKENS", tokens_at_once):
            return self.ask("prepare", **prepare(prompts, phase, **changes))

    def test_a_decode_cell_begins_after_the_choice_that_the_prompt_gave(self):
        self.assertEqual(self.ready("decode")["reply"], "prepared")
        reply = self.ask("outputs", steps=4, forced=None, logits=False)
        self.assertEqual(list(map(list, zip(*reply["tokens"], strict=True))), [following(row[-1], 5)[1:] for row in self.PROMPTS])

    def test_a_prefill_cell_begins_with_the_choice_that_the_prompt_gave(self):
        self.ready("prefill")
        reply = self.ask("outputs", steps=4, forced=None, logits=False)
        self.assertEqual(list(map(list, zip(*reply["tokens"], strict=True))), [following(row[-1], 4) for row in self.PROMPTS])

    def test_rows_go_on_with_the_tokens_that_they_are_made_to_say(self):
        forced = [[9, 8], [1, 6], [5, 4]]
        for phase, first, fed in (("prefill", None, [None, [9, 8], [1, 6]]), ("decode", [2, 1], [[2, 1], [9, 8], [1, 6]])):
            with self.subTest(phase=phase):
                self.ready(phase)
                reply = self.ask("outputs", steps=3, forced=forced, first=first, logits=False)
                for tokens, before in zip(reply["tokens"], fed, strict=True):
                    if before is not None:
                        self.assertEqual(tokens, [following(token, 1)[0] for token in before])

    def test_rows_whose_prompts_come_in_several_passes_are_told_apart(self):
        self.ready("decode", tokens_at_once=2)
        reply = self.ask("outputs", steps=6, forced=None, logits=False)
        self.assertEqual(list(map(list, zip(*reply["tokens"], strict=True))), [following(row[-1], 7)[1:] for row in self.PROMPTS])
        self.assertEqual(len(self.ask("visit", steps=20, warmup=WARMUP)["samples_ns"]), 20)

    def test_a_visit_is_one_step_of_all_rows_each(self):
        self.ready("decode", room=6)
        self.engine.llm.log.clear()
        reply = self.ask("visit", steps=8, warmup={**WARMUP, "maximum_steps": 1})
        self.assertEqual(len(reply["samples_ns"]), 8)
        # The warm-up fills once; what is timed fills again, and once more where the room ends: a pass each, beside the steps.
        self.assertEqual(self.engine.llm.log, [2] * (1 + 1 + 2 + 8))
        self.assertGreater(self.engine.filling_ns, 0)

    def test_turns_go_on_where_the_last_one_ended(self):
        self.ready("decode")
        self.ask("begin", steps=6, warmup={**WARMUP, "maximum_steps": 1})
        self.engine.llm.log.clear()
        for steps in (2, 4):
            self.assertEqual(len(self.ask("turn", steps=steps)["samples_ns"]), steps)
        self.assertEqual(len(self.engine.llm.log), 1 + 6)

    def test_a_prefill_and_a_completion_leave_no_request_behind(self):
        for phase, each in (("prefill", 1), ("generate", 5)):
            with self.subTest(phase=phase):
                self.ready(phase, max_tokens=5)
                self.engine.llm.log.clear()
                self.ask("visit", steps=3, warmup={**WARMUP, "maximum_steps": 1})
                self.assertEqual(self.engine.llm.log, [2] * (each * 4))
                self.assertEqual(self.engine.llm.requests, {})

    def test_more_rows_than_it_was_started_for_are_refused_with_the_flag(self):
        reply = self.ready("decode", prompts=[[1, 2]] * 5)
        self.assertEqual(reply["kind"], "unsupported")
        self.assertIn("--rows 5", reply["message"])

    def test_the_scope_of_servers_is_the_step_itself(self):
        for phase in ("prefill", "decode", "generate"):
            self.assertEqual(self.ready(phase, scope="serving")["reply"], "prepared")


if __name__ == "__main__":
    unittest.main()
