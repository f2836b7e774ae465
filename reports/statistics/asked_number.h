// Arms that are asked for the same but for a number, such as the share of their prompts in a prefix store.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace decodelab {

/// Settings of an arm's request that are numbers: how much of each prompt a prefix store holds, and how many of the
/// most probable tokens are told.
inline constexpr std::string_view kPrefixSetting = "@prefix=";
inline constexpr std::string_view kTopTokensSetting = "@top-tokens=";

/// Returns the number that an arm's label has behind a setting; empty: it asks for none.
std::optional<double> asked_number(std::string_view label, std::string_view setting);

/// Returns the label without that setting: what arms that differ in nothing else have in common. What stands behind a
/// colon, as the kind of prompts, is named: `native (turns)`.
std::string without_asked(std::string_view label, std::string_view setting);

}  // namespace decodelab
