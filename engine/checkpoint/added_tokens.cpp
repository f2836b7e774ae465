// The tokens of a tokenizer.json that are matched in the text before anything else.
#include "engine/checkpoint/added_tokens.h"

#include <algorithm>
#include <functional>
#include <set>
#include <stdexcept>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "base/text.h"

namespace decodelab {
namespace {

using nlohmann::json;

[[noreturn]] void refuse_token(const std::string& file_name, const std::string& expected, const std::string& got) {
  throw std::invalid_argument(fmt::format("{}: added_tokens: expected {}, got {}", file_name, expected, got));
}

// Hugging Face's tokenizers write all flags and miss none when they read; a default would hide a misspelt one.
bool flag(const json& token, const char* key, const std::string& file_name) {
  const auto value = token.find(key);
  if (value == token.end() || !value->is_boolean()) {
    refuse_token(file_name, fmt::format("'{}' as true or false", key), shown(token));
  }
  return value->get<bool>();
}

}  // namespace

AddedTokens::AddedTokens(const json& list, const TokenModel& model, const Normalizer& normalizer,
                         const std::string& file_name) {
  if (list.is_null()) {
    return;
  }
  if (!list.is_array()) {
    refuse_token(file_name, "a list", shown(list));
  }
  std::set<std::string> contents;
  auto next_id = static_cast<std::int64_t>(model.bytes_of().size());
  for (const json& token : list) {
    const auto id = token.is_object() ? token.find("id") : token.end();
    const auto content = token.is_object() ? token.find("content") : token.end();
    if (id == token.end() || !id->is_number_unsigned() || id->get<std::uint64_t>() > kMaxId || content == token.end() ||
        !content->is_string() || content->get_ref<const std::string&>().empty()) {
      refuse_token(file_name, fmt::format("an id from 0 to {} and a content", kMaxId), shown(token));
    }
    for (const char* key : {"lstrip", "rstrip", "single_word"}) {
      if (flag(token, key, file_name)) {
        refuse_token(
            file_name,
            fmt::format("tokens that match their content alone ('{}' false); give token ids with --prompt-ids", key),
            shown(token));
      }
    }
    Candidate candidate{.content = content->get<std::string>(), .id = id->get<std::int64_t>()};
    const std::int64_t known = model.id_of(candidate.content);
    // Hugging Face's tokenizers number tokens outside of the vocabulary themselves, whatever the file says.
    const std::int64_t expected = known >= 0 ? known : next_id++;
    if (candidate.id != expected) {
      refuse_token(file_name, fmt::format("the id {} for {}", expected, in_quotes(candidate.content)), shown(*id));
    }
    if (!contents.insert(candidate.content).second || model.bytes_of().contains(candidate.id) != (known >= 0)) {
      refuse_token(file_name, "every token and every id once", shown(token));
    }
    by_id_.emplace(candidate.id, Token{.content = candidate.content, .special = flag(token, "special", file_name)});
    const bool of_normalized = flag(token, "normalized", file_name);
    if (of_normalized) {
      candidate.content = normalizer.normalize(candidate.content);
    }
    if (!candidate.content.empty()) {
      Matcher& matcher = of_normalized ? normalized_ : raw_;
      matcher[static_cast<unsigned char>(candidate.content.front())].push_back(candidate);
    }
  }
  for (Matcher* matcher : {&raw_, &normalized_}) {
    for (auto& candidates : *matcher) {
      std::ranges::stable_sort(candidates, std::greater<>(),
                               [](const Candidate& candidate) { return candidate.content.size(); });
    }
  }
}

std::vector<AddedTokenPiece> AddedTokens::split(const Matcher& matcher, std::string_view text) {
  std::vector<AddedTokenPiece> pieces;
  std::size_t begin = 0;
  for (std::size_t at = 0; at < text.size();) {
    const auto& candidates = matcher[static_cast<unsigned char>(text[at])];
    const auto found = std::ranges::find_if(
        candidates, [&](const Candidate& candidate) { return text.substr(at).starts_with(candidate.content); });
    if (found == candidates.end()) {
      ++at;
      continue;
    }
    if (begin != at) {
      pieces.push_back({.text = text.substr(begin, at - begin)});
    }
    pieces.push_back({.text = text.substr(at, found->content.size()), .id = found->id});
    at += found->content.size();
    begin = at;
  }
  if (begin != text.size()) {
    pieces.push_back({.text = text.substr(begin)});
  }
  return pieces;
}

}  // namespace decodelab
