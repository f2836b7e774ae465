"""`decodelab generate` with requests that join and leave a batch (`--prompts`), and with rules on what may come."""

import json
import os
import re
import shutil
import subprocess
import time
import unittest

from program import ProgramTest

TOKENIZER = os.path.join(os.path.dirname(__file__), "../data/tokenizer/gpt2.json")
ARMS = ("causal", "bigcode", "native")


class ModelWithText(ProgramTest):
    """A model of 97 ids, which in this tokenizer are single bytes; 0 ends a text."""

    def setUp(self):
        super().setUp()
        self.model, _ = self.write_checkpoint()
        shutil.copy(TOKENIZER, os.path.join(self.model, "tokenizer.json"))


class Requests(ModelWithText):
    def write_requests(self, *lines):
        file = self.path("requests.jsonl")
        with open(file, "w") as out:
            out.writelines((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines)
        return file

    def lines_of(self, text):
        return [json.loads(line) for line in text.splitlines()]

    def test_get_what_they_get_alone_each_with_settings_of_its_own(self):
        requests = [{"prompt_ids": [5 + index, 17, 96][: 1 + index % 3], "max_tokens": 3 + 5 * index % 11,
                     **({"temperature": 1.2, "seed": index} if index % 2 else {}), **({"samples": 2} if index % 4 == 3 else {}),
                     **({"repetition_penalty": 1.4} if index % 3 == 0 else {}), **({"allow_ids": [7, 8, 9]} if index == 4 else {})}
                    for index in range(12)]
        file = self.write_requests(*requests)
        for arm in ARMS:
            alone = []
            for request in requests:
                flags = ["--prompt-ids", ",".join(map(str, request["prompt_ids"])), "--max-tokens", request["max_tokens"]]
                for key in ("temperature", "seed", "samples", "repetition_penalty"):
                    flags += [f"--{key.replace('_', '-')}", request[key]] if key in request else []
                flags += ["--allow-ids", "7,8,9"] if "allow_ids" in request else []
                alone += self.run_json("generate", "-m", self.model, "--arm", arm, *flags)["completions"]
            for limits in ((), ("--max-batch", 2), ("--max-batch", 5, "--prefill-chunk", 2), ("--max-tokens-in-flight", 40)):
                together = self.run_json("generate", "-m", self.model, "--arm", arm, "--prompts", file, *limits)["completions"]
                self.assertEqual(together, alone, f"{arm} {limits}")

    def test_are_written_as_they_end_and_a_broken_line_gets_an_error_in_its_place(self):
        file = self.write_requests({"prompt_ids": [5], "max_tokens": 20}, "{broken", {"prompt_ids": [6], "max_tokens": 2}, {"prompt_ids": [7], "tokens": 2},
                                   {"prompt_ids": [10**6]}, {"prompt_ids": [8], "max_tokens": 2, "regex": "a\\b"}, {"prompt_ids": [9], "max_tokens": 0})
        flags = ("generate", "-m", self.model, "--arm", "native", "--ignore-eos", "--prompts", file)
        result = self.run_program(*flags, "-o", "jsonl", expect=2)
        lines = self.lines_of(result.stdout)
        self.assertEqual([line["index"] for line in lines if "error" not in line], [2, 0], "the shorter one ends first")
        errors = {line["index"]: line["error"] for line in lines if "error" in line}
        for index, words in {1: ("line 2", "JSON"), 3: ("line 4", "'tokens'"), 4: ("prompt 5", "1000000"), 5: ("prompt 6", "\\b"), 6: ("prompt 7", "at least 1 token")}.items():
            for word in words:
                self.assertIn(word, errors[index])
        document = json.loads(self.run_program(*flags, "-o", "json", expect=2).stdout)
        self.assertEqual(["error" in entry for entry in document["completions"]], [False, True, False, True, True, True, True])
        text = self.run_program(*flags, expect=2)
        self.assertEqual(len(text.stdout.splitlines()), 2)
        self.assertEqual(text.stderr.count("decodelab: "), 5)

    def test_keep_every_finished_line_where_the_process_is_killed(self):
        file = self.write_requests(*({"prompt_ids": [5 + index % 80], "max_tokens": 4 + index % 50} for index in range(400)))
        out = self.path("out.jsonl")
        with open(out, "w") as stdout:
            process = subprocess.Popen([os.environ["DECODELAB"], "generate", "-m", self.model, "--ignore-eos", "--prompts", file, "-o", "jsonl"], stdout=stdout,
                                       env=self.environment())
            deadline = time.monotonic() + 60
            while process.poll() is None and time.monotonic() < deadline and os.path.getsize(out) < 4000:
                time.sleep(0.01)
            process.kill()
            process.wait()
        with open(out) as written:
            text = written.read()
        self.assertTrue(text.endswith("\n"))
        lines = self.lines_of(text)
        self.assertGreater(len(lines), 5)
        self.assertEqual(len({line["index"] for line in lines}), len(lines))
        for line in lines:
            self.assertEqual(len(line["token_ids"]), 4 + line["index"] % 50)

    def test_refuse_what_belongs_to_one_batch(self):
        file = self.write_requests({"prompt_ids": [5]})
        for flags, words in ((("--logits", self.path("l.safetensors")), ("--logits", "--prompts")), (("--seed", 1, "--seed", 2), ("'seed'",)),
                             (("--max-batch", 0), ("--max-batch",)), (("--max-tokens-in-flight", -1), ("--max-tokens-in-flight",))):
            self.assert_one_sentence(self.run_program("generate", "-m", self.model, "--prompts", file, *flags, expect=2), *words)
        self.assert_one_sentence(self.run_program("generate", "-m", self.model, "--prompts", self.path("none"), expect=2), "none")
        os.remove(os.path.join(self.model, "tokenizer.json"))
        [line] = self.lines_of(self.run_program("generate", "-m", self.model, "--prompts", self.write_requests({"prompt_ids": [5], "regex": "a"}), "-o", "jsonl", expect=2).stdout)
        self.assertIn("'regex' needs a tokenizer", line["error"])
        sweep = self.run_program("sweep", "-m", self.model, "--arm", "causal", "--prompts", self.write_requests({"prompt_ids": [5], "max_tokens": 3}), expect=2)
        self.assert_one_sentence(sweep, "line 1", "max_tokens")


class Rules(ModelWithText):
    def completion(self, *flags):
        [completion] = self.run_json("generate", "-m", self.model, "--prompt-ids", "5,17", "--max-tokens", 12, *flags)["completions"]
        return completion

    def test_a_regex_holds_for_the_text_under_every_arm_and_way_of_making_masks(self):
        said = set()
        for arm in (*ARMS, "bigcode,+trie-masks", "bigcode,+index-masks", "bigcode,+cached-trie-masks"):
            completion = self.completion("--arm", arm, "--regex", "(a|an|the)-[a-z]{2,6}[.]")
            self.assertRegex(completion["text"], r"\A(a|an|the)-[a-z]{2,6}[.]\Z")
            said.add(completion["text"])
        self.assertEqual(len(said), 1)
        samples = self.completion("--regex", "[0-9]{4}", "--samples", 4, "--seed", 3, "--temperature", 1)["samples"]
        self.assertEqual([bool(re.fullmatch("[0-9]{4}", sample["text"])) for sample in samples], [True] * 4)
        self.assertGreater(len({sample["text"] for sample in samples}), 1)

    def test_ends_are_forbidden_or_put_off_and_a_dead_end_is_said(self):
        self.assertEqual(self.completion("--allow-ids", "0")["finish_reason"], "eos")
        self.assertEqual(self.completion("--allow-ids", "0", "--forbid-eos")["finish_reason"], "dead-end")
        least = self.completion("--allow-ids", "0,7", "--min-tokens", 3)
        self.assertGreaterEqual(len(least["token_ids"]), 3)
        self.assertEqual(self.completion("--regex", "ab", "--forbid-eos")["finish_reason"], "dead-end")
        self.assertEqual(self.completion("--regex", "ab")["finish_reason"], "eos")

    def test_are_refused_with_their_reason(self):
        flags = ("generate", "-m", self.model, "--prompt-ids", "5")
        for more, words in ((("--regex", ""), ("empty",)), (("--regex", "a(?=b)"), ("look-around",)), (("--regex", "(a"), ("')'",)), (("--regex", "(a)\\1"), ("back-reference",)),
                            (("--allow-ids", "99999999"), ("--allow-ids",)), (("--min-tokens", -1), ("--min-tokens",))):
            self.assert_one_sentence(self.run_program(*flags, *more, expect=2), *words)
        index = self.run_program(*flags, "--arm", "bigcode,+index-masks", "--regex", "(a|b)*a(a|b){20}", expect=2)
        self.assert_one_sentence(index, "index-masks", "cached-trie-masks")
        os.remove(os.path.join(self.model, "tokenizer.json"))
        self.assert_one_sentence(self.run_program(*flags, "--regex", "a", expect=2), "--regex", "tokenizer")


if __name__ == "__main__":
    unittest.main()
