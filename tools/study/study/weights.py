"""Weights in 8 and 4 bits: what they cost in words, what they save in time, beside llama.cpp on the very same file."""

import pathlib
import subprocess

from . import page
from .questions import Claim, Question, Study, DECODE, PREFILL

ROOT = pathlib.Path(__file__).resolve().parents[3]
REAL, LARGE, SMALL = "smollm2", "synthetic:santacoder", "synthetic:tiny-starcoder"
STORED = "native,+mapped-embedding,+stored-linear,-packed-linear"
LLAMA = "llama.cpp"
ROUNDED = tuple(f"native,+{name},-packed-linear" for name in ("aten-int4-linear", "aten-int8-linear", "int4-least-linear", "int4-linear", "int8-linear", "int8-row-linear"))
LOSSES = ("decode-loss", "prefill-loss")
# For the reference of each such arm a copy of the model is made whose weights are rounded: those of a large one fit for few arms.
OURS = ROUNDED[3:]
BY_ROWS = "native,+int8-row-linear,-packed-linear"
INT4 = "native,+int4-linear,-packed-linear"
# Types of whole files that llama.cpp's quantizer makes of the file that is downloaded, whose own type is Q4_1.
MADE = ("Q8_0", "Q4_0", "Q5_0", "Q4_K_M", "Q6_K")


def file_of(kind):
    return f"build/smollm2.{kind}.gguf"


def file_sweep(kind, dtype, phases="prefill,decode", **more):
    """Makes the file where it is not there, and a sweep of it: its own blocks by us and by llama.cpp, beside the dequantized model."""
    def sweep(answers):
        if kind in MADE and not (ROOT / file_of(kind)).exists():
            source = pathlib.Path.home() / ".cache" / "decodelab" / "smollm2" / "SmolLM2-135M-Instruct.Q4_1.gguf"
            subprocess.run([str(ROOT / "tools" / "peers" / "quantize"), str(source), kind, str(ROOT / file_of(kind))], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        workers = [f"{LLAMA}=tools/peers/run llama_cpp --weights file", *(["fp32=decodelab worker --arm native --dtype fp32"] if dtype == "bf16" else [])]
        return {"--arm": [STORED, "native"], "--worker": workers, "--roofline": True, "--quality": True, "--dtype": dtype, "--phase": phases, "--batch": "1,8", "--length": "128",
                **{f"--{key}": value for key, value in more.items()}}
    return sweep


def of_file(kind, dtype="bf16"):
    faster = tuple(Claim(f"llama.cpp takes longer than the file's blocks here in {phase}", LLAMA, phase, "slower") for phase in (DECODE, PREFILL))
    name = f"{kind.lower().replace('_', '')}-{dtype}"
    return Question(name, f"SmolLM2 in {kind}, activations in {dtype}", file_sweep(kind, dtype), faster, "losses", REAL if kind == "Q4_1" else file_of(kind), figures=LOSSES)


def rounded(arms, launches, quality):
    return {"--arm": ["native", *arms], "--roofline": True, **({"--quality": True} if quality else {}), "--dtype": "bf16", "--phase": "prefill,decode", "--batch": "1,8", "--length": "128", "--launches": launches}


def summary(answers):
    """The first lines: for each file our time beside llama.cpp's, and both losses."""
    lines = []
    for question in WEIGHTS.questions:
        answer = answers.get(question)
        if answer is None or question.shows != "losses":
            continue
        for name, arms in page.by_cell(answer.rows).items():
            theirs, ours = arms.get(LLAMA), arms.get(STORED)
            if theirs and ours and theirs["time_ratio"] and ours["bound_share"]:
                lines.append(f"**{question.title}**, {name}: llama.cpp takes {page.ratio(theirs)} of our time, which is {100 * ours['bound_share']:.0f} % of the bound of the bytes that are held.")
    return lines


WEIGHTS = Study(
    "Weights in 8 and 4 bits",
    "tools/findings --study weights",
    (
        of_file("Q4_1"),
        of_file("Q8_0"),
        of_file("Q4_0"),
        of_file("Q8_0", "fp32"),
        of_file("Q4_1", "fp32"),
        of_file("Q4_K_M"),
        Question("rounded", "SmolLM2, whose weights are rounded as they are loaded", rounded(ROUNDED, 5, True), tuple(Claim(f"{arm} is faster than bf16 at one row", arm, DECODE, "faster", most_batch=1) for arm in ROUNDED), "losses", REAL, figures=LOSSES),
        Question("santacoder", "SantaCoder's shape, whose weights are rounded as they are loaded", rounded(OURS, 3, False), tuple(Claim(f"{arm} is faster than bf16 at one row", arm, DECODE, "faster", most_batch=1) for arm in OURS) + (Claim("8 bits with one scale a row make a prefill faster", BY_ROWS, PREFILL, "faster"),), "losses", LARGE),
        Question("ablation-bf16", "The 164 M shape: which variants does bf16 stand on?", {"--arm": "native", "--ablate": "leave-one-out", "--dtype": "bf16", "--phase": "decode", "--batch": "1,8", "--length": "128"}, shows="ranked", model=SMALL),
        Question("ablation-int4", "The 164 M shape: and which do 4 bits stand on?", {"--arm": INT4, "--ablate": "leave-one-out", "--dtype": "bf16", "--phase": "decode", "--batch": "1,8", "--length": "128"}, shows="ranked", model=SMALL),
    ),
    claimed_by="asked",
    head="Losses are those of predictions of a text, beside the reference in fp32 on the dequantized weights: the mean KL divergence in nats and the perplexity over the reference's, each with 1.96 standard "
         "errors over tokens. SantaCoder's shape has random weights, and its losses say nothing of a trained model. The bound is the time that the weights' bytes, as they are held, and the keys take to read; for bf16 and fp32 it is also that of multiplying, of which none was "
         "measured in 8 bits. It may be passed where a part of the weights stays in the processor's last-level cache from step to step.\n",
    summary=summary,
)
