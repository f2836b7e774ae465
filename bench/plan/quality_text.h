// The text that arms predict where their quality is asked for, and the limits that a quality may be held to.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/checkpoint/model_text.h"

namespace decodelab {

/// Returns the text that ships: about two thousand tokens of prose, lists, numbers and dialogue in English. It was
/// written for this purpose and stands nowhere else, so that no model has learnt it.
std::string_view quality_text();

/// The most tokens of a text that are read.
inline constexpr std::int64_t kMostQualityTokens = 4096;

/// Returns the ids of the text of `file`, or of quality_text() where it is empty, up to kMostQualityTokens. A model
/// without a tokenizer predicts as many random ids as the text has words: how arms differ can be seen on any tokens.
/// Throws std::invalid_argument for a file that cannot be read, or that has fewer tokens than one row needs.
std::vector<std::int64_t> quality_ids(const std::string& file, const ModelText& text, std::int64_t vocabulary_size,
                                      std::uint64_t seed);

/// The worst quality that an arm may have; each that is empty is not limited.
struct QualityLimit {
  std::optional<double> kl{};          ///< Mean KL divergence from the reference in fp32, in nats.
  std::optional<double> perplexity{};  ///< Over the reference's.
  std::optional<double> top_1{};       ///< Share of tokens whose most probable token is the reference's.
  bool operator==(const QualityLimit&) const = default;
};

/// Parses `kl=0.01,perplexity=1.02,top-1=0.98`, any of them. Throws std::invalid_argument naming what is wrong.
QualityLimit parse_quality_limit(std::string_view text);
/// Does the opposite; empty where nothing is limited.
std::string to_string(const QualityLimit& limit);

}  // namespace decodelab
