// The grammar of the numeric axes (--batch, --length) and of lists of words (--phase) on the command line.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "reports/statistics/batching_scope.h"

namespace decodelab {

/// Most values that one axis may name, duplicates counted; more is a slip such as `1-1000000`, not a sweep.
inline constexpr std::int64_t kMaximumAxisValues = 100'000;

/// Expands `text` by the grammar `a | a-b | a-b+step | a-bxfactor`, parts joined by commas: `1,4-64x2` is 1, 4, 8, 16,
/// 32, 64.
///
/// `*` is read as `x`. A range includes its end only where its steps meet it: `1-10x2` is 1, 2, 4, 8. The result is
/// sorted and without duplicates. Throws std::invalid_argument with one sentence that names `flag`, the part and what
/// was expected.
std::vector<std::int64_t> parse_axis(std::string_view flag, std::string_view text, std::int64_t minimum = 1);

/// Reads rates a second, numbers above 0 joined by commas; `inf`, no limit, is 0. In the order of first mention,
/// without duplicates. Throws std::invalid_argument as parse_axis() does.
std::vector<double> parse_rates(std::string_view flag, std::string_view text);

/// Reads limits of requests in milliseconds, `ttft=200,tpot=50` or one of both; empty: none. Throws
/// std::invalid_argument for anything else.
RequestLimits parse_limits(std::string_view flag, std::string_view text);

/// Splits a list at its commas, keeps the order of first mention and drops duplicates.
///
/// Throws std::invalid_argument, naming `flag` and all `allowed` words, for an empty list or a word that is not
/// allowed.
std::vector<std::string> parse_words(std::string_view flag, std::string_view text,
                                     std::span<const std::string> allowed);

}  // namespace decodelab
