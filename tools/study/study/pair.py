"""The trained pair of tools/train_pair: what the questions about a draft that was trained for its model are asked of."""

import pathlib

from validation import program

ROOT = pathlib.Path(__file__).resolve().parents[3]
FOLDER = pathlib.Path("build/pair")  # below the root
MODEL, DRAFT, PROMPTS, ROUNDS = (str(FOLDER / name) for name in ("model", "draft", "prompts.jsonl", "rounds.jsonl"))
GUESSES, TOKENS = 4, 128


def there():
    """Raises where the pair was not trained."""
    if not (ROOT / PROMPTS).exists():
        raise FileNotFoundError(f"{PROMPTS} is not there: run `tools/train_pair --out {FOLDER}` first, which takes about 20 minutes")


def prompts():
    there()
    return PROMPTS


def rounds():
    """What became of the draft's guesses on held-out text, as a file that `oracle-draft:trace` reads; made where it is not there."""
    there()
    if not (ROOT / ROUNDS).exists():
        text, _ = program.run("generate", "-m", MODEL, "--draft", f"draft={DRAFT}", "--arm", f"native,+draft-model:draft=draft:tokens={GUESSES}", "--prompts", PROMPTS, "--max-tokens", TOKENS,
                              "--ignore-eos", "-o", "jsonl")
        (ROOT / ROUNDS).write_text(text)
    return ROUNDS
