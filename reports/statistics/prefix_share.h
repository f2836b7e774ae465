// Arms that are asked for the same with different shares of their prompts in a prefix store.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace decodelab {

/// The setting of an arm's request that says how much of each prompt a prefix store holds.
inline constexpr std::string_view kPrefixSetting = "@prefix=";

/// Returns the share of each prompt that a prefix store holds for an arm, from its label; empty: there is no store.
std::optional<double> prefix_share(std::string_view label);

/// Returns the label without that share: what arms that differ in nothing else have in common. The kind of prompts, if
/// it is named, stands behind it: `native (turns)`.
std::string without_prefix_share(std::string_view label);

}  // namespace decodelab
