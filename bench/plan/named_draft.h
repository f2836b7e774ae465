// The drafts of a command line: models that guess what another one says.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace decodelab {

/// `--draft NAME=MODEL`.
struct NamedDraft {
  std::string name;
  std::string model;         ///< As typed.
  std::string checkpoint{};  ///< The directory or file that is loaded; empty until it is known.
};

/// Parses the values of --draft. A bare MODEL is called after the last part of what names it: `tiny` for
/// `synthetic:tiny`. Throws std::invalid_argument for a name that no arm can say, one that is taken, or no model.
std::vector<NamedDraft> parse_drafts(std::span<const std::string> flags);

}  // namespace decodelab
