"""Tests of the workers in tools/peers on a tiny random checkpoint, against Transformers' own generate(); a peer without its environment is skipped."""

import os
import shutil
import sys
import tempfile
import unittest

from worker_driver import PEERS, ROOT, WARMUP, Worker, prepare, read_logits

sys.path.insert(0, os.path.join(ROOT, "tests", "program"))
from program import ProgramTest  # noqa: E402

try:
    import torch
except ImportError:
    torch = None

BATCH, LENGTH, STEPS, VOCABULARY = 8, 9, 24, 512
# Engines are set beside each other where this many tokens of each of the prompts are those of Transformers.
TOKENS = 64
# max|a - b| / max|b| of logits that the same tokens led to. llama.cpp's GELU goes through a table of fp16 whatever the dtype.
TOLERANCE = {"transformers": 1e-4, "ctranslate2": 1e-4, "llama_cpp": 1e-2, "vllm": 1e-4}


class PeerTests:
    """The tests of every peer; one worker a class. `peer` and `flags` are the command, as a user writes it."""

    peer = ""
    flags = ()

    @classmethod
    def setUpClass(cls):
        if torch is None:
            raise unittest.SkipTest("no torch in Python here (tools/bootstrap --cpu-only): nothing to compare with")
        if cls.peer != "transformers" and not os.path.exists(os.path.join(ROOT, ".peers", cls.peer, "stamp")):
            raise unittest.SkipTest(f"no environment of {cls.peer}: run tools/peers/environment {cls.peer}")
        cls.shared = tempfile.mkdtemp(prefix="decodelab-peers-")
        cls.addClassCleanup(shutil.rmtree, cls.shared, ignore_errors=True)
        cls.log = open(os.path.join(cls.shared, "log"), "w+b")  # noqa: SIM115: read by assert_reply
        cls.addClassCleanup(cls.log.close)
        cls.worker = Worker([os.path.join(PEERS, "run"), cls.peer, *cls.flags], log=cls.log, DECODELAB_CACHE=cls.shared)
        cls.addClassCleanup(cls.worker.close)

    def setUp(self):
        super().setUp()
        self.folder = self.shared
        torch.manual_seed(5)
        # Token 0 ends a text in this checkpoint: in a prompt it must be a token like any other.
        self.prompts = torch.randint(VOCABULARY, (BATCH, LENGTH))
        self.prompts[0, 3] = 0

    def checkpoint(self):
        """The checkpoint's folder and its model, written once a class."""
        if not hasattr(type(self), "written"):
            type(self).written = self.write_checkpoint(n_embd=64, n_head=4, n_inner=256, n_positions=128, vocab_size=VOCABULARY)
        return self.written

    def assert_reply(self, reply, name):
        if reply is None or reply["reply"] != name:
            self.log.seek(0)
            self.fail(f"expected {name}, got {reply}; the worker's log ends:\n{self.log.read()[-1500:].decode(errors='replace')}")
        return reply

    def ready(self, phase, steps=STEPS, **changes):
        folder, model = self.checkpoint()
        self.assert_reply(self.worker.load(folder, changes.get("dtype", "fp32")), "loaded")
        self.assert_reply(self.worker.ask("prepare", **prepare(self.prompts.tolist(), phase, room=steps, max_tokens=steps, **changes)), "prepared")
        return model

    def reference(self, model, steps=STEPS):
        """Tokens [steps + 1][BATCH] and the logits that each was chosen from, by generate()."""
        with torch.no_grad():
            answer = model.generate(self.prompts, attention_mask=torch.ones_like(self.prompts), max_new_tokens=steps + 1, do_sample=False, eos_token_id=None, pad_token_id=0,
                                    return_dict_in_generate=True, output_logits=True)
        return answer.sequences[:, LENGTH:].T.tolist(), torch.stack(answer.logits).float()

    def assert_close(self, got, expected, tokens):
        """Logits within the tolerance; another choice only where the reference's two best are closer than twice that."""
        error = float((got - expected).abs().max() / expected.abs().max())
        self.assertLess(error, TOLERANCE[self.peer])
        best = expected.topk(2).values
        tied = best[..., 0] - best[..., 1] < 2 * TOLERANCE[self.peer] * expected.abs().max()
        different = torch.tensor(tokens) != expected.argmax(-1)
        self.assertFalse(bool((different & ~tied).any()), f"{int(different.sum())} tokens differ, not all of them ties")

    def test_says_which_engine_it_is(self):
        hello = self.assert_reply(self.worker.ask("hello", protocol=1), "hello")
        self.assertRegex(hello["version"], r"^\d+\.\d+")
        self.assertIn("fp32", hello["dtypes"])
        self.assertIn("cpu", hello["devices"])

    def test_chooses_the_tokens_of_generate(self):
        for phase, skipped in (("prefill", 0), ("decode", 1)):
            with self.subTest(phase=phase):
                model = self.ready(phase, TOKENS)
                tokens, expected = self.reference(model, TOKENS)
                tokens, expected = tokens[skipped : skipped + TOKENS], expected[skipped : skipped + TOKENS]
                forced = self.assert_reply(self.worker.ask("outputs", steps=TOKENS, forced=tokens, logits=True), "outputs")
                logits = torch.tensor(read_logits(forced, BATCH))
                self.assertEqual(tuple(logits.shape), (TOKENS, BATCH, VOCABULARY))
                self.assert_close(logits, expected, forced["tokens"])
                free = self.assert_reply(self.worker.ask("outputs", steps=TOKENS, forced=None, logits=True), "outputs")
                if self.peer != "llama_cpp":  # after a tie its own text goes another way
                    self.assertEqual(free["tokens"], tokens)
                logits = torch.tensor(read_logits(free, BATCH))
                self.assertEqual(logits.argmax(-1).tolist(), free["tokens"])

    def test_times_every_phase(self):
        for phase in ("prefill", "decode", "generate"):
            with self.subTest(phase=phase):
                self.ready(phase)
                self.assertGreater(self.assert_reply(self.worker.ask("counters"), "counters")["step_ns"], 0)
                visit = self.assert_reply(self.worker.ask("visit", steps=STEPS + 8, warmup=WARMUP), "visit")  # more than fit into one fill
                self.assertEqual(len(visit["samples_ns"]), STEPS + 8)
                self.assertTrue(all(sample > 0 for sample in visit["samples_ns"]))
                self.assertGreaterEqual(visit["wall_ns"], sum(visit["samples_ns"]))

    def test_a_visit_leaves_the_outputs_as_they_were(self):
        self.ready("decode")
        before = self.worker.ask("outputs", steps=8, forced=None, logits=False)["tokens"]
        self.worker.ask("visit", steps=5, warmup=WARMUP)
        self.assertEqual(self.worker.ask("outputs", steps=8, forced=None, logits=False)["tokens"], before)

    def test_a_missing_model_is_an_error_and_the_worker_stays_usable(self):
        reply = self.worker.load(os.path.join(self.shared, "nowhere"))
        self.assertEqual((reply["reply"], reply["kind"]), ("error", "failed"))
        self.ready("prefill")

    def test_a_16_bit_type_is_near_or_refused(self):
        hello = self.worker.ask("hello", protocol=1)
        if "bf16" not in hello["dtypes"]:
            self.assertEqual(self.worker.load(self.checkpoint()[0], "bf16")["kind"], "unsupported")
            return
        model = self.ready("prefill", dtype="bf16")
        tokens, expected = self.reference(model)
        forced = self.worker.ask("outputs", steps=STEPS, forced=tokens[:STEPS], logits=True)
        logits = torch.tensor(read_logits(forced, BATCH))
        error = float((logits - expected[:STEPS]).abs().max() / expected.abs().max())
        self.assertTrue(0 < error < 5e-2, error)


class TransformersTest(PeerTests, ProgramTest):
    peer = "transformers"


class TransformersStaticEagerTest(PeerTests, ProgramTest):
    peer = "transformers"
    flags = ("--cache", "static", "--attention", "eager")


class CTranslate2Test(PeerTests, ProgramTest):
    peer = "ctranslate2"


class LlamaCppTest(PeerTests, ProgramTest):
    peer = "llama_cpp"


class LlamaCppUnifiedTest(PeerTests, ProgramTest):
    peer = "llama_cpp"
    flags = ("--flash-attention", "on", "--kv-unified", "on", "--mmap", "off", "--ubatch", "32")


class OnAFamily(PeerTests):
    """An engine on a family other than gpt_bigcode."""

    SMALL = dict(vocab_size=VOCABULARY, hidden_size=64, intermediate_size=256, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, head_dim=32,
                 max_position_embeddings=128, initializer_range=0.2)

    def checkpoint(self):
        if not hasattr(type(self), "written"):
            torch.manual_seed(0)
            type(self).written = self.save_model(self.model())
        return self.written


class OnLlama(OnAFamily):
    rope = dict(rope_type="default", rope_theta=10000.0)

    def model(self):
        from transformers import LlamaConfig, LlamaForCausalLM
        return LlamaForCausalLM(LlamaConfig(**self.SMALL, rope_parameters=self.rope))


class OnQwen3(OnAFamily):
    def model(self):
        from transformers import Qwen3Config, Qwen3ForCausalLM
        return Qwen3ForCausalLM(Qwen3Config(**self.SMALL, tie_word_embeddings=True))


class OnNeox(OnAFamily):
    def model(self):
        from transformers import GPTNeoXConfig, GPTNeoXForCausalLM
        small = {name: value for name, value in self.SMALL.items() if name not in ("num_key_value_heads", "head_dim")}
        # llama.cpp computes gelu by tanh whatever the model has.
        return GPTNeoXForCausalLM(GPTNeoXConfig(**small, hidden_act="gelu_pytorch_tanh", hidden_dropout=0.0, attention_dropout=0.0))


class OnT5(OnAFamily):
    """An encoder reads the prompt; what is chosen begins behind the decoder's start token."""

    def model(self):
        from transformers import T5Config, T5ForConditionalGeneration
        return T5ForConditionalGeneration(T5Config(vocab_size=VOCABULARY, d_model=64, d_kv=16, d_ff=128, num_layers=2, num_decoder_layers=2, num_heads=4,
                                                   feed_forward_proj="gated-gelu", decoder_start_token_id=0, pad_token_id=0, eos_token_id=1, dropout_rate=0.0))

    def reference(self, model, steps=STEPS):
        encoded, past, ids = model.get_encoder()(input_ids=self.prompts), None, torch.zeros((BATCH, 1), dtype=torch.int64)
        tokens, logits = [], []
        with torch.no_grad():
            for _ in range(steps + 1):
                answer = model(encoder_outputs=encoded, decoder_input_ids=ids, past_key_values=past, use_cache=True)
                past, ids = answer.past_key_values, answer.logits[:, -1:].argmax(-1)
                tokens.append(ids[:, 0].tolist())
                logits.append(answer.logits[:, -1].float())
        return tokens, torch.stack(logits)


class TransformersOnT5Test(OnT5, ProgramTest):
    peer = "transformers"


class LlamaCppOnLlamaTest(OnLlama, ProgramTest):
    peer = "llama_cpp"
    rope = dict(rope_type="llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=32, rope_theta=10000.0)


class LlamaCppOnQwen3Test(OnQwen3, ProgramTest):
    peer = "llama_cpp"


class LlamaCppOnNeoxTest(OnNeox, ProgramTest):
    peer = "llama_cpp"


class VllmOnLlamaTest(OnLlama, ProgramTest):
    peer = "vllm"
    flags = ("--eager",)  # what is compiled is proved by sweeps; here it would take minutes

    def test_heads_that_it_has_no_kernel_for_are_refused(self):
        with tempfile.TemporaryDirectory() as self.folder:  # the class's checkpoint lies in the shared one
            folder, _ = self.write_checkpoint(n_embd=64, n_head=4, n_inner=256, n_positions=128, vocab_size=VOCABULARY)
            reply = self.worker.load(folder)
        self.assertEqual((reply["reply"], reply["kind"]), ("error", "unsupported"))
        self.assertIn("head_dim 16", reply["message"])


class CTranslate2OnLlamaTest(OnLlama, ProgramTest):
    peer = "ctranslate2"


class CTranslate2OnQwen3Test(OnQwen3, ProgramTest):
    peer = "ctranslate2"


class CTranslate2OnNeoxTest(OnNeox, ProgramTest):
    peer = "ctranslate2"


if __name__ == "__main__":
    unittest.main()
