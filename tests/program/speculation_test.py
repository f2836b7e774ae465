"""Speculation from outside: the same completions, how many tokens were skipped, and sweeps at a known rate of right guesses."""

import json
import re
import unittest

from program import ProgramTest

PROMPT = ",".join(str(token) for token in [5, 6, 7, 8, 9] * 4)
REQUEST = ["generate", "-m", "synthetic:tiny", "--prompt-ids", PROMPT, "--prompt-ids", "1,2,3", "--max-tokens", 24, "--ignore-eos"]
SWEEP = ["sweep", "-m", "synthetic:tiny", "--phase", "generate", "--batch", "1,3", "--length", 8, "--max-tokens", 12, "--launches", 1, "--blocks", 1]


class Speculation(ProgramTest):
    def completions(self, *arguments):
        return self.run_json(*REQUEST, *arguments)["completions"]

    def test_changes_no_completion_and_tells_what_it_skipped(self):
        plain = self.completions("--arm", "causal")
        for arguments in (["--arm", "causal", "--speculate", 4], ["--arm", "native", "--speculate", 8], ["--arm", "speculate"], ["--arm", "native,+ngram-lookup"]):
            got = self.completions(*arguments)
            self.assertEqual([row["token_ids"] for row in got], [row["token_ids"] for row in plain], arguments)
            for row in got:
                self.assertLessEqual(row["skipped_tokens"], row["proposed_tokens"])
        self.assertGreater(sum(row["skipped_tokens"] for row in got), 0)
        self.assertNotIn("skipped_tokens", plain[0])
        told = self.run_program(*REQUEST, "--arm", "native", "--speculate", 8).stderr
        self.assertRegex(told, r"\d+ of 48 tokens were skipped: so many of \d+ guesses stood")

    def test_keeps_the_tokens_of_a_seed(self):
        drawn = ["--temperature", 0.5, "--top-k", 4, "--seed", 3, "--seed", 4]
        plain, guessed = (self.completions("--arm", "native", *drawn, *more) for more in ([], ["--speculate", 6]))
        self.assertEqual([row["token_ids"] for row in guessed], [row["token_ids"] for row in plain])

    def test_serves_a_file_of_requests(self):
        file = self.path("requests.jsonl")
        with open(file, "w") as lines:
            for request in range(5):
                lines.write(json.dumps({"prompt_ids": [request, 7, 8, 9, 7, 8, 9], "max_tokens": 6 + request}) + "\n")
        batches = [self.run_json("generate", "-m", "synthetic:tiny", "--prompts", file, "--ignore-eos", "--max-batch", 2, "--arm", arm)["completions"] for arm in ("native", "speculate")]
        self.assertEqual(*[[row["token_ids"] for row in batch] for batch in batches])

    def test_is_refused_in_a_sentence_where_it_cannot_be(self):
        for arm, named in (("native,+ngram-lookup", "ngram-lookup"), ("causal,+no-cache", "no-cache"), ("vector,+late-read-back", "late-read-back")):
            self.assert_one_sentence(self.run_program(*REQUEST, "--arm", arm, "--speculate", 4, expect=2), named)

    def test_is_swept_at_a_known_rate_of_right_guesses(self):
        arms = ["native", *(f"native,+oracle-draft:percent={percent}:tokens=3" for percent in (0, 50, 100))]
        rows = self.run_json(*SWEEP, "--store", self.store, *[word for arm in arms for word in ("--arm", arm)])["rows"]
        for row in rows:
            self.assertEqual(row["status"], "ok", row["reason"])
        counters = {(row["arm"], row["batch"]): row["counters"] for row in rows}
        for batch in (1, 3):
            wrong, half, right = (counters[arm, batch] for arm in arms[1:])
            self.assertEqual(wrong.get("accepted_tokens", 0), 0)
            self.assertGreater(half["accepted_tokens"], 0)
            self.assertLess(half["accepted_tokens"], half["proposed_tokens"])
            self.assertEqual(right["accepted_tokens"], right["proposed_tokens"])
            for of in (wrong, half, right):
                self.assertEqual(of["emitted_tokens"], of.get("accepted_tokens", 0) + of["rounds"] * batch)
                self.assertEqual(of["verified_rows"], of["proposed_tokens"] + of["rounds"] * batch)
            steps = right["counted_steps"]
            self.assertEqual(right["rounds"], steps * 3, "11 tokens behind the first, 4 a round")
            self.assertEqual(wrong["rounds"], steps * 11)

    def test_goes_on_behind_what_rows_hold(self):
        arms = ["native", *(f"native,+oracle-draft:percent={percent}:tokens=3{more}" for percent, more in ((0, ""), (100, ""), (100, ",+goodput-length")))]
        for fill in ("random", "generated"):
            rows = self.run_json("sweep", "--store", self.store, "-m", "synthetic:tiny", "--phase", "continue", "--batch", "1,3", "--length", 8, "--max-tokens", 12, "--launches", 1, "--blocks", 1,
                                 "--fill", fill, *[word for arm in arms for word in ("--arm", arm)])["rows"]
            for row in rows:
                self.assertEqual((row["status"], row["phase"]), ("ok", "continue"), row["reason"])
            for row in rows:
                if row["arm"] in arms[1:3]:
                    self.assertIs(row["engaged"], True)
                    self.assertEqual(row["counters"]["rounds"], 12 if row["arm"] == arms[1] else 3, "12 tokens, one or four a round")
                    self.assertEqual(row["counters"]["emitted_tokens"], 12 * row["batch"])

    def test_guesses_the_rounds_of_real_text_again(self):
        file = self.path("rounds.jsonl")
        lines = self.run_program(*REQUEST, "--arm", "native", "--speculate", 6, "-o", "jsonl").stdout
        with open(file, "w") as trace:
            trace.write(lines)
        rounds = [json.loads(line)["rounds"] for line in lines.splitlines()]
        for row, line in zip(rounds, map(json.loads, lines.splitlines()), strict=True):
            self.assertEqual(sum(proposed for proposed, _ in row), line["proposed_tokens"])
            self.assertEqual(sum(accepted for _, accepted in row), line["skipped_tokens"], "no end cut a run")
        rows = self.run_json("sweep", "--store", self.store, "-m", "synthetic:tiny", "--phase", "continue", "--batch", 2, "--length", 8, "--max-tokens", 23, "--launches", 1, "--blocks", 1,
                             "--arm", "native", "--arm", f"native,+oracle-draft:tokens=6:trace={file}")["rows"]
        counters = rows[1]["counters"]
        self.assertEqual(rows[1]["status"], "ok", rows[1]["reason"])
        self.assertEqual(counters["proposed_tokens"], sum(proposed for row in rounds for proposed, _ in row))
        self.assertEqual(counters["rounds"], max(len(row) for row in rounds))

    def test_lets_a_second_model_guess(self):
        plain = self.completions("--arm", "causal")
        for arguments in (["--draft", "synthetic:tiny"], ["--draft", "small=synthetic:tiny", "--speculate", 3, "--arm", "native"],
                          ["--draft", "a=synthetic:tiny", "--draft", "b=synthetic:tiny", "--arm", "native,+draft-model:draft=b"], ["--draft", "synthetic:tiny", "--arm", "speculate-draft"],
                          ["--draft", "synthetic:tiny", "--arm", "causal,+draft-process:tokens=3"]):
            got = self.completions(*arguments)
            self.assertEqual([row["token_ids"] for row in got], [row["token_ids"] for row in plain], arguments)
            for row in got:
                self.assertEqual(row["skipped_tokens"], row["proposed_tokens"], "the draft is the model")
        arms = ["native", "native,+draft-model", "native,+draft-process", "native,+early-exit"]
        rows = self.run_json(*SWEEP, "--store", self.store, "--draft", "small=synthetic:tiny", *[word for arm in arms for word in ("--arm", arm)])["rows"]
        self.assertEqual({row["status"] for row in rows}, {"ok"}, rows)
        here, apart = ({row["batch"]: row["counters"]["accepted_tokens"] for row in rows if row["arm"] == arm} for arm in arms[1:3])
        self.assertEqual(here, apart, "where a draft runs changes no guess")

    def test_refuses_a_draft_that_cannot_guess_in_a_sentence(self):
        for arguments, named in ((["--arm", "native,+draft-model"], "--draft NAME=MODEL"), (["--draft", "synthetic:gpt2"], "a vocabulary of 50257"),
                                 (["--draft", "self=synthetic:tiny"], "the model itself"), (["--arm", "native,+draft-process:draft=self"], "--draft NAME=MODEL"), (["--draft", "no/such/model"], "--draft model=no/such/model"),
                                 (["--draft", "a=synthetic:tiny", "--draft", "b=synthetic:tiny"], "which of the 2 drafts"),
                                 (["--draft", "synthetic:tiny", "--arm", "native,+ngram-lookup"], "ngram-lookup")):
            self.assert_one_sentence(self.run_program(*REQUEST, *arguments, expect=2), named)

    def test_has_rows_with_a_reason_where_it_means_nothing(self):
        rows = self.run_json("sweep", "--store", self.store, "-m", "synthetic:tiny", "--phase", "decode,generate", "--batch", 1, "--length", 8, "--max-tokens", 4, "--launches", 1, "--blocks", 1,
                             "--arm", "native", "--arm", "speculate")["rows"]
        reasons = {row["phase"]: row["reason"] for row in rows if row["arm"] == "speculate"}
        self.assertIn("measure phase continue", reasons["decode"])
        self.assertTrue(re.search("--prompts FILE", reasons["generate"]), reasons)


if __name__ == "__main__":
    unittest.main()
