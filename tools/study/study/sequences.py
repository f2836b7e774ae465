"""Sequences: what several samples of a prompt cost beside Hugging Face's generate(), with keys kept and without; and batches that serve requests."""

from .questions import Claim, DECODE, PREFILL, Question, Study, sweep

GENERATE, BATCHING = "generate", "batching"
HF = "tools/peers/run transformers --loop generate"
# The measurement of the source: 10 samples of 100 new tokens after a short prompt, drawn from the 50 likeliest.
SAMPLES = {"samples": 10, "max-tokens": 100, "sample": True, "top-k": 50}
ON = f"hf-generate={HF}"
OFF = f"hf-generate-no-cache={HF} --cache none"


def samples(arms, workers, **more):
    return sweep(arms, GENERATE, "1", "16", **{**SAMPLES, "worker": workers, **more})


STATIC = "native,-concatenate-filter"
PAGED = "native,+kv-paged,+shared-fork,-copied-fork,-kv-preallocated"
BATCH, LENGTH, TOKENS = 4, 32, 24
REQUESTS = 4 * BATCH  # of one step, as the phase makes them
SHARES = (0.6, 0.9, 1.2)
BATCHES = Question("batching", "Which way of changing a batch while it decodes is fastest?",
                   sweep(["native", STATIC, "native,+concatenate-filter:steps=8", f"{STATIC},+padded-batch", f"{STATIC},+slot-batch", PAGED], BATCHING, str(BATCH), str(LENGTH), launches=3,
                         **{"max-tokens": TOKENS}),
                   (Claim("a batch that does not change takes longer", STATIC, BATCHING, "slower"),), model="smollm2")


def under_load(answers):
    """Rates of requests from what the static batch answered when all came at once; 1, 2 and 4 a second where that was not measured."""
    answer = answers.get(BATCHES)
    static = [row for row in answer.rows if row["arm"] == STATIC and row["scope"] == "served" and row["status"] == "ok"] if answer else []
    rates = [f"{share * REQUESTS * 1e9 / static[0]['median_ns']:.2g}" for share in SHARES] if static else ["1", "2", "4"]
    return sweep(["native", STATIC, f"{STATIC},+slot-batch"], BATCHING, str(BATCH), str(LENGTH), launches=2, **{"max-tokens": TOKENS, "request-rate": ",".join(rates)})


# A pattern that can go on for as long as a cell runs.
ANY_LINE = r"@regex=[^\n]*"
WALKED = f"native,+trie-masks,-cached-trie-masks{ANY_LINE}"
HELD = "native@prefix=0.875"
MISSED = "native,+forced-miss,-copied-prefix@prefix=0.875"
SHARED = "native,+kv-paged,+shared-prefix,+shared-fork,-copied-prefix,-copied-fork,-kv-preallocated"
UNUSED = "native,-copied-prefix"


SEQUENCES = Study(
    "Sequences on this machine",
    "tools/findings --study sequences",
    (
        Question("samples-gpt2", "10 samples of 100 tokens, gpt2's shape, keys kept: who is fastest?",
                 samples(["native", "causal", "causal,+copied-fork", "vector,-vectorized-choice,+host-choice"], [ON], launches=3),
                 (Claim("generate() takes longer", "hf-generate", GENERATE, "slower"),
                  Claim("logits that cross to the host cost time", "vector,+host-choice,-vectorized-choice", GENERATE, "slower")), model="synthetic:gpt2"),
        Question("samples-gpt2-no-cache", "The same without keys, one launch: what do keys that are kept save?",
                 samples(["native", "causal,+no-cache"], [OFF], launches=1), (), model="synthetic:gpt2"),
        Question("samples-redpajama", "10 samples of 100 tokens on RedPajama's shape (2.8 B parameters), bf16, keys kept",
                 samples(["native", "vector"], [ON], dtype="bf16", launches=2),
                 (Claim("generate() takes longer with keys kept", "hf-generate", GENERATE, "slower"),), model="synthetic:redpajama-3b"),
        Question("samples-redpajama-no-cache", "The same without keys, 10 new tokens, one launch: no verdict",
                 samples(["native", "vector,+no-cache"], [OFF], dtype="bf16", launches=1, **{"max-tokens": 10}), (), model="synthetic:redpajama-3b"),
        Question("samples-prefill", "10 samples of a prompt of 128 tokens: what does it save to prefill it once?",
                 sweep(["native", PAGED, "native,-copied-fork"], PREFILL, "1", "128", samples=10, launches=3, worker=["llama.cpp=tools/peers/run llama_cpp"]),
                 (Claim("a prefill for each sample takes longer", "native,-copied-fork", PREFILL, "slower"),
                  Claim("samples that share pages begin sooner than copies", PAGED, PREFILL, "faster")), model="smollm2"),
        Question("samples-decode", "10 samples of 32 new tokens after 512: are shared pages read as fast as copies?",
                 sweep(["native", PAGED], GENERATE, "1", "512", samples=10, launches=3, **{"max-tokens": 32}),
                 (Claim("samples that share pages take less time", PAGED, GENERATE, "faster"),), model="smollm2"),
        Question("masks", "What does a pattern cost a step?",
                 sweep(["native", f"native{ANY_LINE}", WALKED, f"native,-cached-trie-masks{ANY_LINE}"], DECODE, "8", "128", launches=3),
                 (Claim("masks that are kept cost no time", f"native{ANY_LINE}", DECODE, "same"),
                  Claim("a walk over the tree of tokens for each mask costs time", WALKED, DECODE, "slower"),
                  Claim("a look at every token costs time", f"native,-cached-trie-masks{ANY_LINE}", DECODE, "slower")), model="smollm2"),
        Question("prefix", "What is a prefix store worth, and what does it cost where nothing is found?",
                 sweep(["native", *(f"native@prefix={share}" for share in ("0", "0.25", "0.5", "0.75", "0.875")), MISSED], PREFILL, "1", "512", launches=3),
                 (Claim("seven eighths of a prompt in the store save time", HELD, PREFILL, "faster"),
                  Claim("a store that is empty costs no time", "native@prefix=0", PREFILL, "same"),
                  Claim("a store whose hits are not used costs no time", MISSED, PREFILL, "same")), model="smollm2"),
        Question("prefix-engines", "Seven eighths of a prompt of 512 tokens are held: who goes on first?",
                 sweep([HELD], PREFILL, "1", "512", launches=3, worker=[f"{engine}@prefix=0.875=tools/peers/run {engine.replace('.', '_')}" for engine in ("llama.cpp", "transformers")]),
                 (Claim("llama.cpp, whose sequences share cells (seq_cp), takes longer", "llama.cpp@prefix=0.875", PREFILL, "slower"),
                  Claim("Transformers, which copies the cache, takes longer", "transformers@prefix=0.875", PREFILL, "slower")), model="smollm2"),
        Question("prefix-pages", "Prompts that begin alike: does it pay to share the pages of what the store holds?",
                 sweep([HELD, f"{SHARED}@prefix=0.875"], PREFILL, "1,8", "512", launches=3),
                 (Claim("prompts that share pages begin sooner than with copies", f"{SHARED}@prefix=0.875", PREFILL, "faster"),), model="smollm2"),
        Question("workloads", "Requests with one system prompt, with sets of examples, and as turns of conversations: what does a prefix store save?",
                 sweep([f"{UNUSED}@prefix=0.75", *(f"native@prefix=0.75{kind}" for kind in ("", ":few-shot", ":turns")), f"{SHARED}@prefix=0.75"], BATCHING, "4", "256", launches=3,
                       **{"max-tokens": 16}),
                 tuple(Claim(f"a store saves time where prompts {words}", f"native@prefix=0.75{kind}", BATCHING, "faster")
                       for kind, words in (("", "begin with one system prompt"), (":few-shot", "have sets of examples"), (":turns", "go on with a conversation"))), model="smollm2"),
        BATCHES,
        Question("load", "The same under load: requests at 0.6, 0.9 and 1.2 times the rate that the static batch answers", under_load,
                 (Claim("a batch that does not change takes longer", STATIC, BATCHING, "slower"),), model="smollm2", figures=("batching-load",)),
    ),
    claimed_by="asked",
    head="Weights are random but for smollm2. Samples are drawn, so that tokens differ between engines; what is verified is the logits of the same engine fed our tokens.\n",
)
