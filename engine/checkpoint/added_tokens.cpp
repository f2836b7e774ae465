// The tokens of a tokenizer.json that are matched in the text before anything else.
#include "engine/checkpoint/added_tokens.h"

#include <algorithm>
#include <functional>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "engine/checkpoint/tokenizer_part.h"

namespace decodelab {

using nlohmann::json;

AddedTokens::AddedTokens(const json& list, const TokenModel& model, const Normalizer& normalizer,
                         const std::string& file_name) {
  if (list.is_null()) {
    return;
  }
  const TokenizerPart part("added_tokens", file_name);
  if (!list.is_array()) {
    part.refuse("a list", list);
  }
  std::set<std::string> contents;
  auto next_id = static_cast<std::int64_t>(model.bytes_of().size());
  for (const json& token : list) {
    const auto id = token.is_object() ? token.find("id") : token.end();
    const auto content = token.is_object() ? token.find("content") : token.end();
    if (id == token.end() || !id->is_number_unsigned() || id->get<std::uint64_t>() > kMaxId || content == token.end() ||
        !content->is_string() || content->get_ref<const std::string&>().empty()) {
      part.refuse(fmt::format("an id from 0 to {} and a content", kMaxId), token);
    }
    for (const char* key : {"lstrip", "rstrip", "single_word"}) {
      if (part.flag(token, key)) {
        part.refuse(
            fmt::format("tokens that match their content alone ('{}' false); give token ids with --prompt-ids", key),
            token);
      }
    }
    Candidate candidate{.content = content->get<std::string>(), .id = id->get<std::int64_t>()};
    const std::int64_t known = model.id_of(candidate.content);
    // Hugging Face's tokenizers number tokens outside of the vocabulary themselves, whatever the file says.
    const std::int64_t expected = known >= 0 ? known : next_id++;
    if (candidate.id != expected) {
      part.refuse(fmt::format("the id {} for {}", expected, in_quotes(candidate.content)), *id);
    }
    if (!contents.insert(candidate.content).second || model.bytes_of().contains(candidate.id) != (known >= 0)) {
      part.refuse("every token and every id once", token);
    }
    by_id_.emplace(candidate.id, Token{.content = candidate.content, .special = part.flag(token, "special")});
    const bool of_normalized = part.flag(token, "normalized");
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
