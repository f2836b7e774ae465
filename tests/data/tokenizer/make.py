"""Makes the tokenizers of this folder and what Hugging Face's `tokenizers` makes of some texts: python tests/data/tokenizer/make.py

gpt2.json       byte-level BPE as GPT-2's: ByteLevel alone, merges as "a b" strings, one special token in the vocabulary
starcoder.json  as StarCoder's: single digits, then ByteLevel; merges as lists; special tokens, added tokens beside the vocabulary
expected.json   for each file, and for variants of gpt2.json with another pre-tokenizer: texts, their ids, the text of the ids

Written with tokenizers 0.23.3; another version may train other merges, and the C++ tests read only what stands here.
"""

import json
import pathlib

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers

FOLDER = pathlib.Path(__file__).parent

CORPUS = [
    "import json\nfrom pathlib import Path\n\n\ndef read(path):\n    with open(path) as file:\n        return json.load(file)\n",
    "class Node:\n    def __init__(self, value, children=None):\n        self.value = value\n        self.children = children or []\n",
    "def fibonacci(n):\n    if n < 2:\n        return n\n    return fibonacci(n - 1) + fibonacci(n - 2)\n",
    "for (int i = 0; i < 10; ++i) {\n\tstd::cout << values[i] << std::endl;\n}\n",
    "The decoder writes one token at a time, and every step reads all the weights. It's what we've measured; they'll see.",
    "Die Größe der Schlüssel übersteigt 2048 Wörter. Le modèle n'était pas prêt à déchiffrer ça.",
    "Привет, мир! Модель читает веса. 模型一次只写一个词。モデルは一度に一語を書きます。",
]

TEXTS = [
    "",
    " ",
    "  ",
    "\n",
    "\t\t\tx = 1\n\n\n  y",
    "Hello world",
    " Hello  world   ",
    "It's we'll they've I'm you're don't he'd 'tis 'S",
    "x'sy''s'",
    "def f(a, b):\n    return a+b  # sum\n\n\nclass C:\n\tpass\n",
    "for(int i=0;i<1234567;++i){a[i]<<=2;}",
    "0123456789 3.14159 1e-05 0x1F 2nd v2",
    "½ ² Ⅷ ٣٤٥ १२३ 一二三 ๑๒",
    "naïve café résumé Größe",
    "e\u0301 \u0301 a\u0300\u0301\u0302 \u0301\u0301x",
    "\u200d\u200b\ufeff\u00ad",
    "👩‍👩‍👧‍👦 🏳️‍🌈 👍🏽 🇩🇪🇫🇷",
    "Привет, мир! Ёлка",
    "模型一次只写一个词。",
    "مرحبا بالعالم שלום עולם",
    "\u00a0\u2003\u3000\u2028\u2029\u0085 \u180e \u200b x",
    "a\u00a0b\u2003c \u2003 d",
    "\x00\x01\x1f\x7f\x80\x9f",
    "tab\tand\rreturn\r\nnewline\x0bvt\x0cff",
    "snake_case camelCase SCREAMING __init__ --flag ==> !=",
    "$€£¥ ±×÷ √∞ ≤≥ ←→",
    "\ufffd\uffff\U0010ffff\ue000",
    "    four\n        eight\n  \n two ",
    "trailing space \n ",
    "<|endoftext|>",
    "a<|endoftext|>b <|endoftext|> <|endoftext|",
    "<|endoftext|><|endoftext|>",
    "<fim_prefix>def<fim_suffix> <fim_middle>x<fim_",
    "<fim_prefix><fim_prefix_long>",
    "words wordsmith  keyword sword",
    "a  b    c        d",
    "ſ's 'ſ 'LL I'LL WE'RE",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    "the the the thethethe returnreturn",
    "The-final--countdown, with--dashes-",
    "12345 a1b22c333d4444 1,234,567.89",
]

SPLIT = {"type": "Split", "pattern": {"String": "-"}, "behavior": "Isolated", "invert": False}
BYTES = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
DIGITS = {"type": "Digits", "individual_digits": False}
GPT4 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")


def sequence(*steps):
    return {"type": "Sequence", "pretokenizers": list(steps)}


def regex(pattern, behavior="Isolated", invert=False):
    return {"type": "Split", "pattern": {"Regex": pattern}, "behavior": behavior, "invert": invert}


VARIANTS = {
    "prefix space": {"pre_tokenizer": {**BYTES, "add_prefix_space": True, "use_regex": True}},
    "no regex": {"pre_tokenizer": BYTES},
    "digits with prefix space": {"pre_tokenizer": sequence(DIGITS, {**BYTES, "add_prefix_space": True})},
    "gpt-4 pattern": {"pre_tokenizer": sequence(regex(GPT4), BYTES)},
    "gpt-4 pattern, merges ignored": {"pre_tokenizer": sequence(regex(GPT4), BYTES), "ignore_merges": True},
    "nested": {"pre_tokenizer": sequence(sequence(regex(r"\p{N}{1,3}"), regex(r"\s+")), BYTES)},
    "empty matches": {"pre_tokenizer": sequence(regex(r"x*"), BYTES)},
    "inverted": {"pre_tokenizer": sequence(regex(r"\p{L}+", "Removed", True), BYTES)},
    **{f"split {b}": {"pre_tokenizer": sequence({**SPLIT, "behavior": b}, BYTES)}
       for b in ("Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous")},
    **{f"split inverted {b}": {"pre_tokenizer": sequence({**SPLIT, "behavior": b, "invert": True}, BYTES)}
       for b in ("MergedWithPrevious", "MergedWithNext", "Contiguous")},
}


def train(pre_tokenizer, special, vocabulary):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizer
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=vocabulary, special_tokens=special, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
                                  show_progress=False)
    tokenizer.train_from_iterator(CORPUS, trainer)
    return tokenizer


def lines(value, depth):
    """Compact JSON, with a line for each entry of the outer `depth` levels."""
    if depth == 0 or not isinstance(value, (dict, list)) or not value:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    if isinstance(value, dict):
        return "{" + ",\n".join(json.dumps(key) + ":" + lines(inner, depth - 1) for key, inner in value.items()) + "}"
    return "[" + ",\n".join(lines(inner, depth - 1) for inner in value) + "]"


def write(path, value, depth):
    path.write_text(lines(value, depth) + "\n")


def cases(tokenizer, texts):
    rows = []
    for text in texts:
        ids = tokenizer.encode(text, add_special_tokens=False).ids
        rows.append({"text": text, "ids": ids, "decoded": tokenizer.decode(ids, skip_special_tokens=False),
                     "decoded_without_special": tokenizer.decode(ids, skip_special_tokens=True)})
    return rows


def main():
    gpt2 = json.loads(train(pre_tokenizers.ByteLevel(add_prefix_space=False), ["<|endoftext|>"], 400).to_str())
    gpt2["model"]["merges"] = [" ".join(pair) for pair in gpt2["model"]["merges"]]
    write(FOLDER / "gpt2.json", gpt2, 2)

    digits = pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)])
    starcoder = train(digits, ["<|endoftext|>", "<fim_prefix>", "<fim_middle>", "<fim_suffix>"], 420)
    starcoder.add_special_tokens([AddedToken("<fim_prefix_long>", normalized=False)])
    starcoder.add_tokens([AddedToken("word", normalized=True), AddedToken("words", normalized=True), AddedToken("  ", normalized=False)])
    write(FOLDER / "starcoder.json", json.loads(starcoder.to_str()), 2)

    expected = {"gpt2.json": cases(Tokenizer.from_file(str(FOLDER / "gpt2.json")), TEXTS),
                "starcoder.json": cases(Tokenizer.from_file(str(FOLDER / "starcoder.json")), TEXTS)}
    variants = []
    for name, change in VARIANTS.items():
        changed = {**gpt2, "pre_tokenizer": change["pre_tokenizer"], "model": {**gpt2["model"], "ignore_merges": change.get("ignore_merges", False)}}
        tokenizer = Tokenizer.from_str(json.dumps(changed))
        # Only the ids: the texts are TEXTS, in order.
        variants.append({"name": name, **change, "ids": [tokenizer.encode(text, add_special_tokens=False).ids for text in TEXTS]})
    write(FOLDER / "expected.json", {"files": expected, "variants": variants}, 3)


if __name__ == "__main__":
    main()
