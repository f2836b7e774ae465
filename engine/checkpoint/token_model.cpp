// Tells the models of a tokenizer.json apart, and knows the tokens of single bytes.
#include "engine/checkpoint/token_model.h"

#include <charconv>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "engine/checkpoint/bpe.h"
#include "engine/checkpoint/tokenizer_part.h"
#include "engine/checkpoint/unigram.h"

namespace decodelab {
namespace {

constexpr std::size_t kBytes = 256;

}  // namespace

std::unique_ptr<TokenModel> read_token_model(const nlohmann::json& model, Spelling spelling,
                                             const std::string& file_name) {
  if (kind_of(model) == "Unigram" && spelling == Spelling::characters) {
    return std::make_unique<Unigram>(model, file_name);
  }
  return std::make_unique<Bpe>(model, spelling, file_name);
}

ByteTokens::ByteTokens(const TokenModel& model) : ids_(kBytes) {
  for (std::size_t byte = 0; byte < kBytes; ++byte) {
    ids_[byte] = model.id_of(fmt::format("<0x{:02X}>", byte));
  }
}

bool ByteTokens::append(std::string_view characters, std::vector<std::int64_t>& ids) const {
  const std::size_t before = ids.size();
  for (const char byte : characters) {
    const std::int64_t id = ids_[static_cast<unsigned char>(byte)];
    if (id < 0) {
      ids.resize(before);
      return false;
    }
    ids.push_back(id);
  }
  return true;
}

int byte_of_token(std::string_view token) {
  if (token.size() != 6 || !token.starts_with("<0x") || token.back() != '>') {
    return -1;
  }
  int byte = -1;
  const char* digits = token.data() + 3;
  const auto [end, error] = std::from_chars(digits, digits + 2, byte, 16);
  return error == std::errc() && end == digits + 2 ? byte : -1;
}

}  // namespace decodelab
