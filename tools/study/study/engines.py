"""Other engines beside `native`: first each in a few settings, then the best of each in the same blocks as ours."""

from . import page
from .questions import Claim, Question, Study, DECODE, PREFILL

SMALL, LARGE = "synthetic:tiny-starcoder", "synthetic:santacoder"
COMPILED = "--cache static --compile"
# The declared grid. llama.cpp's fused attention casts fp32 keys to fp16, so that fp32 goes without; what a processor lacks becomes a row that says so.
GRID = {
    ("llama.cpp", "bf16"): ("--flash-attention off", "--flash-attention on", "--flash-attention on --kv-unified on", "--flash-attention on --mmap off"),
    ("llama.cpp", "fp32"): ("--flash-attention off", "--flash-attention off --kv-unified on", "--flash-attention off --mmap off"),
    ("transformers", "bf16"): ("--attention sdpa", "--attention eager", "--cache static", COMPILED),
    ("transformers", "fp32"): ("--attention sdpa", "--attention eager", "--cache static", COMPILED),
    ("ctranslate2", "fp32"): ("--isa AVX2 --mkl 0", "--isa AVX2 --mkl 1", "--isa AVX512 --mkl 0", "--isa AVX512 --mkl 1"),
    # Shown, so that its row says why it is not measured.
    ("ctranslate2", "bf16"): ("--isa AVX512",),
}
ENGINES_OF = tuple(dict.fromkeys(engine for engine, _ in GRID))


def worker(engine, flags):
    return f"tools/peers/run {engine.replace('.', '_')} {flags}".rstrip()


def setting(engine, flags):
    """The arm of an engine with these flags, by the letters that a worker's name may have."""
    return f"{engine}-{flags.replace('--', '').replace(' ', '-')}"


def pilot(dtype, model=SMALL, without=()):
    """Every setting of the grid in the same blocks, but for those whose flags are in `without`."""
    workers = [f"{setting(engine, flags)}={worker(engine, flags)}" for (engine, of), grid in GRID.items() if of == dtype for flags in grid if flags not in without]
    return Question(f"settings-{dtype}", f"Which settings suit the other engines, {dtype}?",
                    {"--worker": workers, "--dtype": dtype, "--phase": "prefill,decode", "--batch": "1,8", "--length": "128", "--launches": 2}, shows="settings", model=model)


def best(answers, engine, dtype, chosen_on=SMALL):
    """The flags with the least geometric mean over the cells; the first of the grid where none was measured."""
    grid = GRID[engine, dtype]
    answer = answers.get(pilot(dtype, chosen_on))
    if answer is None:
        return grid[0]
    means = {flags: page.geometric(answer.rows, setting(engine, flags)) for flags in grid}
    there = [flags for flags in grid if means[flags] is not None]
    return min(there, key=means.get) if there else grid[0]


def beside(dtype, phases, batch, chosen_on=SMALL, **more):
    """Makes a sweep of native and of the best setting of each engine."""
    def sweep(answers):
        workers = [f"{engine}={worker(engine, best(answers, engine, dtype, chosen_on))}" for engine in ENGINES_OF]
        return {"--arm": "native", "--worker": workers, "--roofline": True, "--dtype": dtype, "--phase": phases, "--batch": batch, "--length": "128",
                **{f"--{key.replace('_', '-')}": value for key, value in more.items()}}
    return sweep


def alone(dtype, launches):
    """native beside what bounds it and nothing else: arms of one process take turns of milliseconds, so that the shares are known better than beside other processes."""
    return {"--arm": "native", "--roofline": True, "--dtype": dtype, "--phase": "prefill,decode", "--batch": "1,8", "--length": "128", "--launches": launches}


def claims(phases):
    return tuple(Claim(f"{engine} takes longer than native in {phase}", engine, phase, "slower") for phase in phases for engine in ENGINES_OF)


HEAD = ("`native` is our fastest set; the share of the bound is that of max(bytes over the read rate, FLOPs over the matrix rate), both measured in the same blocks. "
        "Each other engine runs the best of its settings in a declared grid; it is fed our tokens, and its logits are held to the tolerance of the dtype.\n")
ENGINES = Study(
    "Other engines in the same blocks",
    "tools/findings --study engines",
    (
        pilot("bf16"),
        Question("small-bf16", "164 M parameters, bf16", beside("bf16", "prefill,decode", "1,8"), claims((PREFILL, DECODE)), "engines", SMALL),
        Question("small-bf16-32", "164 M parameters, bf16, 32 rows", beside("bf16", "decode", "32"), claims((DECODE,)), "engines", SMALL),
        Question("small-bf16-whole", "164 M parameters, bf16, whole completions", beside("bf16", "generate", "1", max_tokens=32), (), "engines", SMALL),
        pilot("fp32"),
        Question("small-fp32", "164 M parameters, fp32", beside("fp32", "prefill,decode", "1,8"), claims((PREFILL, DECODE)), "engines", SMALL),
        Question("small-fp32-32", "164 M parameters, fp32, 32 rows", beside("fp32", "decode", "32"), claims((DECODE,)), "engines", SMALL),
        Question("small-fp32-whole", "164 M parameters, fp32, whole completions", beside("fp32", "generate", "1", max_tokens=32), (), "engines", SMALL),
        Question("large-bf16", "SantaCoder's shape (1.1 B parameters), bf16", beside("bf16", "prefill,decode", "1,8"), claims((PREFILL, DECODE)), "engines", LARGE),
        Question("large-bf16-32", "SantaCoder's shape, bf16, 32 rows", beside("bf16", "decode", "32", launches=3), claims((DECODE,)), "engines", LARGE),
        Question("alone-small-bf16", "native and its bound alone: 164 M parameters, bf16", alone("bf16", 12), shows="engines", model=SMALL),
        Question("alone-small-fp32", "native and its bound alone: 164 M parameters, fp32", alone("fp32", 12), shows="engines", model=SMALL),
        Question("alone-large-bf16", "native and its bound alone: SantaCoder's shape, bf16", alone("bf16", 8), shows="engines", model=LARGE),
    ),
    claimed_by="asked",
    head="The weights are random. Other families stand in [families.md](families.md). " + HEAD,
)
