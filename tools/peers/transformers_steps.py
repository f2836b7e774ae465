#!/usr/bin/env python3
"""Times prefill and decode steps of Hugging Face Transformers, the way `decodelab sweep` times its own.

One JSON object per cell on stdout: phase, batch, length, samples_ns. A prefill step runs B prompts of `length` random tokens with a new cache, keeps the
logits of the last position and reads the chosen tokens back; a decode step feeds one token a row to a cache that holds `length` keys.

example:
  transformers_steps.py -m CHECKPOINT --dtype fp32 --batch 1,8 --length 128 --threads 2
"""

import argparse
import json
import time

import torch
from transformers import AutoModelForCausalLM

DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
WARMUP_SECONDS = 0.02
TIMED_SECONDS = 0.2
MOST_STEPS = 64
PERIOD = 8


def prefill(model, ids):
    answer = model(input_ids=ids, use_cache=True, logits_to_keep=1)
    return answer.past_key_values, answer.logits[:, -1].argmax(-1, keepdim=True)


def prefill_samples(model, ids):
    def step():
        start = time.perf_counter_ns()
        prefill(model, ids)[1].tolist()
        return time.perf_counter_ns() - start

    first = step()
    steps = planned_steps(first)
    return [step() for _ in range(steps)]


def decode_samples(model, ids):
    def restart():
        cache, _ = prefill(model, ids)
        return cache, ids[:, :1]

    def step(cache, token):
        start = time.perf_counter_ns()
        answer = model(input_ids=token, past_key_values=cache, use_cache=True)
        token = answer.logits[:, -1].argmax(-1, keepdim=True)
        token.tolist()
        return time.perf_counter_ns() - start, token

    cache, token = restart()
    warm = []
    while not warm or (sum(warm) < WARMUP_SECONDS * 1e9 and len(warm) < 50):
        elapsed, token = step(cache, token)
        warm.append(elapsed)
    cache, token = restart()
    samples = []
    for _ in range(planned_steps(min(warm))):
        elapsed, token = step(cache, token)
        samples.append(elapsed)
    return samples


def planned_steps(step_ns):
    """As many steps as fill 0.2 s, whole periods of 8 wherever 8 steps fit in 2 s."""
    steps = max(1, min(MOST_STEPS, int(TIMED_SECONDS * 1e9 / step_ns)))
    if PERIOD * step_ns <= 2e9:
        steps = max(PERIOD, steps // PERIOD * PERIOD)
    return steps


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-m", "--model", required=True)
    parser.add_argument("--dtype", choices=DTYPES, default="fp32")
    parser.add_argument("--batch", default="1")
    parser.add_argument("--length", default="128")
    parser.add_argument("--phase", default="prefill,decode")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--attention", choices=["sdpa", "eager"], default="sdpa")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    model = AutoModelForCausalLM.from_pretrained(arguments.model, dtype=DTYPES[arguments.dtype], attn_implementation=arguments.attention).eval()
    torch.manual_seed(1)
    with torch.inference_mode():
        for phase in arguments.phase.split(","):
            for batch in map(int, arguments.batch.split(",")):
                for length in map(int, arguments.length.split(",")):
                    ids = torch.randint(model.config.vocab_size, (batch, length))
                    samples = (prefill_samples if phase == "prefill" else decode_samples)(model, ids)
                    print(json.dumps({"phase": phase, "batch": batch, "length": length, "samples_ns": samples}), flush=True)


if __name__ == "__main__":
    main()
