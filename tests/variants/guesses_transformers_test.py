"""Guesses of ngram-lookup against the prompt look-up of Hugging Face Transformers, on random tokens."""

import json
import os
import random
import subprocess
import unittest

import torch
from transformers.generation.candidate_generator import PromptLookupCandidateGenerator

PROGRAM = os.environ.get("GUESS_VALUES", os.path.join(os.path.dirname(__file__), "../../build/release/guess_values"))


def guesses_of(queries):
    """What the C++ side guesses behind each beginning of each query's tokens."""
    lines = "".join(json.dumps(query) + "\n" for query in queries)
    done = subprocess.run([PROGRAM], input=lines, capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def theirs(tokens, match, most):
    """What Transformers would have one step check behind some tokens."""
    generator = PromptLookupCandidateGenerator(num_output_tokens=most, max_matching_ngram_size=match, max_length=len(tokens) + most + 2)
    candidates, _ = generator.get_candidates(torch.tensor([tokens]))
    return candidates[0].tolist()[len(tokens):]


class Guesses(unittest.TestCase):
    def test_agree_with_transformers(self):
        draw = random.Random(3)
        queries = [{"variant": f"ngram-lookup:match={match}:tokens={most}", "match": match, "most": most, "tokens": [draw.randrange(different) for _ in range(80)]}
                   for match, most in ((1, 3), (2, 10), (3, 1), (5, 16)) for different in (1, 2, 3, 7, 40, 50000)]
        found = 0
        for query, guesses in zip(queries, guesses_of(queries), strict=True):
            for count, guess in enumerate(guesses, 1):
                expected = theirs(query["tokens"][:count], query["match"], query["most"])
                self.assertEqual(guess, expected, (query["variant"], query["tokens"][:count]))
                found += bool(expected)
        self.assertGreater(found, 500, "strings that hold nothing twice would show nothing")


if __name__ == "__main__":
    unittest.main()
