"""Serving: what it costs to ask an engine over HTTP instead of in process, in the same blocks and beside ours."""

import os
import pathlib

from validation import program

from . import page, tax
from .questions import Claim, DECODE, PREFILL, Question, Study
from .sequences import BATCH, BATCHING, LENGTH, REQUESTS, TOKENS

ROOT = pathlib.Path(__file__).resolve().parents[3]
REAL, SMALL, TINY = "smollm2", "synthetic:tiny-starcoder", "synthetic:tiny"
# A server is held to our tokens alone. After ids at random they are often nearly ties, which bf16 breaks otherwise; after texts they are seldom so.
TEXTS = "tests/data/prompts.jsonl"
LLAMA, VLLM = "llama.cpp", "vllm"
# How the server of each engine is asked.
APIS = {LLAMA: "llama.cpp", VLLM: "openai"}
# Threads of a server lie where the system puts them; those of its engine in process do too, so that the difference is the server.
UNPLACED = "env -u OMP_PLACES -u OMP_PROC_BIND"
ROWS = 8
# Seconds: vLLM compiles a model that it has not seen before.
PATIENCE = {"worker-timeout": 900}
START_SECONDS = 600
# Requests a second, of what the slowest engine answers when all come at once.
SHARES = (0.5, 0.9)
# What a request has to be answered within so that it is a good one, in milliseconds: somebody waits a second at most, and reads ten tokens a second.
LIMITS = "ttft=1000,tpot=100"


def own_program():
    """The program that measures, whose worker asks servers: from the root, where it lies below it."""
    path = pathlib.Path(program.PROGRAM)
    return os.path.relpath(path, ROOT) if path.is_absolute() and path.is_relative_to(ROOT) else str(path)


def script(engine):
    return engine.replace(".", "_")


def in_process(engine, flags=""):
    return f"{engine}={UNPLACED} tools/peers/run {script(engine)} {flags}".rstrip()


def server(engine, flags=""):
    """The server with its client, in a network of their own."""
    serve = f"tools/peers/serve {script(engine)} --model {{model}} --dtype {{dtype}} --threads {{threads}} --port {{port}} --rows {ROWS} {flags}".rstrip()
    return f"{engine}{tax.SERVER}=tools/peers/alone {own_program()} worker --api {APIS[engine]} --start-seconds {START_SECONDS} --serve '{serve}'"


def beside(dtype, engines=(LLAMA, VLLM), batch="1,4,8", phases="prefill,decode", length="128", **more):
    """Makes a sweep of native, each engine in process, and its server."""
    def sweep(answers):
        workers = [worker for engine in engines for worker in (in_process(engine), server(engine))]
        return {"--arm": "native", "--worker": workers, "--scope": "serving", "--dtype": dtype, "--phase": phases, "--batch": batch, "--length": length,
                **{f"--{key.replace('_', '-')}": value for key, value in {**PATIENCE, **more}.items()}}
    return sweep


def requests(**more):
    """Requests of several lengths to native and to both servers."""
    return {"--arm": "native", "--worker": [server(engine) for engine in APIS], "--dtype": "fp32", "--phase": BATCHING, "--batch": str(BATCH), "--length": str(LENGTH), "--max-tokens": TOKENS, "--launches": 3,
            **{f"--{key}": value for key, value in {**PATIENCE, **more}.items()}}


BURST = Question("burst", f"{REQUESTS} requests at once, {BATCH} of them at a time: who has answered first?", requests(),
                 tuple(Claim(f"{engine}'s server takes longer than native without a server", engine + tax.SERVER, BATCHING, "slower") for engine in APIS), model=REAL)


def under_load(answers):
    """Rates of requests from what the slowest arm answered when all came at once; 0.5 and 1 a second where that was not measured."""
    answer = answers.get(BURST)
    took = [row["median_ns"] for row in answer.rows if row["scope"] == "served" and row["status"] == "ok"] if answer else []
    rates = [f"{share * REQUESTS * 1e9 / max(took):.2g}" for share in SHARES] if took else ["0.5", "1"]
    return requests(**{"request-rate": ",".join(rates), "goodput": LIMITS, "launches": 2})


def claims(engines=(LLAMA, VLLM)):
    words = {PREFILL: "for the first token", DECODE: "for each token more"}
    return tuple(Claim(f"{engine}'s server takes longer than {engine} in process {words[phase]}", engine + tax.SERVER, phase, "slower", base=engine) for phase in words for engine in engines)


def summary(answers):
    lines = []
    for question in SERVING.questions:
        answer = answers.get(question)
        if answer is not None and question.shows == "tax":
            lines += tax.sentences(question.title.partition(":")[0], page.by_cell(answer.rows))
    return lines


def asked(name, title, dtype, model, engines=(LLAMA, VLLM), **more):
    return Question(name, title, beside(dtype, engines, **more), claims(engines), "tax", model, draws=("tax",))


SERVING = Study(
    "The serving tax",
    "tools/findings --study serving",
    (
        asked("smollm2-fp32", "SmolLM2, fp32", "fp32", REAL, prompts=TEXTS),
        asked("smollm2-bf16", "SmolLM2, bf16", "bf16", REAL, prompts=TEXTS, batch="1,4"),
        asked("smollm2-fp32-1-thread", "SmolLM2, fp32, one thread: and where a core is left for the server?", "fp32", REAL, prompts=TEXTS, threads=1, launches=3),
        asked("starcoder-fp32", "164 M parameters of another family, fp32", "fp32", SMALL, launches=3),
        asked("tiny-fp32", "A tiny model, fp32: what is left where there is little to compute?", "fp32", TINY, launches=3),
        BURST,
        Question("load", f"The same under load: requests at {' and '.join(map(str, SHARES))} times the rate that the slowest answers, good ones within {LIMITS}", under_load, model=REAL, figures=("batching-load",)),
    ),
    claimed_by="asked",
    head="Prompts and answers are token ids, each prompt is new, and nothing is kept from one request for another. In phase prefill a step is the time to the first token of all rows, in phase decode the time "
         "between tokens, which ends with the last row's. *In process* an engine is called by its own library, without a server; its server runs the same weights with the same settings, and both sides write each "
         "token as a word of a made-up vocabulary. Threads are bound to no core but for those of `native`. Servers are stopped while another arm is timed, since vLLM's queue between processes waits busily for a "
         "second after the last message. Each server has 8 slots. llama-server is told the slot of each row, the first ones: those it takes by itself, the ones that were used longest ago, need not lie side by side, and it steps rows of "
         "slots that do not one after the other. `native` answers requests without a server.\n",
    summary=summary,
)
