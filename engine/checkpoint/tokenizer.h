// Converts text to token ids and back, as a tokenizer.json says.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/checkpoint/prompt_affixes.h"

namespace decodelab {

/// Implements BPE (Sennrich 2016, arXiv:1508.07909), over bytes as GPT-2's and over characters as Llama 2's, and
/// SentencePiece's unigram model (Kudo 2018, arXiv:1804.10959) as T5's, as Hugging Face's tokenizers save them.
class Tokenizer {
 public:
  /// Reads a tokenizer.json. Throws std::invalid_argument naming the file when it is malformed, or when it has a part
  /// of a kind that this one does not know (Normalizer, PreTokenizer, TokenModel, TokenDecoder, PromptAffixes),
  /// dropout, or added tokens with lstrip, rstrip or single_word, all of which would change ids: the message names what
  /// was found and what can be used instead (--prompt-ids). It does not read truncation and padding, which are settings
  /// of a batch.
  static Tokenizer load(const std::filesystem::path& file);
  /// Reads the text of a tokenizer.json; `file_name` is only for messages.
  static Tokenizer parse(std::string_view json, const std::string& file_name);
  ~Tokenizer();
  Tokenizer(Tokenizer&&) noexcept;
  Tokenizer& operator=(Tokenizer&&) noexcept;

  /// Returns the ids of `text` (UTF-8; other bytes are kept as they are, where the vocabulary has bytes). Added tokens
  /// are matched first. Without prompt_affixes(). Throws std::invalid_argument for a byte or a character that the
  /// vocabulary has no token for.
  std::vector<std::int64_t> encode(std::string_view text) const;
  /// Returns the text of `ids`, as bytes; special added tokens are left out when `skip_special`. Throws
  /// std::invalid_argument for an unknown id.
  std::string decode(std::span<const std::int64_t> ids, bool skip_special = true) const;
  /// Returns the text of `ids` behind another text, without special tokens: of a vocabulary whose words begin with a
  /// space, the space of the first word stays.
  std::string decode_further(std::span<const std::int64_t> ids) const;
  /// Returns the tokens that stand around those of a prompt.
  const PromptAffixes& prompt_affixes() const;
  /// Returns one more than the largest id; a model's vocabulary may be padded to more.
  std::int64_t size() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
  explicit Tokenizer(std::unique_ptr<Impl> impl);
};

}  // namespace decodelab
