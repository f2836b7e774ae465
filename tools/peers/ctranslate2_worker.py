#!/usr/bin/env python3
"""A worker that decodes with CTranslate2, whose decoding loop is timed from inside by its own callback.

A prefill step is generate_batch() of one token. A decode step lies between the callbacks of the last row at two successive tokens: what the engine itself
takes from one choice of all rows on the host to the next. A completion (scope generate) is generate_batch() of max_tokens without a callback. Ends of
sequence are switched off (end_token=[]). Prompts go in as strings, for generate_batch() takes no ids.

example:
  decodelab sweep ... --worker ct2='tools/peers/run ctranslate2 --isa AVX512'
"""

import argparse
import os
import re
import sys
import tempfile
import threading
from importlib.metadata import version

from worker_engine import Engine, clock_ns
from worker_protocol import serve

ELEMENT_BYTES = {"fp32": 4, "bf16": 2, "fp16": 2}
COMPUTE_TYPES = {"fp32": "float32", "bf16": "bfloat16", "fp16": "float16"}
# What the library logs about the machine when it is first used, by the key under which it goes into the settings.
LOGGED = {"isa": r"Selected ISA: (\S+)", "mkl": r"Use Intel MKL: (\S+)", "gemm": r"SGEMM backend: (\S+)"}


class CTranslate2Engine(Engine):
    name = "ctranslate2"
    turns = True
    generator = cell = decoding = None

    def __init__(self, isa, mkl):
        os.environ["CT2_VERBOSE"] = "1"
        for variable, value in (("CT2_FORCE_CPU_ISA", isa), ("CT2_USE_MKL", mkl)):
            if value:
                os.environ[variable] = value
        self.version = version("ctranslate2")

    @property
    def devices(self):
        import ctranslate2

        return ("cpu", "cuda") if ctranslate2.get_cuda_device_count() else ("cpu",)

    @property
    def dtypes(self):
        import ctranslate2

        # A type that the processor lacks is silently replaced by float32 when a model is loaded: it is not offered.
        kinds = set().union(*(ctranslate2.get_supported_compute_types(device) for device in self.devices))
        return tuple(dtype for dtype, kind in COMPUTE_TYPES.items() if kind in kinds)

    def load(self, model, dtype, device, threads, seed):
        self.fill()
        os.environ["OMP_NUM_THREADS"] = str(threads)
        import ctranslate2
        from checkpoint import Checkpoint, converted
        from ctranslate2_model import write_model

        kind, place = COMPUTE_TYPES[dtype], device.split(":")
        checkpoint = Checkpoint(model)
        folder = converted(checkpoint, "ctranslate2", (dtype, self.version), lambda draft: write_model(checkpoint, kind, draft))
        self.generator = self.cell = None
        with Log() as log:
            self.generator = ctranslate2.Generator(folder, device=place[0], device_index=int(place[1]) if len(place) > 1 else 0, compute_type=kind,
                                                   inter_threads=1, intra_threads=threads)
        if self.generator.compute_type != kind:
            raise NotImplementedError(f"CTranslate2 replaced {kind} by {self.generator.compute_type} on this {place[0]}")
        self.dtype, self.config = dtype, checkpoint.config
        self.positions, self.vocabulary = self.config.positions, self.config.vocabulary
        logged = {key: match[1] for key, pattern in LOGGED.items() if (match := re.search(pattern, log.text))}
        return {"compute_type": kind, "threads": threads, "weights": dtype, "activations": dtype, "kv": dtype, "greedy": "the engine's own, inside the step", **logged,
                "prompts": "strings", "decode_step": "between callbacks of the last row", "forced_logits": "one forward_batch over the whole text"}

    def prepare(self, cell):
        from checkpoint import kv_bytes
        from ctranslate2_model import word

        self.fill()
        self.cell = cell
        self.words = [[word(token) for token in row] for row in cell.prompts]
        size = ELEMENT_BYTES[self.dtype]
        return kv_bytes(self.config, self.config.kv_heads, cell.batch, cell.length + cell.room, size) + cell.batch * self.vocabulary * size

    def fill(self):
        """Ends the call that the last steps ran in. The engine holds its keys inside one call, so that the next run() begins with an untimed prefill."""
        if self.decoding:
            self.decoding.end()
            self.decoding = None

    def generate(self, tokens, **options):
        results = self.generator.generate_batch(self.words, max_length=tokens, beam_size=1, sampling_topk=1, include_prompt_in_result=False, end_token=[], **options)
        if any(len(result.sequences_ids[0]) != tokens for result in results) and "callback" not in options:
            raise RuntimeError(f"CTranslate2 ended a row before {tokens} tokens, although no token ends it")
        return results

    def run(self, limit, sink):
        if self.cell.phase == "decode":
            return self.run_decode(limit, sink)
        tokens = 1 if self.cell.phase == "prefill" else self.cell.max_tokens
        begin = end = clock_ns()
        for _ in range(limit):
            start = clock_ns()
            self.generate(tokens)
            end = clock_ns()
            if sink(end - start):
                break
        return end - begin

    def run_decode(self, limit, sink):
        if not self.decoding:
            self.decoding = Decoding(self)
        return self.decoding.run(limit, sink)

    def outputs(self, steps, forced, keep_logits, first=None):
        self.fill()
        skipped = int(self.cell.phase == "decode")  # its first step comes after the choice that the prompt gave
        if first or (forced is not None and steps > 1):
            return self.forced_outputs(steps, forced or [], skipped, keep_logits, first)
        results = self.generate(steps + skipped, return_logits_vocab=keep_logits)
        tokens = [[result.sequences_ids[0][step] for result in results] for step in range(skipped, steps + skipped)]
        if not keep_logits:
            return tokens, None
        return tokens, [stack(result.logits[0][step] for result in results) for step in range(skipped, steps + skipped)]

    def forced_outputs(self, steps, forced, skipped, keep_logits, first):
        """Teacher forcing: the engine's loop cannot be fed, so that the texts go through the model at once."""
        texts = [list(row) for row in self.cell.prompts]
        chosen = [first or [result.sequences_ids[0][0] for result in self.generate(1)]] if skipped else []
        for column in [*chosen, *forced[: steps - 1]]:
            for text, token in zip(texts, column, strict=True):
                text.append(token)
        logits = as_float32(self.generator.forward_batch(texts))[:, -steps:]
        rows = [logits[:, step].copy() for step in range(steps)]
        return [row.argmax(-1).tolist() for row in rows], rows if keep_logits else None


class Decoding:
    """One call of the engine in a thread of its own, which its callback holds between turns."""

    def __init__(self, engine):
        # A limit that is not reached until run() sets one.
        self.last_row, self.limit, self.sink, self.ended, self.problem = engine.cell.batch - 1, -1, None, False, None
        self.begin = self.start = self.last = 0  # ns: of the turn, of the step, and the last step's end
        self.asked, self.done = threading.Semaphore(0), threading.Semaphore(0)
        self.thread = threading.Thread(target=self.work, args=(engine,), daemon=True)
        self.thread.start()

    def work(self, engine):
        try:
            engine.generate(engine.cell.room + 1, callback=self.callback)
        except Exception as problem:  # it belongs to whoever asked for the steps
            self.problem = problem
        self.ended = True
        self.done.release()

    def callback(self, result):
        if result.batch_id != self.last_row or self.ended:
            return self.ended
        self.last = clock_ns()
        if result.step > 0:  # the first is the choice after the prompt
            self.limit -= 1
            if self.sink(self.last - self.start):
                self.limit = 0
        if self.limit == 0:
            self.done.release()
        if self.limit == 0 or result.step == 0:
            self.asked.acquire()
            self.begin = clock_ns()
        self.start = clock_ns()
        return self.ended

    def run(self, limit, sink):
        self.limit, self.sink = limit, sink
        self.asked.release()
        self.done.acquire()
        if self.problem:
            raise self.problem
        return self.last - self.begin

    def end(self):
        self.ended = True
        self.asked.release()
        self.thread.join()


def as_float32(view):
    import ctranslate2
    import numpy

    view = view.to_device(ctranslate2.Device.cpu) if view.device != "cpu" else view
    return numpy.array(view.to(ctranslate2.DataType.float32))


def stack(views):
    import numpy

    return numpy.stack([as_float32(view) for view in views])


class Log:
    """Collects what a library writes to stderr meanwhile, and passes it on afterwards."""

    text = ""

    def __enter__(self):
        self.file, self.stderr = tempfile.TemporaryFile(), os.dup(2)
        os.dup2(self.file.fileno(), 2)
        return self

    def __exit__(self, *_):
        os.dup2(self.stderr, 2)
        os.close(self.stderr)
        self.file.seek(0)
        self.text = self.file.read().decode(errors="replace")
        self.file.close()
        sys.stderr.write(self.text)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--isa", choices=["GENERIC", "AVX", "AVX2", "AVX512"], help="the instruction set; the library's own choice where nothing is said, which is never AVX512")
    parser.add_argument("--mkl", choices=["0", "1"], help="whether Intel MKL multiplies matrices; the library's own choice where nothing is said: on Intel processors only")
    arguments = parser.parse_args()
    engine = CTranslate2Engine(arguments.isa, arguments.mkl)
    code = serve(engine)
    engine.fill()  # a call that is still held would keep the process
    return code


if __name__ == "__main__":
    sys.exit(main())
