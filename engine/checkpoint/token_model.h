// How the words of a text become ids: what the model of a tokenizer.json does.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace decodelab {

/// The largest id of a token: Hugging Face's ids have 32 bits, and no vocabulary has a billion tokens.
inline constexpr std::uint64_t kMaxId = (std::uint64_t{1} << 31) - 1;

/// What the tokens of a vocabulary are spelled in.
enum class Spelling : std::uint8_t {
  bytes,       ///< GPT-2's alphabet: each character is a byte.
  characters,  ///< The characters of the text.
};

/// Gives the ids of words. May be used by several threads.
class TokenModel {
 public:
  virtual ~TokenModel() = default;

  /// Appends the ids of `word`, bytes of the text. Throws std::invalid_argument for what the vocabulary has no token
  /// for.
  virtual void encode(std::string_view word, std::vector<std::int64_t>& ids) const = 0;
  /// Returns the id of a token as the file writes it; -1 when there is none.
  virtual std::int64_t id_of(const std::string& token) const = 0;
  /// Returns the bytes that every id stands for; of a vocabulary of characters, what the file writes.
  virtual const std::unordered_map<std::int64_t, std::string>& bytes_of() const = 0;
};

/// Reads the value of the key `model`. Throws std::invalid_argument, naming `file_name` and what was found, for other
/// kinds than BPE and Unigram, and for what is malformed.
std::unique_ptr<TokenModel> read_token_model(const nlohmann::json& model, Spelling spelling,
                                             const std::string& file_name);

/// The tokens that stand for single bytes, <0x00> to <0xFF>: what characters without a token become.
class ByteTokens {
 public:
  /// Looks them up in a model.
  explicit ByteTokens(const TokenModel& model);
  /// Appends the tokens of the bytes of `characters`; appends nothing and returns false where some have none.
  bool append(std::string_view characters, std::vector<std::int64_t>& ids) const;

 private:
  std::vector<std::int64_t> ids_;  ///< -1 where there is none.
};

/// Returns the byte that a token <0xAB> stands for; -1 for any other token.
int byte_of_token(std::string_view token);

}  // namespace decodelab
