"""The text of the pair: the sources of Python's standard library, and tokens of it."""

import pathlib
import sysconfig

END = "<|endoftext|>"
EVERY = 20  # of so many files one is held out


def files():
    """The library's own sources, in one order on every machine; no packages, and no tests."""
    library = pathlib.Path(sysconfig.get_paths()["stdlib"])
    found = [path for path in library.rglob("*.py") if not {"site-packages", "dist-packages", "test", "tests", "__pycache__"} & set(path.relative_to(library).parts)]
    return sorted(found, key=lambda path: path.relative_to(library).as_posix())


def texts():
    """Text of each file, and whether it is held out."""
    for number, path in enumerate(files()):
        yield path.read_text(encoding="utf-8", errors="replace"), number % EVERY == EVERY - 1


def trained_tokenizer(folder, vocabulary):
    """A byte-level BPE of the text that is not held out; made once."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    path = folder / "tokenizer.json"
    if path.exists():
        return Tokenizer.from_file(str(path))
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=vocabulary, special_tokens=[END], initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False)
    tokenizer.train_from_iterator((text for text, is_held_out in texts() if not is_held_out), trainer)
    tokenizer.save(str(path))
    return tokenizer


def tokens_of(folder, tokenizer):
    """The ids of both parts, one file behind the other; made once."""
    import numpy

    found = {}
    for part in ("train", "held_out"):
        path = folder / f"{part}.npy"
        if not path.exists():
            ids = []
            for text, is_held_out in texts():
                if is_held_out == (part == "held_out"):
                    ids += [*tokenizer.encode(text).ids, tokenizer.token_to_id(END)]
            draft = path.with_suffix(".part.npy")
            numpy.save(draft, numpy.array(ids, numpy.uint16))
            draft.replace(path)
        found[part] = numpy.load(path)
    return found


def held_out(tokens, rows, length):
    """Rows of text that nobody was trained on, evenly spread."""
    import numpy

    begins = numpy.linspace(0, len(tokens) - length, rows).astype(int)
    return numpy.stack([tokens[begin : begin + length] for begin in begins]).astype(numpy.int64)
