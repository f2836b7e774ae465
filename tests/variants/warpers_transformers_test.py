"""Both implementations of the warpers against the LogitsProcessors of Hugging Face Transformers, on ordinary and on awkward rows."""

import json
import math
import os
import random
import subprocess
import unittest

import torch
from transformers import LogitsProcessorList
from transformers.generation import logits_process

PROGRAM = os.environ.get("WARPER_VALUES", os.path.join(os.path.dirname(__file__), "../../build/release/warper_values"))
OUT = -math.inf

# (what, logits of one row); every row goes through every one of WISHES.
ROWS = [
    ("random", lambda draw: [draw.gauss(0, 3) for _ in range(40)]),
    ("flat", lambda draw: [0.0] * 40),
    ("tied", lambda draw: [float(draw.randrange(4)) for _ in range(40)]),
    ("peaked", lambda draw: [90.0] + [draw.gauss(0, 1) for _ in range(39)]),
    ("underflowing", lambda draw: [0.0, -200.0] * 20),
    ("masked", lambda draw: [OUT if index % 3 else draw.gauss(0, 2) for index in range(40)]),
    ("one left", lambda draw: [OUT] * 39 + [-5.0]),
    ("one token", lambda draw: [2.5]),
    ("two tokens", lambda draw: [1.0, -1.0]),
    ("quarters, whose sums are exact", lambda draw: [1.0, 1.0, 1.0, 1.0]),
    ("zeros of both signs", lambda draw: [0.0, -0.0, 1.0, -1.0]),
    ("wide", lambda draw: [draw.gauss(0, 1) for _ in range(3000)]),
]
WISHES = [
    {},
    {"temperature": 0.7}, {"temperature": 3.0}, {"temperature": 0.01},
    {"top_k": 1}, {"top_k": 3}, {"top_k": 40}, {"top_k": 5000},
    {"top_p": 0.9}, {"top_p": 0.5}, {"top_p": 0.25}, {"top_p": 0.75}, {"top_p": 1e-8}, {"top_p": 0.9999999},
    {"typical_p": 0.9}, {"typical_p": 0.5}, {"typical_p": 0.25}, {"typical_p": 1e-8}, {"typical_p": 0.99999},
    {"repetition_penalty": 1.3}, {"repetition_penalty": 0.5},
    {"repetition_penalty": 1.2, "temperature": 0.8, "top_k": 20, "top_p": 0.9, "typical_p": 0.8},
    {"temperature": 1.5, "top_k": 2, "typical_p": 0.5},
]  # fmt: skip


def answers(queries):
    """What the C++ side says to each query, a dict."""
    lines = "".join(json.dumps(query) + "\n" for query in queries)
    done = subprocess.run([PROGRAM], input=lines, capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def in_json(values):
    return [None if math.isinf(value) else value for value in values]


def expected_of(logits, wishes, history):
    """The row after the processors that generate() would make of the wishes, in its order."""
    make = [("repetition_penalty", logits_process.RepetitionPenaltyLogitsProcessor), ("temperature", logits_process.TemperatureLogitsWarper),
            ("top_k", logits_process.TopKLogitsWarper), ("top_p", logits_process.TopPLogitsWarper), ("typical_p", logits_process.TypicalLogitsWarper)]
    processors = LogitsProcessorList(processor(wishes[name]) for name, processor in make if name in wishes)
    return processors(torch.tensor([history]), torch.tensor([logits], dtype=torch.float32))[0]


def same_but_for_ties(got, expected):
    """Whether as many tokens of each logit are kept; which of several equal ones falls to top-p is left to the order of Transformers' sort, which is not stable."""
    kept_by_both = [(one, other) for one, other in zip(got, expected, strict=True) if one is not None and other is not None]
    kept, kept_there = (sorted(value for value in row if value is not None) for row in (got, expected))
    return all(one == other for one, other in kept_by_both) and kept == kept_there


class Warpers(unittest.TestCase):
    def test_agree_with_transformers(self):
        draw = random.Random(5)
        for what, make_logits in ROWS:
            logits = torch.tensor(make_logits(draw), dtype=torch.float32).tolist()
            histories = [[draw.randrange(len(logits)) for _ in range(draw.randrange(1, 9))] for _ in WISHES]
            rows = [{"history": history, **wishes} for history, wishes in zip(histories, WISHES, strict=True)]
            [got] = answers([{"logits": [in_json(logits)] * len(rows), "rows": rows}])
            for index, wishes in enumerate(WISHES):
                expected = in_json(expected_of(logits, wishes, histories[index]).tolist())
                for way in ("by_row", "together"):
                    with self.subTest(row=what, wishes=wishes, way=way):
                        if "top_p" in wishes and len(set(logits)) < len(logits) and same_but_for_ties(got[way][index], expected):
                            continue
                        self.assertEqual(got[way][index], expected)


if __name__ == "__main__":
    unittest.main()
