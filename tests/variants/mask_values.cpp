// Answers tests/variants/masks_oracle_test.py: which tokens may come behind a text, and what it takes to find out.
#include <chrono>
#include <functional>
#include <iostream>
#include <stdexcept>
#include <string>

#include <nlohmann/json.hpp>

#include "engine/masks/token_mask.h"
#include "variants/registry.h"

namespace decodelab {
namespace {

std::string from_hex(const std::string& hex) {
  std::string bytes;
  for (std::size_t at = 0; at + 1 < hex.size(); at += 2) {
    bytes += static_cast<char>(std::stoi(hex.substr(at, 2), nullptr, 16));
  }
  return bytes;
}

std::int64_t nanoseconds(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::nanoseconds(std::chrono::steady_clock::now() - start).count();
}

std::shared_ptr<TokenMask> make_mask(const std::string& variant, const TokenMaskOptions& options) {
  if (variant == "scan-masks") {
    return make_scan_masks(options);
  }
  EnginePlan plan;
  registered_variants().at(variant).apply(plan, {});
  return plan.token_mask.factory()(options);
}

/// For each text (in hex) the ids that may come, null where no matching text begins so; whether the text matches; and
/// nanoseconds: of the pattern, of each mask when it is first found, and of finding it again.
nlohmann::json answer(const nlohmann::json& query, const std::shared_ptr<const MaskVocabulary>& vocabulary) {
  std::shared_ptr<TokenMask> mask;
  nlohmann::json result{{"masks", nlohmann::json::array()}, {"matches", nlohmann::json::array()}};
  try {
    result["pattern_ns"] = nanoseconds(
        [&] { mask = make_mask(query.value("variant", "cached-trie-masks"), {query.at("pattern"), vocabulary}); });
    MaskBits bits(std::ssize(vocabulary->bytes()));
    for (const nlohmann::json& text : query.at("texts")) {
      const TokenMask::State state = mask->behind(mask->start(), from_hex(text));
      if (state == nullptr) {
        result["masks"].push_back(nullptr);
        result["matches"].push_back(false);
        continue;
      }
      result["mask_ns"].push_back(nanoseconds([&] { mask->find_allowed(*state, bits); }));
      result["again_ns"].push_back(nanoseconds([&] { mask->find_allowed(*state, bits); }));
      result["masks"].push_back(bits.words());
      result["matches"].push_back(state->accepting());
    }
  } catch (const std::invalid_argument& error) {
    return {{"error", error.what()}};
  }
  return result;
}

int answer_all() {
  std::shared_ptr<const MaskVocabulary> vocabulary;
  for (std::string line; std::getline(std::cin, line);) {
    const nlohmann::json query = nlohmann::json::parse(line);
    if (query.contains("tokens")) {
      std::vector<std::string> tokens;
      for (const nlohmann::json& token : query.at("tokens")) {
        tokens.push_back(from_hex(token));
      }
      const std::int64_t took = nanoseconds(
          [&] { vocabulary = std::make_shared<const MaskVocabulary>(std::move(tokens), std::vector<std::int64_t>()); });
      std::cout << nlohmann::json{{"vocabulary_ns", took}} << std::endl;
    } else {
      std::cout << answer(query, vocabulary) << std::endl;
    }
  }
  return 0;
}

}  // namespace
}  // namespace decodelab

int main() { return decodelab::answer_all(); }
