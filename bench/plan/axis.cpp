// Expands axes such as `1,4-64x2` and refuses, in one sentence, what is not one.
#include "bench/plan/axis.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <stdexcept>
#include <system_error>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/nearest_names.h"

namespace decodelab {
namespace {

constexpr std::string_view kForms = "a number, a-b, a-b+step or a-bxfactor";

std::vector<std::string_view> split_at_commas(std::string_view text) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t comma = text.find(',');
    parts.push_back(text.substr(0, comma));
    if (comma == std::string_view::npos) {
      return parts;
    }
    text.remove_prefix(comma + 1);
  }
}

/// One part of an axis, with what its messages need.
class AxisPart {
 public:
  AxisPart(std::string_view flag, std::string_view text) : flag_(flag), text_(text) {}

  /// Adds the values of this part to `values`.
  void expand(std::int64_t minimum, std::vector<std::int64_t>& values) const {
    if (text_.empty()) {
      fail(fmt::format("is empty; expected {}", kForms));
    }
    const std::size_t dash = text_.find('-', 1);  // From 1: a leading minus belongs to the number.
    const std::int64_t first = number(text_.substr(0, dash));
    if (first < minimum) {
      fail(fmt::format("holds {}, which is too small; expected at least {}", first, minimum));
    }
    if (dash == std::string_view::npos) {
      add(first, values);
      return;
    }
    const std::string_view rest = text_.substr(dash + 1);
    const std::size_t operation = rest.find_first_of("+x*");
    const std::int64_t last = number(rest.substr(0, operation));
    if (last < first) {
      fail(fmt::format("is a range that runs backwards; expected the smaller number first, as in {}-{}", last, first));
    }
    if (operation == std::string_view::npos) {
      add_by_step(first, last, 1, values);
    } else if (rest[operation] == '+') {
      add_by_step(first, last, number(rest.substr(operation + 1)), values);
    } else {
      add_by_factor(first, last, number(rest.substr(operation + 1)), values);
    }
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw std::invalid_argument(fmt::format("{}: '{}' {}.", flag_, text_, what));
  }

  std::int64_t number(std::string_view digits) const {
    std::int64_t value = 0;
    const char* const begin = digits.data();
    const char* const end = begin + digits.size();
    const auto [rest, error] = std::from_chars(begin, end, value);
    if (error == std::errc::result_out_of_range && rest == end) {
      fail(fmt::format("holds '{}', which is too large; expected a number below 2^63", digits));
    }
    if (error != std::errc{} || rest != end) {
      fail(fmt::format("holds '{}', which is not a number; expected {}", digits, kForms));
    }
    return value;
  }

  void add(std::int64_t value, std::vector<std::int64_t>& values) const {
    if (static_cast<std::int64_t>(values.size()) >= kMaximumAxisValues) {
      fail(fmt::format("takes the list past {} values; expected fewer: use a larger step or a factor",
                       kMaximumAxisValues));
    }
    values.push_back(value);
  }

  void add_by_step(std::int64_t first, std::int64_t last, std::int64_t step, std::vector<std::int64_t>& values) const {
    if (step < 1) {
      fail(fmt::format("has the step {}; expected a step of at least 1", step));
    }
    for (std::int64_t value = first;; value += step) {
      add(value, values);
      if (static_cast<std::uint64_t>(last) - static_cast<std::uint64_t>(value) < static_cast<std::uint64_t>(step)) {
        return;
      }
    }
  }

  void add_by_factor(std::int64_t first, std::int64_t last, std::int64_t factor,
                     std::vector<std::int64_t>& values) const {
    if (factor < 2) {
      fail(fmt::format("has the factor {}; expected a factor of at least 2", factor));
    }
    if (first < 1) {
      fail(fmt::format("multiplies from {}, which never grows; expected a first number of at least 1", first));
    }
    for (std::int64_t value = first;; value *= factor) {
      add(value, values);
      if (value > last / factor) {
        return;
      }
    }
  }

  std::string_view flag_;
  std::string_view text_;
};

/// Returns the number that is all of the text, which may be infinite; 0 where there is none above 0.
double number_above_0(std::string_view text) {
  double number = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
  return parsed.ec == std::errc() && parsed.ptr == text.data() + text.size() && number > 0 ? number : 0;
}

}  // namespace

std::vector<std::int64_t> parse_axis(std::string_view flag, std::string_view text, std::int64_t minimum) {
  if (text.empty()) {
    throw std::invalid_argument(
        fmt::format("{}: the list is empty; expected {}, or several joined by commas.", flag, kForms));
  }
  std::vector<std::int64_t> values;
  for (const std::string_view part : split_at_commas(text)) {
    AxisPart(flag, part).expand(minimum, values);
  }
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
  return values;
}

std::vector<double> parse_rates(std::string_view flag, std::string_view text) {
  std::vector<double> rates;
  for (const std::string_view part : split_at_commas(text)) {
    double rate = number_above_0(part);
    if (rate == 0) {
      throw std::invalid_argument(
          fmt::format("{}: '{}' is no rate; expected numbers above 0, a second, or inf", flag, part));
    }
    rate = std::isinf(rate) ? 0 : rate;
    if (std::ranges::find(rates, rate) == rates.end()) {
      rates.push_back(rate);
    }
  }
  return rates;
}

RequestLimits parse_limits(std::string_view flag, std::string_view text) {
  RequestLimits limits;
  for (const std::string_view part : text.empty() ? std::vector<std::string_view>() : split_at_commas(text)) {
    const std::size_t equals = part.find('=');
    const std::string_view name = part.substr(0, equals);
    double* const limit = name == "ttft" ? &limits.ttft_ms : name == "tpot" ? &limits.tpot_ms : nullptr;
    const double value = equals == std::string_view::npos ? 0 : number_above_0(part.substr(equals + 1));
    if (limit == nullptr || *limit != 0 || value == 0 || std::isinf(value)) {
      throw std::invalid_argument(
          fmt::format("{}: '{}' is no limit; expected milliseconds to the first token, for each token more, or both: "
                      "ttft=200,tpot=50",
                      flag, part));
    }
    *limit = value;
  }
  return limits;
}

std::vector<std::string> parse_words(std::string_view flag, std::string_view text,
                                     std::span<const std::string> allowed) {
  const std::string expected = fmt::format("expected one or more of {}", fmt::join(allowed, ", "));
  if (text.empty()) {
    throw std::invalid_argument(fmt::format("{}: the list is empty; {}, joined by commas.", flag, expected));
  }
  std::vector<std::string> words;
  for (const std::string_view part : split_at_commas(text)) {
    if (std::find(allowed.begin(), allowed.end(), part) == allowed.end()) {
      const std::string hint = did_you_mean(part, allowed);
      throw std::invalid_argument(fmt::format("{}: '{}' is not a word of this flag; {}{}", flag, part, expected,
                                              hint.empty() ? "." : "; " + hint));
    }
    if (std::find(words.begin(), words.end(), part) == words.end()) {
      words.emplace_back(part);
    }
  }
  return words;
}

}  // namespace decodelab
