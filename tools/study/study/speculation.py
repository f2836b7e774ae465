"""Speculative decoding: what it is worth where a known share of guesses is right, as predicted and as measured; and on real text, beside other engines that guess by the same rule."""

from . import classes, pair, worth
from .questions import Claim, Question, Study, sweep

CONTINUE = "continue"
SAID = 32
BASE = "native"


def oracle(percent, tokens):
    """The arm's label, which leaves out what is the default: 80 % and 4 tokens."""
    return f"{BASE},+oracle-draft{'' if percent == 80 else f':percent={percent}'}{'' if tokens == 4 else f':tokens={tokens}'}"


GUESSES = (1, 3, 7)
RATES = (0, 50, 80, 100)
ARMS = [BASE, *(oracle(percent, tokens) for percent in RATES for tokens in GUESSES)]


def cells(batch, dtype, arms=ARMS, **more):
    return sweep(arms, CONTINUE, batch, "128", dtype=dtype, fill="random", **{"launches": 5, "max-tokens": SAID, **more})


def long(name, title, model, dtype, launches=16):
    """Many tokens of one row, so that the number of rounds is near what is expected and luck is little."""
    return Question(name, title, cells("1", dtype, [BASE, oracle(0, 7), oracle(80, 7)], launches=launches, **{"max-tokens": 4 * SAID}), best_case(), "predicted", model)


def best_case():
    return (Claim("7 guesses of which 80 % are right save time", oracle(80, 7), CONTINUE, "faster"),
            Claim("7 guesses of which none is right cost time", oracle(0, 7), CONTINUE, "slower"))


LOOKUP = f"{BASE},+ngram-lookup"
PEERS = ["llama.cpp=tools/peers/run llama_cpp", "llama.cpp-look-up=tools/peers/run llama_cpp --prompt-lookup 10",
         "transformers=tools/peers/run transformers --loop generate", "transformers-look-up=tools/peers/run transformers --loop generate --prompt-lookup 10"]



def on_text(name, title, *claims):
    """How long the tokens of one class of text take, at one row, beside engines that look up too."""
    return Question(name, title,
                    lambda answers: {**sweep([BASE, LOOKUP, "speculate"], CONTINUE, "1", str(classes.HELD[name]), launches=5, slice=4, worker=PEERS[1::2], **{"max-tokens": 64}),
                                     "--prompts": classes.file_of(name)}, tuple(Claim(text, arm, CONTINUE, says) for text, arm, says in claims), "accepted", "smollm2")


TRAINED = f"{BASE},+draft-model:draft=draft:tokens={pair.GUESSES}"


def of_the_pair():
    """The trained draft, beside the same one in Transformers."""
    workers = ["transformers=tools/peers/run transformers --loop generate", f"transformers-assistant=tools/peers/run transformers --loop generate --assistant {pair.DRAFT}"]
    return {**sweep([BASE, TRAINED, LOOKUP], CONTINUE, "1", "256", launches=5, slice=4, worker=workers, **{"max-tokens": 64}), "--draft": f"draft={pair.DRAFT}", "--prompts": pair.prompts()}


def replayed(name, title, model):
    """The rounds of the pair, guessed again at another shape."""
    return Question(name, title,
                    lambda answers: sweep([BASE, f"{BASE},+oracle-draft:trace={pair.rounds()}"], CONTINUE, "1,8", "128", dtype="bf16", fill="random", launches=5, **{"max-tokens": 64}), (), "accepted", model)


SPECULATION = Study(
    "Speculative decoding",
    "tools/findings --study speculation",
    (
        Question("oracle-bf16", "164 M parameters, bf16: what are guesses worth of which a known share is right?", cells("1,8,32", "bf16"), best_case(), "predicted", "synthetic:tiny-starcoder",
                 draws=("speed-up", "price", "break-even")),
        Question("oracle-fp32", "The same in fp32", cells("1,8", "fp32"), best_case(), "predicted", "synthetic:tiny-starcoder", draws=("speed-up",)),
        Question("oracle-santacoder", "The same on SantaCoder's shape in bf16", cells("1,8", "bf16", launches=3), best_case(), "predicted", "synthetic:santacoder", draws=("speed-up",)),
        long("long-bf16", "164 M parameters, bf16: what are guesses worth in a longer answer?", "synthetic:tiny-starcoder", "bf16"),
        long("long-fp32", "The same in fp32", "synthetic:tiny-starcoder", "fp32"),
        Question("lengths", "Does it harm to guess where nothing is right?",
                 sweep([BASE, *(f"{oracle(percent, 7)},+{length}" for percent in (0, 80) for length in ("adaptive-length", "goodput-length"))], CONTINUE, "1,32", "128", dtype="bf16",
                       fill="random", launches=7, **{"max-tokens": SAID}),
                 (Claim("guesses that adapt cost nothing where none is right", f"{BASE},+goodput-length,{oracle(0, 7).removeprefix(BASE + ',')}", CONTINUE, "same"),), model="synthetic:tiny-starcoder"),
        Question("layers", "Are a model's own first layers a good draft?",
                 {**sweep([BASE, *(f"{BASE},+early-exit{'' if layers == 1 else f':layers={layers}'}" for layers in (1, 8, 16)), f"{BASE},+draft-model:draft=self"], CONTINUE, "1", "256", launches=3,
                          **{"max-tokens": SAID}), "--prompts": "tests/data/prompts.jsonl"},
                 (Claim("the first 8 layers save no time", f"{BASE},+early-exit:layers=8", CONTINUE, "slower"),), "accepted", "smollm2"),
        Question("process", "What does it cost to have the draft in a process of its own?",
                 {**sweep([f"{BASE},+draft-model:draft=same:tokens=4", f"{BASE},+draft-process:draft=same:tokens=4", BASE], CONTINUE, "1,4", "256", launches=3, **{"max-tokens": SAID}),
                  "--draft": "same=smollm2", "--prompts": "tests/data/prompts.jsonl"},
                 (Claim("a process of its own takes longer", f"{BASE},+draft-process:draft=same:tokens=4", CONTINUE, "slower"),), "accepted", "smollm2"),
        Question("pair", "A draft that was trained for its model: what is it worth?", lambda answers: of_the_pair(),
                 (Claim("the draft saves time", TRAINED, CONTINUE, "faster"),), "accepted", pair.MODEL),
        replayed("replay", "What would the same guesses be worth at 164 M parameters, if they cost nothing?", "synthetic:tiny-starcoder"),
        replayed("replay-santacoder", "And on SantaCoder's shape?", "synthetic:santacoder"),
        Question("look-up", "Look-up on real text: who gains how much?",
                 {**sweep([BASE, LOOKUP, "speculate", "causal", "causal,+ngram-lookup"], CONTINUE, "1", "256", launches=5, slice=4, worker=PEERS, **{"max-tokens": 64}),
                  "--prompts": "tests/data/prompts.jsonl"},
                 (Claim("look-up saves time", LOOKUP, CONTINUE, "faster"), Claim("llama.cpp's look-up takes longer than plain steps of ours", "llama.cpp-look-up", CONTINUE, "slower"),
                  Claim("Transformers' look-up takes longer than plain steps of ours", "transformers-look-up", CONTINUE, "slower")), "accepted", "smollm2"),
        Question("positions", "Which guesses of look-up are right, by the kind of text and their position?",
                 lambda answers: {"--prompts": classes.file_of("all"), "--arm": LOOKUP, "--max-tokens": 64, "--max-batch": 1, "--ignore-eos": True}, (), "classes", "smollm2", draws=("positions",),
                 command="generate"),
        on_text("summaries", "A summary of a text: what is look-up worth?", ("look-up saves time", LOOKUP, "faster")),
        on_text("edits", "A function that is written again: what is look-up worth?", ("look-up saves time", LOOKUP, "faster")),
        on_text("questions", "A question about a text: what is look-up worth?", ("look-up saves time", LOOKUP, "faster")),
        on_text("open", "A story that goes on: what is look-up worth?", ("look-up takes no longer than plain steps", LOOKUP, "faster"), ("`speculate` costs nothing", "speculate", "same")),
    ),
    claimed_by="asked",
    summary=lambda answers: worth.summary(answers, oracle, LOOKUP),
    head=f"A sample is the time of a token: so many tokens (`--max-tokens`) of each row behind what it holds, in one time, and back again. Outputs are proved equal first. `oracle-draft` is told what rows will say and "
         "guesses wrongly as often as it was asked to; the price of a round is fixed by the arm none of whose guesses is right, and its number by a count, before the predicted arm is timed. "
         "Prompts of a class of text are made of the documentation and source of this Python; times are those of the first of a class, guesses those of all its six.\n",
)
