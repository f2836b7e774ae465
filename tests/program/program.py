"""What the tests of the built program share: running it, temporary folders, and small checkpoints."""

import fcntl
import json
import os
import shutil
import subprocess
import tempfile
import unittest

PROGRAM = os.path.abspath(os.environ.get("DECODELAB", os.path.join(os.path.dirname(__file__), "../../build/release/decodelab")))


def keep_to_a_core():
    """Binds this process and what it starts to a core that no other test has: threads of two programs that wait for each other on the same cores take
    fifty times as long for a step. Returns the file that holds the core until the process ends; without a free one nothing is bound."""
    for core in sorted(os.sched_getaffinity(0)):
        held = open(os.path.join(tempfile.gettempdir(), f"decodelab-test-core-{core}.lock"), "w")
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            held.close()
            continue
        os.sched_setaffinity(0, {core})
        return held
    return None


# Set where tests run beside each other.
_held_core = keep_to_a_core() if os.environ.get("DECODELAB_TEST_KEEPS_TO_A_CORE") else None


class ProgramTest(unittest.TestCase):
    """A test with a folder of its own, in which stores and caches lie."""

    program = PROGRAM

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="decodelab-test-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.store = os.path.join(self.folder, "store.sqlite")

    def path(self, *parts):
        return os.path.join(self.folder, *parts)

    def environment(self, **changes):
        environment = dict(os.environ)
        environment.setdefault("DECODELAB_CACHE", os.path.join(tempfile.gettempdir(), "decodelab-test-cache"))
        environment.update(changes)
        return environment

    def run_program(self, *arguments, expect=0, **changes):
        """Runs the program and returns what it printed; its exit code must be `expect`."""
        result = subprocess.run([self.program, *map(str, arguments)], capture_output=True, text=True, cwd=self.folder, env=self.environment(**changes), timeout=600)
        if expect is not None:
            self.assertEqual(result.returncode, expect, f"{' '.join(map(str, arguments))}\n{result.stdout}\n{result.stderr}")
        return result

    def run_json(self, *arguments, **keywords):
        return json.loads(self.run_program(*arguments, "-o", "json", **keywords).stdout)

    def assert_one_sentence(self, result, *words):
        """stderr holds one line that names `words`, and stdout nothing."""
        lines = result.stderr.strip().splitlines()
        self.assertEqual(len(lines), 1, result.stderr)
        self.assertTrue(lines[0].startswith("decodelab: "), lines[0])
        for word in words:
            self.assertIn(word, lines[0])
        self.assertEqual(result.stdout, "")

    def write_checkpoint(self, *parts, dtype="float32", seed=0, shards=False, **changes):
        """A random checkpoint made and saved by Transformers; returns its folder and the model."""
        import torch
        from transformers import GPTBigCodeConfig, GPTBigCodeForCausalLM

        settings = dict(n_layer=2, n_embd=48, n_head=4, n_inner=96, n_positions=64, vocab_size=97, multi_query=True, activation_function="gelu_pytorch_tanh",
                        attn_pdrop=0.0, embd_pdrop=0.0, resid_pdrop=0.0, bos_token_id=0, eos_token_id=0, initializer_range=0.2)
        settings.update(changes)
        torch.manual_seed(seed)
        return self.save_model(GPTBigCodeForCausalLM(GPTBigCodeConfig(**settings)), *parts, dtype=dtype, shards=shards)

    def save_model(self, model, *parts, dtype="float32", shards=False):
        """Saves a model of Transformers with biases and norms that are not all alike; returns its folder and the model."""
        import torch

        model = model.eval()
        # Transformers starts biases at zero and norms at one, which would hide a bias that is never added.
        with torch.no_grad():
            for name, parameter in model.named_parameters():
                if parameter.dim() == 1:
                    parameter.add_(torch.randn_like(parameter) * 0.1)
        model = model.to(getattr(torch, dtype))
        folder = self.path(*(parts or ("checkpoint",)))
        model.save_pretrained(folder, max_shard_size="40KB" if shards else "50GB", safe_serialization=True)
        return folder, model
