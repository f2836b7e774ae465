// Converts text to token ids and back, by the byte-level BPE of a tokenizer.json.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace decodelab {

/// Implements byte-level BPE (Sennrich 2016, arXiv:1508.07909; byte alphabet of GPT-2), as Hugging Face's tokenizers
/// save it.
class Tokenizer {
 public:
  /// Reads a tokenizer.json. Throws std::invalid_argument naming the file when it is malformed, or when its model is
  /// not BPE or it is not byte-level (no ByteLevel pre-tokenizer): the message names the kind that was found and what
  /// can be used instead (--prompt-ids). It also refuses all that would change ids: a normalizer, other pre-tokenizers
  /// than ByteLevel, Digits and Split, dropout, added tokens with lstrip, rstrip or single_word. It does not read
  /// truncation, padding and post_processor, which are settings of a batch.
  static Tokenizer load(const std::filesystem::path& file);
  /// Reads the text of a tokenizer.json; `file_name` is only for messages.
  static Tokenizer parse(std::string_view json, const std::string& file_name);
  ~Tokenizer();
  Tokenizer(Tokenizer&&) noexcept;
  Tokenizer& operator=(Tokenizer&&) noexcept;

  /// Returns the ids of `text` (UTF-8; other bytes are kept as they are). Added tokens are matched first. No
  /// post-processor is applied. Throws std::invalid_argument for a byte that the vocabulary has no token for.
  std::vector<std::int64_t> encode(std::string_view text) const;
  /// Returns the bytes of `ids`; special added tokens are left out when `skip_special`. Throws std::invalid_argument
  /// for an unknown id.
  std::string decode(std::span<const std::int64_t> ids, bool skip_special = true) const;
  /// Returns one more than the largest id; a model's vocabulary may be padded to more.
  std::int64_t size() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
  explicit Tokenizer(std::unique_ptr<Impl> impl);
};

}  // namespace decodelab
