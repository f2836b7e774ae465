"""The study's findings as sweeps and statements that a sweep can bear out or not."""

import dataclasses
import pathlib
import re
import sys

DECODE, PREFILL = "decode", "prefill"


def multiplies_bf16():
    """Whether oneDNN has products in bf16 here, which begin at AVX-512; without them libtorch's, which some arms stand on, take tens of times as long."""
    file = pathlib.Path("/proc/cpuinfo")
    return bool(re.search(r"\b(avx512bw|bf16)\b", file.read_text() if file.exists() else ""))


SHORT = "bf16" if multiplies_bf16() else "fp32"


@dataclasses.dataclass(frozen=True)
class Claim:
    """`arm` against the sweep's baseline, or against the arm `base`, in the cells of one phase: `faster`, `slower`, or `same` within 2 %."""

    text: str
    arm: str
    phase: str
    says: str
    least_length: int = 0
    least_batch: int = 0
    most_batch: int = sys.maxsize
    base: str = ""


@dataclasses.dataclass(frozen=True)
class Question:
    name: str
    title: str
    sweep: dict  # flag: value or list of values; or what makes it of the answers to earlier questions
    claims: tuple = ()
    shows: str = "times"  # how the rows are laid out: a name of page.LAYOUTS
    model: str = ""  # this one, unless another was asked for by -m
    figures: tuple = ()  # of the run's report, kept beside the rows
    draws: tuple = ()  # figures of the page itself: names of drawing.DRAWINGS
    command: str = "sweep"  # or "generate", whose rows are what became of guesses, or "sums" between ranks


@dataclasses.dataclass(frozen=True)
class Study:
    """Questions that make one page."""

    title: str
    command: str
    questions: tuple
    claimed_by: str = ""
    head: str = ""
    summary: object = None  # a function of the answers: the lines that the page says first


def sweep(arms, phase, batch, length, **more):
    return {"--arm": list(arms), "--phase": phase, "--batch": batch, "--length": length, **{f"--{key}": value for key, value in more.items()}}


# The keys that a decode step finds: random for every model, not of a prefill, which takes many times as long as the steps. Only a model in 16 bits needs
# keys that are its own: beside random ones rounding moves its logits by more than the tolerance.
HELD = {"fill": "random"}


# Nothing here is a result: what is claimed is the study's (A100, 2023), what comes out is this machine's.
QUESTIONS = (
    Question("flash", "Is flash attention good for prefill and bad for decode?",
             sweep(["causal", "causal,+flash-prefill", "causal,+flash-decode"], "prefill,decode", "1", "128,512"),
             (Claim("flash is good for prefill", "causal,+flash-prefill", PREFILL, "faster"),
              Claim("flash is bad for decode", "causal,+flash-decode", DECODE, "slower"))),
    Question("builds", "How far apart are the builds?",
             sweep(["bigcode", "causal", "vector", "flash", "bigcode2", "bigcode3", "native"], "prefill,decode", "1,4", "128"),
             (Claim("causal prefills much slower than bigcode", "causal", PREFILL, "slower"),
              Claim("vector prefills much slower than bigcode", "vector", PREFILL, "slower"),
              Claim("flash prefills slower than bigcode", "flash", PREFILL, "slower"),
              Claim("bigcode3 is faster than bigcode in decode at batch 1", "bigcode3", DECODE, "faster", most_batch=1))),
    Question("rows", "Does choosing for all rows at once remove the cost of a row?",
             sweep(["causal", "vector", "vector,+last-token-lm-head"], "decode", "1,2,4,8,16,32", "32", **HELD),
             (Claim("vectorized pre- and post-processing is faster at large batches", "vector", DECODE, "faster", least_batch=8),), "slope"),
    Question("padding", "Is the curve a saw-tooth without key padding, and is 8 the least that helps?",
             sweep(["bigcode,-padded-keys", "bigcode", "bigcode,+padded-keys:multiple=16", "bigcode,+padded-keys:multiple=32", "bigcode,+padded-keys:multiple=64"],
                   "decode", "8", "129-255+7", dtype=SHORT, **{"at-length": True}),
             (Claim("keys padded to 8 are faster", "bigcode", DECODE, "faster"),), "residues"),
    Question("details", "What do details cost?",
             sweep(["bigcode", "bigcode,-details-on-request"], "prefill,decode", "1,4", "128"),
             (Claim("details that nobody asked for cost time in prefill", "bigcode,-details-on-request", PREFILL, "slower"),
              Claim("details that nobody asked for cost time in decode", "bigcode,-details-on-request", DECODE, "slower"))),
    Question("head", "What does the head on the last token save?",
             sweep(["bigcode", "bigcode,-last-token-lm-head"], "prefill", "1,4", "128,256"),
             (Claim("the head on all positions takes longer", "bigcode,-last-token-lm-head", PREFILL, "slower"),), "memory"),
    Question("fused-norm", "Does a fused layer norm pay at large batch?",
             sweep(["bigcode", "bigcode,+fused-layer-norm"], "decode", "1,8,32", "128", **HELD),
             (Claim("the fused norm is slower at large batch", "bigcode,+fused-layer-norm", DECODE, "slower", least_batch=32),)),
    Question("degrade", "Do flash and causal fall behind at large batches and long lengths?",
             sweep(["bigcode", "causal", "flash"], "decode", "1,8", "128,1024", **HELD),
             (Claim("causal is slower than bigcode at large batches and long lengths", "causal", DECODE, "slower", least_length=1024, least_batch=8),
              Claim("flash is slower than bigcode at large batches and long lengths", "flash", DECODE, "slower", least_length=1024, least_batch=8))),
    Question("growth", "Why does causal go wrong at long lengths?",
             sweep(["causal", "causal,+kv-grow", "causal,+kv-preallocated", "causal,+kv-static"], "decode", "8", "128,512,1024", **HELD),
             (Claim("a cache that is concatenated at each step is slower than one that is there", "causal,+kv-preallocated", DECODE, "faster", least_length=1024),), "memory"),
    Question("bound", "Where does decode leave the bound of reading the weights?",
             {**sweep(["bigcode", "native"], "decode", "1,2,4,8,16,32,64,128", "128", **HELD), "--roofline": True}, (), "bound"),
    Question("memory", "Who runs out of memory first?",
             sweep(["causal", "flash", "bigcode", "native"], "prefill", "4", "128,512", launches=1), (), "memory"),  # bytes are exact: one launch
    Question("switches", "What is each switch of native worth?",
             {"--arm": "native", "--ablate": "leave-one-out", "--dtype": SHORT, "--phase": "prefill,decode", "--batch": "1", "--length": "128"}, (), "ranked", "synthetic:santacoder"),
)
STUDY = Study("The study's findings on this machine", "tools/findings", QUESTIONS, claimed_by="the study (A100, 2023)")
