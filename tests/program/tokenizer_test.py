"""Models whose tokenizer.json is SentencePiece's: prompts, texts and details of a checkpoint in a directory."""

import json
import os
import unittest

from program import ProgramTest

SPACE = "\u2581"
WORDS = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), SPACE, "a", "b", f"{SPACE}a", f"{SPACE}b"]


def tokenizer():
    """A BPE of characters in the manner of Llama 2."""
    special = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    return {"version": "1.0", "added_tokens": [{"id": id, "content": WORDS[id], **special} for id in range(3)],
            "normalizer": {"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": SPACE}, {"type": "Replace", "pattern": {"String": " "}, "content": SPACE}]},
            "pre_tokenizer": None,
            "post_processor": {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}], "pair": [],
                               "special_tokens": {"<s>": {"id": "<s>", "ids": [1], "tokens": ["<s>"]}}},
            "decoder": {"type": "Sequence", "decoders": [{"type": "Replace", "pattern": {"String": SPACE}, "content": " "}, {"type": "ByteFallback"}, {"type": "Fuse"},
                                                         {"type": "Strip", "content": " ", "start": 1, "stop": 0}]},
            "model": {"type": "BPE", "unk_token": "<unk>", "fuse_unk": True, "byte_fallback": True, "vocab": {word: id for id, word in enumerate(WORDS)},
                      "merges": [f"{SPACE} a", f"{SPACE} b"]}}


class SentencePiece(ProgramTest):
    def setUp(self):
        super().setUp()
        self.model, _ = self.write_checkpoint(vocab_size=len(WORDS))
        with open(os.path.join(self.model, "tokenizer.json"), "w", encoding="utf-8") as file:
            json.dump(tokenizer(), file)

    def complete(self, *flags):
        [row] = self.run_json("generate", "-m", self.model, "--max-tokens", 5, "--ignore-eos", *flags)["completions"]
        return row

    def test_prompts_begin_with_the_token_that_the_file_puts_before_them(self):
        ids = [WORDS.index(word) for word in ("<s>", f"{SPACE}a", f"{SPACE}b", "<0xC3>", "<0xA9>")]
        self.assertEqual(self.complete("--prompt", "a b\u00e9")["token_ids"], self.complete("--prompt-ids", ",".join(map(str, ids)))["token_ids"])

    def test_texts_go_on_behind_the_prompt_with_the_space_of_their_first_word(self):
        row = self.complete("--prompt", "a", "--allow-ids", str(WORDS.index(f"{SPACE}b")), "--top-tokens", 1)
        self.assertEqual(row["text"], " b" * 5)
        self.assertEqual({token["text"] for top in self.complete("--prompt", "a", "--top-tokens", 264, "--max-top-tokens", 300)["top_tokens"] for token in top["tokens"] if token["token_id"] > 258},
                         {" ", "a", "b", " a", " b"})

    def test_patterns_see_the_spaces(self):
        text = self.complete("--prompt", "a", "--regex", "( b| a){5}")["text"].replace("a", "b")
        self.assertTrue(text.startswith(" b") and (" b" * 5).startswith(text), text)


if __name__ == "__main__":
    unittest.main()
