// The syntax of regular expressions: a pattern as a tree.
#pragma once

#include <limits>
#include <memory>
#include <string_view>
#include <vector>

#include "engine/masks/code_points.h"

namespace decodelab {

/// A part of a pattern.
struct PatternNode {
  enum class Kind { empty, one_of, sequence, alternatives, repeated };
  static constexpr int kUnlimited = std::numeric_limits<int>::max();

  Kind kind = Kind::empty;
  CodePoints points{};                  ///< one_of
  std::vector<PatternNode> children{};  ///< sequence, alternatives; repeated has one.
  int least = 0;                        ///< repeated
  int most = 0;                         ///< repeated; kUnlimited: any number.
};

/// Parses a pattern. Throws std::invalid_argument as compile_pattern() does, but for what a tree does not show: its
/// size, and that nothing matches.
PatternNode parse_pattern(std::string_view pattern);

}  // namespace decodelab
