"""The most probable tokens: what telling them costs in each step, by the way they are found, their number, the batch and the type."""

from .questions import Claim, DECODE, PREFILL, Question, Study, sweep

SLOTS = ("row-details", "rowwise-topk", "batched-topk", "ties-kept-topk", "host-sort", "scan-details")


def arm(way, n, asked="top-tokens"):
    """native with this way of finding them, as its label is written; the reference is what is left without a variant."""
    return f"native{'' if way == SLOTS[0] else f',+{way}'},-scan-details@{asked}={n}"


# ties-kept-topk comes first: what others are compared with is the final algorithm of the source.
WAYS = [arm("ties-kept-topk", 20), arm("batched-topk", 20), arm("rowwise-topk", 20), arm("host-sort", 20), arm("row-details", 20), "native@top-tokens=20"]
COUNTS = ["native", *(f"native@top-tokens={n}" for n in (5, 20, 64))]
SOURCE = "text-generation-inference #604"

TOP_TOKENS = Study(
    "The most probable tokens",
    "tools/findings --study top-tokens",
    (
        Question("ways", "20 tokens of 64 rows on pythia-160m's shape: what does each way cost a step?",
                 sweep(["native", *WAYS], DECODE, "64", "16", launches=3),
                 tuple(Claim(f"{way} costs time", arm(way, 20), DECODE, "slower") for way in SLOTS[:-1]), model="synthetic:pythia-160m"),
        Question("counts", "64 rows on pythia-160m's shape: what do 5, 20 and 64 tokens cost?",
                 sweep(COUNTS, DECODE, "64", "16", launches=3),
                 tuple(Claim(f"{n} tokens cost time", f"native@top-tokens={n}", DECODE, "slower") for n in (5, 20, 64)), model="synthetic:pythia-160m"),
        Question("counts-source", "The same by every algorithm: the source's final one, vLLM's, llama.cpp's and ours",
                 sweep([*COUNTS, *(arm(way, n) for way in ("ties-kept-topk", "batched-topk", "host-sort") for n in (5, 20, 64))], DECODE, "64", "16", launches=3),
                 tuple(Claim(f"{n} tokens cost time by the source's", arm("ties-kept-topk", n), DECODE, "slower") for n in (5, 20, 64)), model="synthetic:pythia-160m",
                 figures=("decode-top-tokens",)),
        Question("ladder", "flan-t5-small's shape, batch 1 to 32: what do 5 and 50 tokens cost by the first algorithm and by ours?",
                 sweep(["native", *(arm("rowwise-topk", n) for n in (5, 50)), *(f"native@top-tokens={n}" for n in (5, 50))], DECODE, "1,8,32", "16", launches=3),
                 (Claim("50 tokens cost time by the first algorithm", arm("rowwise-topk", 50), DECODE, "slower"),
                  Claim("50 tokens cost time", "native@top-tokens=50", DECODE, "slower")), model="synthetic:flan-t5-small"),
        Question("prompts", "What do details of every token of a prompt cost?",
                 sweep(["native", "native,-chunked-lm-head", "native@prompt-top-tokens=5", "native,-chunked-lm-head@prompt-top-tokens=5"], PREFILL, "1", "128,512,2048",
                       launches=3),
                 (Claim("the head on all positions costs time", "native,-chunked-lm-head", PREFILL, "slower"),
                  Claim("details of prompts cost time", "native@prompt-top-tokens=5", PREFILL, "slower")), "memory", model="smollm2"),
        *(Question(f"ties-{dtype}", f"How often are tokens tied with the last of those that are told, on real text in {dtype}?",
                   {**sweep([f"native@top-tokens={n}" for n in (5, 20, 64)], "generate", "8", "16", dtype=dtype, launches=1), "--prompts": "tests/data/prompts.jsonl"},
                   (), "ties", model="smollm2") for dtype in ("fp32", "bf16")),
        Question("typical", "What does it cost to draw with typical-p 0.5, by a sort of each row and by a look at it?",
                 sweep(["native", "native@typical-p=0.5", "native,+scan-typical,-vectorized-choice@typical-p=0.5", "native,+philox-rng,+scan-typical,-vectorized-choice@typical-p=0.5"],
                       DECODE, "64", "16", launches=3),
                 (Claim("typical-p costs time by a sort", "native@typical-p=0.5", DECODE, "slower"),
                  Claim("typical-p costs time by a look", "native,+scan-typical,-vectorized-choice@typical-p=0.5", DECODE, "slower")),
                 model="synthetic:pythia-160m"),
        Question("text", "What do the texts of 20 tokens of 64 rows cost?",
                 sweep(["native@top-tokens=20", *(f"native,{way}@top-tokens=20:text" for way in ("-table-text", "+row-batch-text,-table-text", "+batch-text,-table-text")),
                        "native@top-tokens=20:text"], DECODE, "64", "16", launches=3),
                 (Claim("a call of the tokenizer for each token costs time", "native,-table-text@top-tokens=20:text", DECODE, "slower"),
                  Claim("texts from a table cost time", "native@top-tokens=20:text", DECODE, "slower")), model="smollm2"),
    ),
    claimed_by=SOURCE,
    head="Weights are random but for smollm2. An arm with `@top-tokens=N` gives the log-probability, the rank and the N most probable tokens of each token. Percentiles are "
         "those of steps, in order; the source's tables have a p99 below its p90, which percentiles cannot be: they are of other steps, or of another number of them.\n",
)
