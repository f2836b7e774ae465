"""Tensor parallelism: what ranks that share a model take, beside what their parts take at once and what the sums between them take."""

from . import page, prediction
from .questions import Claim, Question, Study, DECODE, PREFILL
from .speculation import CONTINUE

SHARED, MUTE = "native,+shm-ranks", "native,+mute-ranks"
SMALL, LARGE = "synthetic:tiny-starcoder", "synthetic:santacoder"
WIDTHS = {SMALL: (768, 49152), LARGE: (2048, 49280)}  # of a token's residual, and of its logits
ELEMENT_BYTES = {"fp32": 4, "bf16": 2}


def sum_ns(sums, dtype, size):
    """The median time of a sum of so many bytes, on the line between the two sizes that were timed beside it."""
    known = sorted((row["bytes"], row["p50_ns"]) for row in sums if row["dtype"] == dtype)
    if size <= known[0][0]:
        return known[0][1]
    for (low, low_ns), (high, high_ns) in zip(known, known[1:]):
        if size <= high:
            return low_ns + (high_ns - low_ns) * (size - low) / (high - low)
    return known[-1][1] * size / known[-1][0]


def exchanged(row, sums, model):
    """Sums of a step, the bytes of one, and what they and the exchange of the head's parts should take, in ns."""
    counters, (width, vocabulary) = row["counters"], WIDTHS[model]
    steps = counters["counted_steps"]
    count, size = counters["all_reduces"] / steps, counters["all_reduced_bytes"] / counters["all_reduces"]
    element = ELEMENT_BYTES[row["dtype"]]
    head = sum_ns(sums, row["dtype"], row["batch"] * width * element) + sum_ns(sums, row["dtype"], row["batch"] * vocabulary // 2 * element)
    return count, size, count * sum_ns(sums, row["dtype"], size) + head


def shares(shared, mute, taken):
    """Of each launch, the time that was measured over the time that was predicted; both are over the same plain steps."""
    pairs = zip(shared.get("launch_ratios") or (), mute.get("launch_ratios") or ())
    return [measured / (parts + taken) for measured, parts in pairs]


def summary(answers):
    sums = answers.of("sums")
    lines = []
    for question in RANKS.questions:
        answer = answers.get(question) if question.command == "sweep" else None
        if answer is None or sums is None:
            continue
        for name, arms in page.by_cell(answer.rows).items():
            if any(arm not in arms or arms[arm]["status"] != "ok" for arm in (SHARED, MUTE)):
                continue
            shared, mute, whole = arms[SHARED], arms[MUTE], arms["native"]
            count, size, taken = exchanged(shared, sums.rows, question.model)
            share = prediction.share_text(shares(shared, mute, taken / whole["median_ns"]))
            lines.append(f"**{question.title}**, {name}: two ranks take {page.ratio(shared)} of one process's time on as many threads. {count:.0f} sums of {size:,.0f} bytes and the head's parts should take {taken / 1e3:,.0f} us of "
                         f"{shared['median_ns'] / 1e3:,.0f}, {100 * taken / shared['median_ns']:.1f} %; measured over predicted, which is the parts at once and these: {share}.")
    return lines


def shared_by(dtype, launches):
    return {"--arm": ["native", SHARED, MUTE], "--dtype": dtype, "--phase": "prefill,decode", "--batch": "1,8", "--length": "128", "--launches": launches}


def drafted(layers, title):
    """A question on so many of the model's own layers as a draft. With random weights they guess badly, and both arms guess alike: what differs is the time of a round."""
    draft = f"native,+early-exit{'' if layers == 1 else f':layers={layers}'}"
    whole, shared = f"{draft},+shm-ranks", f"{draft}:shared=1,+shm-ranks"
    return Question(f"draft-{layers}", title, {"--arm": [whole, shared], "--dtype": "bf16", "--phase": CONTINUE, "--batch": "1", "--length": "128", "--max-tokens": 16, "--fill": "random", "--launches": 5},
                    (Claim("a draft that ranks share is faster than one that is whole on the first", shared, CONTINUE, "faster"),), "accepted", model=LARGE)


def claims():
    return (Claim("two ranks are as fast in decode as one process with two threads", SHARED, DECODE, "same"), Claim("two ranks are as fast in prefill", SHARED, PREFILL, "same"))


RANKS = Study(
    "Ranks that share a model",
    "tools/findings --study ranks",
    (
        Question("sums", "What does a sum between two processes take?", {}, shows="sums", command="sums"),
        Question("small-fp32", "The 164 M shape, fp32", shared_by("fp32", 6), claims(), model=SMALL),
        Question("small-bf16", "The 164 M shape, bf16", shared_by("bf16", 6), claims(), model=SMALL),
        Question("large-bf16", "SantaCoder's shape, bf16", shared_by("bf16", 4), claims(), model=LARGE),
        drafted(1, "A draft of 1 layer of 24: whole on the first rank, or shared?"),
        drafted(8, "A draft of 8 layers of 24"),
    ),
    claimed_by="asked",
    head="Two processes have a thread and a core each; `native` is one process with both. They share one memory, so that no speed-up is to be expected here: what is asked is what sharing costs, and whether it can be predicted. "
         "`mute-ranks` runs both parts at once and exchanges nothing: what it computes is wrong on purpose. What is predicted is its time and that of the sums, each at the median that `bench/micro/ranks_benchmark` measures. "
         "Ranks of several GPUs were not run: nobody had two.\n",
    summary=summary,
)
