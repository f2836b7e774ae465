"""Bad input gets one sentence on stderr and its exit code, and nothing is created or lost."""

import json
import os
import shutil
import sqlite3
import struct
import unittest

from program import ProgramTest

ARMS = ["--arm", "causal"]
QUICK = ["--launches", "1", "--blocks", "1", "--length", "8"]


class AModelThatIsDownloaded(ProgramTest):
    def test_is_named_with_the_command_that_fetches_it(self):
        result = self.run_program("generate", "-m", "smollm2", "--prompt", "a", expect=2, DECODELAB_CACHE=self.path("cache"))
        self.assert_one_sentence(result, self.path("cache", "smollm2"), "'decodelab fetch smollm2' downloads it")

    def test_is_the_only_one(self):
        self.assert_one_sentence(self.run_program("fetch", "llama", expect=2), "fetch 'llama'", "expected smollm2")

    def test_is_fetched_by_the_python_that_is_there(self):
        cache = self.path("cache")
        result = self.run_program("fetch", "smollm2", expect=70, DECODELAB_CACHE=cache, DECODELAB_PYTHON="/nonexistent/python")
        self.assert_one_sentence(result, "/nonexistent/python")
        os.makedirs(os.path.join(cache, "smollm2"))
        open(os.path.join(cache, "smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf"), "w").close()
        self.assertIn("is there already", self.run_program("fetch", "smollm2", DECODELAB_CACHE=cache, DECODELAB_PYTHON="/nonexistent/python").stdout)


class AFirstTry(ProgramTest):
    def test_without_a_word_shows_what_there_is_to_do(self):
        result = self.run_program(expect=2)
        self.assertEqual(result.stdout, "")
        for words in ("Subcommands:", "decodelab sweep -m", "--help"):
            self.assertIn(words, result.stderr)

    def test_of_a_model_whose_name_is_misspelt_is_told_the_name(self):
        for wrong, right in (("smolm2", "smollm2"), ("synthetc:tiny", "synthetic:tiny")):
            result = self.run_program("sweep", "-m", wrong, *ARMS, *QUICK, "--store", self.store, expect=2)
            self.assert_one_sentence(result, f"did you mean '{right}'")


class ABadCheckpoint(ProgramTest):
    def setUp(self):
        super().setUp()
        self.checkpoint, _ = self.write_checkpoint()
        self.weights = os.path.join(self.checkpoint, "model.safetensors")

    def refuse(self, *words):
        result = self.run_program("sweep", "-m", self.checkpoint, *ARMS, *QUICK, "--store", self.store, expect=2)
        self.assert_one_sentence(result, *words)
        self.assertFalse(os.path.exists(self.store), "a store was created")

    def edit_config(self, **changes):
        path = os.path.join(self.checkpoint, "config.json")
        with open(path, encoding="utf-8") as file:
            config = json.load(file)
        config.update(changes)
        with open(path, "w", encoding="utf-8") as file:
            json.dump(config, file)

    def edit_header(self, edit):
        with open(self.weights, "rb") as file:
            content = file.read()
        (size,) = struct.unpack("<Q", content[:8])
        header = json.loads(content[8:8 + size])
        edit(header)
        text = json.dumps(header).encode()
        with open(self.weights, "wb") as file:
            file.write(struct.pack("<Q", len(text)) + text + content[8 + size:])

    def test_without_weights(self):
        os.remove(self.weights)
        self.refuse("model.safetensors")

    def test_with_truncated_weights(self):
        os.truncate(self.weights, os.path.getsize(self.weights) // 2)
        self.refuse("model.safetensors")

    def test_with_a_header_that_lies_about_offsets(self):
        self.edit_header(lambda header: header["transformer.wte.weight"].update(data_offsets=[0, 10**12]))
        self.refuse("transformer.wte.weight")

    def test_with_a_header_that_lies_about_sizes(self):
        self.edit_header(lambda header: header["transformer.wte.weight"].update(shape=[97, 47]))
        self.refuse("transformer.wte.weight")

    def test_with_a_header_longer_than_the_file(self):
        with open(self.weights, "r+b") as file:
            file.write(struct.pack("<Q", 1 << 40))
        self.refuse("model.safetensors")

    def test_with_a_wrong_shape(self):
        self.edit_config(n_inner=95)
        self.refuse("shape", "mlp.c_fc")

    def test_with_an_unknown_dtype(self):
        self.edit_header(lambda header: header["transformer.wte.weight"].update(dtype="Q7"))
        self.refuse("Q7")

    def test_with_an_unsupported_model_type(self):
        self.edit_config(model_type="mamba")
        self.refuse("mamba", "gpt_bigcode", "llama")

    def test_that_is_not_there(self):
        shutil.rmtree(self.checkpoint)
        self.refuse("checkpoint")


class ABadRequest(ProgramTest):
    def refuse(self, *arguments, words=(), expect=2):
        result = self.run_program("sweep", "-m", "synthetic:tiny", "--store", self.store, *arguments, expect=expect)
        self.assert_one_sentence(result, *words)
        self.assertFalse(os.path.exists(self.store), "a store was created")

    def test_of_lengths_of_which_none_fits_the_model(self):
        self.refuse(*ARMS, "--length", "2049,4096", words=["2048 positions"])

    def test_of_batch_0(self):
        self.refuse(*ARMS, "--batch", "0", words=["--batch"])

    def test_of_a_reversed_range(self):
        self.refuse(*ARMS, "--batch", "8-1", words=["--batch", "8-1"])

    def test_of_an_unknown_arm(self):
        self.refuse("--arm", "bigcodee", words=["bigcodee", "'bigcode'"])

    def test_of_an_unknown_variant(self):
        self.refuse("--arm", "causal,+flash-prefil", words=["flash-prefil", "'flash-prefill'"])

    def test_of_two_variants_on_one_slot(self):
        self.refuse("--arm", "bigcode,+kv-preallocated", words=["kv-grow", "kv-preallocated", "kv_growth"])

    def test_of_no_arm(self):
        self.refuse(words=["--arm"])

    def test_of_an_unknown_phase_dtype_fill_or_output(self):
        self.refuse(*ARMS, "--phase", "decoding", words=["decoding", "prefill"])
        self.refuse(*ARMS, "--dtype", "fp8", words=["fp8", "bf16"])
        self.refuse(*ARMS, "--fill", "zeros", words=["zeros", "random"])
        self.refuse(*ARMS, "-o", "yaml", words=["yaml", "jsonl"])

    def test_of_an_unknown_synthetic_model(self):
        self.refuse("-m", "synthetic:tinny", *ARMS)

    def test_of_an_unknown_option(self):
        self.refuse(*ARMS, "--batches", "1", words=["--batches"])

    def test_of_no_device_by_that_name(self):
        self.refuse(*ARMS, "--device", "gpu", words=["gpu", "cuda:0"])

    def test_of_a_device_that_is_absent(self):
        self.refuse(*ARMS, "--device", "cuda:63", words=["cuda:63", "absent"], expect=77)


class ABadStore(ProgramTest):
    def refuse(self, store, *words):
        result = self.run_program("sweep", "-m", "synthetic:tiny", *ARMS, *QUICK, "--store", store, expect=2)
        self.assert_one_sentence(result, *words)

    def test_that_cannot_be_written(self):
        self.refuse(self.path("no", "such", "folder", "store.sqlite"), "store.sqlite")
        self.assertEqual(os.listdir(self.folder), [])

    def test_of_a_newer_schema(self):
        self.run_program("sweep", "-m", "synthetic:tiny", *ARMS, *QUICK, "--phase", "decode", "--store", self.store)
        with sqlite3.connect(self.store) as connection:
            connection.execute("PRAGMA user_version = 1000")
        connection.close()
        with open(self.store, "rb") as file:
            before = file.read()
        self.refuse(self.store, "1000")
        with open(self.store, "rb") as file:
            self.assertEqual(file.read(), before)

    def test_that_is_no_store(self):
        with open(self.store, "w", encoding="utf-8") as file:
            file.write("this is a letter to my aunt\n" * 50)
        self.refuse(self.store, "store.sqlite")
        with open(self.store, encoding="utf-8") as file:
            self.assertIn("my aunt", file.read())

    def test_that_is_missing_is_not_created_by_a_report_or_a_resume(self):
        self.assert_one_sentence(self.run_program("report", "latest", "--store", self.store, "--out", self.path("out"), expect=2), "store.sqlite")
        self.assert_one_sentence(self.run_program("sweep", "--resume", "latest", "--store", self.store, expect=2), "store.sqlite")
        self.assertEqual(os.listdir(self.folder), [])

    def test_without_the_run_that_is_asked_for(self):
        self.run_program("sweep", "-m", "synthetic:tiny", *ARMS, *QUICK, "--phase", "decode", "--store", self.store, "--name", "first")
        self.assert_one_sentence(self.run_program("report", "second", "--store", self.store, "--out", self.path("out"), expect=2), "second", "first")
        self.assertFalse(os.path.exists(self.path("out")))


class ABadPrompt(ProgramTest):
    def refuse(self, *arguments, words=()):
        self.assert_one_sentence(self.run_program("generate", "-m", "synthetic:tiny", *arguments, expect=2), *words)

    def test_is_refused(self):
        self.refuse(words=["--prompt-ids"])
        self.refuse("--prompt-ids", "1,x", words=["1,x"])
        self.refuse("--prompt-ids", "4096", words=["4096", "4095"])
        self.refuse("--prompt-ids", "1", "--max-tokens", "0")
        self.refuse("--prompt-ids", "1", "--max-tokens", "2049", words=["2048"])
        self.refuse("--prompt", "text", words=["tokenizer.json", "--prompt-ids"])


if __name__ == "__main__":
    unittest.main()
