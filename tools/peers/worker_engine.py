"""What an engine implements to become a worker: Engine, or StepEngine where its prefill and each decode step can be called one by one."""

import json
import os
import time
from dataclasses import dataclass

clock_ns = time.monotonic_ns  # the clock of std::chrono::steady_clock, so that both sides read the same
# What a worker keeps of filled cells, beside the one at hand.
MOST_KEPT_BYTES = 1 << 30
PHASE_SCOPES = (("prefill", "step"), ("decode", "step"), ("generate", "generate"), ("continue", "continue"), ("prefill", "serving"), ("decode", "serving"), ("generate", "serving"))
# Phases whose steps begin behind the prompts, which an untimed fill brought.
FILLED_PHASES = ("decode", "continue")
# Words behind a scope: tokens are drawn or chosen under a penalty, and each prompt has several rows.
WARPED, SAMPLES = "-warped", "-samples-"


@dataclass(frozen=True)
class Cell:
    """One point of a sweep with its prompts: `batch` rows of `length` token ids each, `samples` rows of each prompt beside each other."""

    phase: str
    batch: int
    length: int
    prompts: list
    max_tokens: int  # tokens of one completion, in phase generate, or of one continuation
    room: int  # decode steps that may follow one fill, or one prefill
    samples: int = 1
    prefix: int | None = None  # tokens of each prompt whose keys are held before each prefill, untimed; None: nothing is held
    sampling: dict | None = None  # sample, temperature, top_k, top_p, typical_p, repetition_penalty, as in generate(); None is greedy


class Engine:
    """What the serve loop needs of an engine. Methods raise MemoryError for `oom`, NotImplementedError for `unsupported`, anything else for `failed`."""

    name = ""
    version = ""
    settings = {}
    logit_bound = 0  # the most that a logit may be off by, of the largest, where products are rounded on purpose; known after load()
    phases = ("prefill", "decode", "generate")
    dtypes = ("fp32",)
    devices = ("cpu",)
    sampling = ()  # which parameters of Cell.sampling it follows
    prefixes = False  # whether it follows Cell.prefix
    turns = False  # whether run() goes on where it left off, so that a visit can be timed in turns
    positions = 0  # longest sequence, known after load
    vocabulary = 0  # width of a row of logits, known after load
    filling_ns = 0  # spent on filling cells until now

    def load(self, model, dtype, device, threads, seed):
        """Loads the Hugging Face directory `model` and returns the settings that were decided by it; called again, it replaces what was loaded."""
        raise NotImplementedError

    def prepare(self, cell):
        """Takes `cell` for what follows, and returns the bytes that it needs beyond the weights, 0 where unknown."""
        raise NotImplementedError

    def fill(self):
        """Begins afresh, untimed: a cell that begins behind its prompts then holds their keys and the greedy choice after them."""
        raise NotImplementedError

    def run(self, limit, sink):
        """Runs up to `limit` steps, calls sink(ns) after each until that returns True, and returns the ns from the first start to the last end. Called once after fill(), or, with `turns`, again and again."""
        raise NotImplementedError

    def outputs(self, steps, forced, keep_logits, first=None):
        """Rows of ids of `steps` steps after a fresh fill, whose first decode step is fed `first` where that is given, and a float32 buffer [B, V] of each step where `keep_logits` says so, else None."""
        raise NotImplementedError

    def forget(self):
        """Drops what was kept of cells: another model comes."""

    def peak_bytes(self):
        """Most bytes held beyond the weights, None where the engine cannot tell."""
        return None

    def capacity(self, cell):
        """Steps that fit after one fill; a prefill or a completion begins afresh each time and has no limit, and a continuation needs a fill of its own."""
        return {"decode": cell.room, "continue": 1}.get(cell.phase)


class StepEngine(Engine):
    """An engine whose prefill and decode steps are calls of their own; token ids are lists with one id a row."""

    phases = (*Engine.phases, "continue")
    turns = True
    cell = None
    tokens = None
    # What filled cells held, by the cell: (bytes, state, tokens), the last used at the end.
    kept = None

    def prefill(self):
        """Runs the prompts through a new session and returns the greedy choice of each row."""
        raise NotImplementedError

    def decode(self, tokens):
        """Feeds one token a row to the session and returns the greedy choice of each row."""
        raise NotImplementedError

    def logits(self):
        """The logits that the last call chose from, a contiguous float32 buffer [B, V] that the next call may not overwrite."""
        raise NotImplementedError

    def save(self):
        """What restore() brings the session back to, and its bytes; None where the engine cannot."""
        return None

    def restore(self, state):
        """Brings the session to where save() was called; `state` may be restored again."""
        raise NotImplementedError

    def state_key(self):
        """Names all that a saved state depends on beside the prompts, where save() gives a list of bytes that another process may restore; else None."""
        return None

    def prefill_or_load(self):
        """Brings the session to the end of the prompts: by a state that an earlier process left, else by a prefill. Returns (state, bytes), None where it cannot be saved."""
        name = self.state_key()
        if name is None:
            self.tokens = self.prefill()
            return self.save()
        import kept_state

        folder, key = os.path.join(kept_state.cache_folder(), "cells"), json.dumps([name, self.cell.prompts])
        found = kept_state.load(folder, key)
        if found:
            try:
                self.restore(found[1])
                self.tokens = list(found[0])
                return found[1], sum(map(len, found[1]))
            except RuntimeError:  # the engine does not take it: it is prefilled
                pass
        self.tokens = self.prefill()
        saved = self.save()
        if saved is not None:
            kept_state.keep(folder, key, list(self.tokens), saved[0])
        return saved

    def fill(self):
        """The first fill of a cell is a prefill, which is kept; later ones restore it."""
        if self.cell.phase not in FILLED_PHASES:
            return
        begin = clock_ns()
        kept = self.kept = {} if self.kept is None else self.kept
        key = self.cell.batch, self.cell.length, hash(tuple(map(tuple, self.cell.prompts)))
        if key in kept:
            kept[key] = kept.pop(key)
            self.restore(kept[key][1])
            self.tokens = list(kept[key][2])
        else:
            saved = self.prefill_or_load()
            if saved is not None:
                kept[key] = (saved[1], saved[0], list(self.tokens))
            while kept and sum(entry[0] for entry in kept.values()) > MOST_KEPT_BYTES:
                del kept[next(iter(kept))]
        self.filling_ns += clock_ns() - begin

    def forget(self):
        self.kept = None

    def go_on(self, count):
        """Says `count` tokens more of each row; who guesses several at a time does it in another way."""
        for _ in range(count):
            self.tokens = self.decode(self.tokens)

    def step(self):
        if self.cell.phase == "decode":
            self.tokens = self.decode(self.tokens)
        elif self.cell.phase == "continue":
            self.go_on(self.cell.max_tokens)
        else:
            self.tokens = self.prefill()
            if self.cell.phase == "generate":
                self.go_on(self.cell.max_tokens - 1)

    def run(self, limit, sink):
        begin = end = clock_ns()
        parts = self.cell.max_tokens if self.cell.phase == "continue" else 1  # the sample of a continuation is the time of a token
        for _ in range(limit):
            start = clock_ns()
            self.step()
            end = clock_ns()
            if sink((end - start) // parts):
                break
        return end - begin

    def outputs(self, steps, forced, keep_logits, first=None):
        self.fill()
        filled = self.cell.phase in FILLED_PHASES
        if first and filled:
            self.tokens = first
        tokens, logits = [], []
        for step in range(steps):
            if step == 0 and not filled:
                self.tokens = self.prefill()
            else:
                self.tokens = self.decode(forced[step - 1] if forced and step else self.tokens)
            tokens.append(self.tokens)
            if keep_logits:
                logits.append(self.logits())
        return tokens, logits if keep_logits else None
