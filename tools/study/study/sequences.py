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


STATIC = "native,-concatenate-filter"
BATCH, LENGTH, TOKENS = 8, 32, 24
REQUESTS = 4 * BATCH  # of one step, as the phase makes them
SHARES = (0.6, 0.9, 1.2)
BATCHES = Question("batching", "Which way of changing a batch while it decodes is fastest?",
                   sweep(["native", STATIC, "native,+concatenate-filter:steps=8", f"{STATIC},+padded-batch", f"{STATIC},+slot-batch"], BATCHING, str(BATCH), str(LENGTH), launches=3,
                         **{"max-tokens": TOKENS}),
                   (Claim("a batch that does not change takes longer", STATIC, BATCHING, "slower"),), model="smollm2")


def under_load(answers):
    """Rates of requests from what the static batch answered when all came at once; 1, 2 and 4 a second where that was not measured."""
    answer = answers.get(BATCHES)
    static = [row for row in answer.rows if row["arm"] == STATIC and row["scope"] == "served" and row["status"] == "ok"] if answer else []
    rates = [f"{share * REQUESTS * 1e9 / static[0]['median_ns']:.2g}" for share in SHARES] if static else ["1", "2", "4"]
    return sweep(["native", STATIC, f"{STATIC},+slot-batch"], BATCHING, str(BATCH), str(LENGTH), launches=2, **{"max-tokens": TOKENS, "request-rate": ",".join(rates)})


SEQUENCES = Study(
    "Sequences on this machine",
    "tools/findings --study sequences",
    (
        Question("samples-gpt2", "10 samples of 100 tokens, gpt2's shape, keys kept: who is fastest?",
                 samples(["native", "causal", "causal,+copied-fork", "vector,-vectorized-choice,+host-choice"], [ON], launches=3),
                 (Claim("generate() takes longer", "hf-generate", GENERATE, "slower"),
                  Claim("logits that cross to the host cost time", "vector,-vectorized-choice,+host-choice", GENERATE, "slower")), model="synthetic:gpt2"),
        Question("samples-gpt2-no-cache", "The same without keys, one launch: what do keys that are kept save?",
                 samples(["native", "causal,+no-cache"], [OFF], launches=1), (), model="synthetic:gpt2"),
        Question("samples-redpajama", "10 samples of 100 tokens on RedPajama's shape (2.8 B parameters), bf16, keys kept",
                 samples(["native", "vector"], [ON], dtype="bf16", launches=2),
                 (Claim("generate() takes longer with keys kept", "hf-generate", GENERATE, "slower"),), model="synthetic:redpajama-3b"),
        Question("samples-redpajama-no-cache", "The same without keys, 10 new tokens, one launch: no verdict",
                 samples(["native", "vector,+no-cache"], [OFF], dtype="bf16", launches=1, **{"max-tokens": 10}), (), model="synthetic:redpajama-3b"),
        BATCHES,
        Question("load", "The same under load: requests at 0.6, 0.9 and 1.2 times the rate that the static batch answers", under_load,
                 (Claim("a batch that does not change takes longer", STATIC, BATCHING, "slower"),), model="smollm2"),
    ),
    claimed_by="asked",
    head="Weights are random but for smollm2. Samples are drawn, so that tokens differ between engines; what is verified is the logits of the same engine fed our tokens.\n",
)
