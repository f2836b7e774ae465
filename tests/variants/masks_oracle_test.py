"""Masks of patterns against llguidance and Outlines, bit for bit along texts of allowed tokens.

Differences that are theirs, each checked by its cause: where the next byte is forced, llguidance allows the one token that its tokenizer
would make; Outlines leaves out tokens that run through a match and end where none is, so that `[0-9]+(e[0-9]+)?` never gets `4e`. What
\\d and \\w are follows the Unicode version of each library, so that texts here have no characters that are newer than PCRE2.

`python3 masks_oracle_test.py VOCABULARY.gguf` prints times of all three on a real vocabulary instead.
"""

import json
import os
import random
import re
import subprocess
import sys
import time
import unittest

import llguidance
from outlines_core import Guide, Index, Vocabulary

PROGRAM = os.environ.get("MASK_VALUES", os.path.join(os.path.dirname(__file__), "../../build/release/mask_values"))
# Patterns that all three read alike.
PATTERNS = (
    r"[a-z]+",
    r"(abc|ab|b)*c",
    r"[^\n]{0,40}END",
    r"-?(0|[1-9][0-9]*)(\.[0-9]{1,6})?([eE][+-]?[0-9]+)?",
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}",
    r'\{"name": "[^"\\\x00-\x1f]{1,20}", "age": [0-9]{1,3}\}',
    r"(The|A) [a-z ]+\.",
    r"é+[ -~]*",
    r"[^a]*",
    r".*",
    r"(.|\n)*ing",
    r"[\w.]+@[\w]+\.(com|org)",
    r"\s*(yes|no)\s*",
    r"[αβγ]{2,5}|😀+",
    r"((25[0-5]|2[0-4][0-9]|1?[0-9]?[0-9])\.){3}(25[0-5]|2[0-4][0-9]|1?[0-9]?[0-9])",
    r"\W\S\D",
)
STEPS = 12


def make_tokens():
    """Every byte, and pieces of texts as a tokenizer might have them; the last one ends a text."""
    rng = random.Random(5)
    text = "The quick brown fox's naïve café costs 12.50 at 2026-11-25T10:30 {\"name\": \"Ann\", \"age\": 7} αβγ 😀 yes no END abc ab\n\t"
    data = text.encode()
    tokens = {bytes([byte]) for byte in range(256)}
    for _ in range(4000):
        begin, length = rng.randrange(len(data)), rng.randint(2, 9)
        tokens.add(data[begin:begin + length])
    for piece in ("ing", "  ", ".com", "@", "😀😀", "12", "00", "123", "\": ", "éé", "ab", "abc", "cab"):
        tokens.add(piece.encode())
    while len(tokens) < 2999:
        tokens.add(bytes(rng.choice(b"abcdefghijklmnopqrstuvwxyz0123456789 .-:\"") for _ in range(rng.randint(2, 4))))
    return sorted(tokens)


class Ours:
    def __init__(self, tokens):
        self.process = subprocess.Popen([PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.vocabulary_ns = self.ask({"tokens": [token.hex() for token in tokens]})["vocabulary_ns"]

    def ask(self, query):
        self.process.stdin.write(json.dumps(query) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def close(self):
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait()


def ids_of(words):
    return {32 * index + bit for index, word in enumerate(words) if word for bit in range(32) if word >> bit & 1}


class LlguidanceTokens:
    """What llguidance's tokenizer is made of. The id behind all tokens ends a text."""

    def __init__(self, tokens):
        self.eos_token_id, self.bos_token_id = len(tokens), None
        self.tokens = [*tokens, b"<|end|>"]
        self.single = {token[0]: index for index, token in enumerate(tokens) if len(token) == 1}
        self.special_token_ids = [len(tokens)]

    def __call__(self, text):
        return [self.single[byte] for byte in (text if isinstance(text, bytes) else text.encode())]


def llguidance_of(tokens):
    return llguidance.LLTokenizer(llguidance.TokenizerWrapper(LlguidanceTokens(tokens)))


def words_of(mask):
    return [int.from_bytes(mask[at:at + 4], "little") for at in range(0, len(mask), 4)]


def outlines_vocabulary(tokens):
    return Vocabulary(len(tokens), {token: [index] for index, token in enumerate(tokens)})


class Masks(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.tokens = make_tokens()
        cls.ours = Ours(cls.tokens)

    @classmethod
    def tearDownClass(cls):
        cls.ours.close()

    def walks(self):
        """For each pattern some texts of allowed tokens, with our masks at each step."""
        rng = random.Random(3)
        for pattern in PATTERNS:
            for _ in range(3):
                text, path = b"", []
                for _ in range(STEPS):
                    answer = self.ours.ask({"pattern": pattern, "texts": [text.hex()]})
                    self.assertNotIn("error", answer, pattern)
                    allowed = ids_of(answer["masks"][0])
                    path.append((allowed, answer["matches"][0]))
                    if not allowed:
                        break
                    chosen = rng.choice(sorted(allowed))
                    path[-1] += (chosen,)
                    text += self.tokens[chosen]
                yield pattern, path

    def test_are_those_of_llguidance(self):
        tokenizer = llguidance_of(self.tokens)
        compared, forced = 0, 0
        for pattern, path in self.walks():
            matcher = llguidance.LLMatcher(tokenizer, llguidance.LLMatcher.grammar_from_regex(pattern))
            for allowed, matches, *chosen in path:
                if matcher.is_stopped():  # It ends where nothing but the end may come.
                    self.assertTrue(matches and not allowed, pattern)
                    break
                theirs = ids_of(words_of(matcher.compute_bitmask()))
                self.assertEqual(len(self.tokens) in theirs, matches, pattern)
                theirs.discard(len(self.tokens))
                if theirs != allowed and not matches and len({self.tokens[index][0] for index in allowed}) == 1:
                    self.assertEqual(len(theirs), 1, pattern)
                    self.assertLess(theirs, allowed, pattern)
                    forced += 1
                else:
                    self.assertEqual(theirs, allowed, pattern)
                compared += 1
                if chosen and chosen[0] not in theirs:
                    break  # It would not go on with a token that it did not allow.
                if chosen:
                    self.assertTrue(matcher.consume_token(chosen[0]), matcher.get_error())
        self.assertGreater(compared, 300)
        print(f"{compared} masks compared with llguidance, {forced} of them where the next byte is forced", file=sys.stderr)

    def test_are_those_of_outlines(self):
        vocabulary = outlines_vocabulary(self.tokens)
        indexes, compared, left_out = {}, 0, 0
        for pattern, path in self.walks():
            if pattern not in indexes:
                indexes[pattern] = Index(pattern, vocabulary)
            index = indexes[pattern]
            state = index.get_initial_state()
            text = b""
            for allowed, matches, *chosen in path:
                theirs = set(index.get_allowed_tokens(state) or ())
                self.assertEqual(index.is_final_state(state), matches, pattern)
                theirs.discard(len(self.tokens))
                self.assertLessEqual(theirs, allowed, pattern)
                for token in allowed - theirs:
                    self.assertTrue(self.runs_through_a_match(pattern, text, self.tokens[token]), (pattern, text, self.tokens[token]))
                    left_out += 1
                compared += 1
                if not chosen or chosen[0] not in theirs:
                    break
                state = index.get_next_state(state, chosen[0])
                text += self.tokens[chosen[0]]
        self.assertGreater(compared, 300)
        print(f"{compared} masks compared with Outlines, which leaves out {left_out} tokens that run through a match", file=sys.stderr)

    @staticmethod
    def runs_through_a_match(pattern, text, token):
        def matches(data):
            try:
                return re.fullmatch(pattern, data.decode()) is not None
            except UnicodeDecodeError:
                return False
        return not matches(text + token) and any(matches(text + token[:end]) for end in range(len(token)))

    def test_are_found_for_patterns_that_index_builders_take_seconds_for(self):
        for pattern, text in ((r"[^\n]{0,500}END", b"x" * 200), (r"(a|aa){200}", b"a" * 150), (r".*a.{20}", b"bab" * 100)):
            start = time.monotonic()
            answer = self.ours.ask({"pattern": pattern, "texts": [text[:end].hex() for end in range(0, len(text), 7)]})
            self.assertNotIn("error", answer)
            self.assertTrue(all(any(words) for words in answer["masks"]), pattern)
            self.assertLess(time.monotonic() - start, 20)


def print_times(file):
    """Times on the vocabulary of a GGUF file, in microseconds, each the median of several masks along a text."""
    import gguf

    alphabet = {}
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    for byte in range(256):
        alphabet[chr(byte) if byte in printable else chr(256 + sum(other not in printable for other in range(byte)))] = byte
    names = gguf.GGUFReader(file).fields["tokenizer.ggml.tokens"].contents()
    tokens = [bytes(alphabet[c] for c in name) if all(c in alphabet for c in name) and not name.startswith("<|") else b"" for name in names]
    filled = [token or bytes([255, 255, index % 256, index // 256]) for index, token in enumerate(tokens)]
    ours, tokenizer = Ours(filled), llguidance_of(filled)
    median = lambda values: sorted(values)[len(values) // 2] / 1000  # noqa: E731
    print(f"{len(filled)} tokens; our tree once: {ours.vocabulary_ns / 1e6:.0f} ms; times in us")
    print(f"{'pattern':60} {'ours: first':>12} {'new state':>10} {'seen':>7} {'llguidance: first':>18} {'new state':>10} {'seen':>7}")
    texts = {PATTERNS[0]: b"thequickbrownfox", PATTERNS[2]: b"some words before it", PATTERNS[3]: b"-12.5e", PATTERNS[5]: b'{"name": "Ann Lee", "age": 7',
             PATTERNS[6]: b"The quick brown", PATTERNS[9]: b"anything at all", PATTERNS[11]: b"ann.lee@example", PATTERNS[14]: b"192.168.1",
             r"[^\n]{0,500}END": b"some words before it"}
    for pattern, text in texts.items():
        places = [text[:end] for end in range(len(text) + 1)]
        answers = [ours.ask({"pattern": pattern, "texts": [place.hex() for place in places]}) for _ in range(3)]
        first = [a["pattern_ns"] + a["mask_ns"][0] for a in answers]
        new = [ns for a in answers for ns in a["mask_ns"][1:]]
        seen = [ns for a in answers for ns in a["again_ns"]]
        their_first, their_new, their_seen = [], [], []
        single = {token: index for index, token in enumerate(filled) if len(token) == 1}
        for _ in range(3):
            start = time.perf_counter_ns()
            matcher = llguidance.LLMatcher(tokenizer, llguidance.LLMatcher.grammar_from_regex(pattern))
            matcher.compute_bitmask()
            their_first.append(time.perf_counter_ns() - start)
            for byte in text:
                matcher.consume_token(single[bytes([byte])])
                for times in (their_new, their_seen):
                    start = time.perf_counter_ns()
                    matcher.compute_bitmask()
                    times.append(time.perf_counter_ns() - start)
        print(f"{pattern:60} {median(first):12.0f} {median(new):10.1f} {median(seen):7.2f} {median(their_first):18.0f} {median(their_new):10.1f} {median(their_seen):7.2f}")
    ours.close()


if __name__ == "__main__":
    print_times(sys.argv[1])
