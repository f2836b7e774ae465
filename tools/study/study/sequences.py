"""Sequences: what several samples of a prompt cost beside Hugging Face's generate(), with keys kept and without; and batches that serve requests."""

from .questions import Claim, Question, Study, sweep

GENERATE, BATCHING = "generate", "batching"
HF = "tools/peers/run transformers --loop generate"
# The measurement of the source: 10 samples of 100 new tokens after a short prompt, drawn from the 50 likeliest.
SAMPLES = {"samples": 10, "max-tokens": 100, "sample": True, "top-k": 50}
ON = f"hf-generate={HF}"
OFF = f"hf-generate-no-cache={HF} --cache none"


def samples(arms, workers, **more):
    return sweep(arms, GENERATE, "1", "16", **{**SAMPLES, "worker": workers, **more})


SEQUENCES = Study(
    "Sequences on this machine",
    "tools/findings --study sequences",
    (
        Question("samples-gpt2", "10 samples of 100 tokens, gpt2's shape: what do keys that are kept save, and who is fastest?",
                 samples(["native", "causal", "causal,+copied-fork", "vector,+host-choice", "causal,+no-cache"], [ON, OFF], launches=3),
                 (Claim("generate() takes longer with keys kept", "hf-generate", GENERATE, "slower"),
                  Claim("generate() takes longer without keys", "hf-generate-no-cache", GENERATE, "slower"),
                  Claim("without keys our own takes longer too", "causal,+no-cache", GENERATE, "slower")), model="synthetic:gpt2"),
        Question("samples-redpajama", "The same on RedPajama's shape (2.8 B parameters), bf16, keys kept",
                 samples(["native", "vector"], [ON], dtype="bf16", launches=2),
                 (Claim("generate() takes longer with keys kept", "hf-generate", GENERATE, "slower"),), model="synthetic:redpajama-3b"),
        Question("samples-redpajama-no-cache", "The same without keys, 10 new tokens, one launch: no verdict",
                 samples(["native", "vector,+no-cache"], [OFF], dtype="bf16", launches=1, **{"max-tokens": 10}), (), model="synthetic:redpajama-3b"),
        Question("batching", "Which way of changing a batch while it decodes is fastest?",
                 sweep(["native", "native,-concatenate-filter", "native,+concatenate-filter:steps=8", "native,-concatenate-filter,+padded-batch",
                        "native,-concatenate-filter,+slot-batch"], BATCHING, "4,8,16", "64", **{"max-tokens": 32}),
                 (Claim("a batch that does not change takes longer", "native,-concatenate-filter", BATCHING, "slower"),), model="smollm2"),
    ),
    claimed_by="asked",
    head="Weights are random but for smollm2. Samples are drawn, so that tokens differ between engines; what is verified is the logits of the same engine fed our tokens.\n",
)
