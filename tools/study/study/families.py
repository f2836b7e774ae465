"""Other engines beside `native` on the families that the study did not measure: a real Llama, and shapes of Qwen 3, Llama and Pythia."""

from .engines import COMPILED, HEAD, beside, claims, pilot
from .questions import DECODE, PREFILL, Question, Study

REAL = "smollm2"
# Model, and the dtypes that are asked for; the settings of the other engines are chosen on the first of them.
MODELS = ((REAL, ("fp32", "bf16")), ("synthetic:pythia-160m", ("fp32", "bf16")), ("synthetic:qwen3-0.6b", ("bf16",)), ("synthetic:llama-1b", ("bf16",)))


def of_model(model, dtype):
    name = f"{model.removeprefix('synthetic:')}-{dtype}"
    asked = lambda *cells, **more: beside(*cells, chosen_on=REAL, **more)  # noqa: E731
    return (
        Question(name, f"{model}, {dtype}", asked(dtype, "prefill,decode", "1,8", launches=3), claims((PREFILL, DECODE)), "engines", model),
        Question(f"{name}-32", f"{model}, {dtype}, 32 rows", asked(dtype, "decode", "32", launches=3), claims((DECODE,)), "engines", model),
        Question(f"{name}-long", f"{model}, {dtype}, 1,024 tokens", asked(dtype, "prefill,decode", "1", length="1024", launches=3), claims((PREFILL, DECODE)), "engines", model),
    )


FAMILIES = Study(
    "Other engines in the same blocks: other families",
    "tools/findings --study families",
    tuple(pilot(dtype, REAL, without=(COMPILED,)) for dtype in ("fp32", "bf16")) + tuple(question for model, dtypes in MODELS for dtype in dtypes for question in of_model(model, dtype)),
    claimed_by="asked",
    # On two cores torch.compile took 8 minutes of processor time a launch, and what it made was never the best setting of the engines' study.
    head="The weights are random but for smollm2. torch.compile is not in the grid here: it was the best setting nowhere in the study of engines. " + HEAD,
)
