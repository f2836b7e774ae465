// Compares tokens and logits step by step and words the first difference.
#include "bench/measure/verification.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <span>
#include <stdexcept>

#include <fmt/format.h>

namespace decodelab {
namespace {

struct DtypeRule {
  std::string_view name;
  std::string_view short_name;
  double tolerance;
};

/// The one place where tolerances of whole models stand.
///
/// fp32: other orders of summation move logits by about 1e-6 to 1e-4, wrong arithmetic (TF32, a missing scale) by more
/// than 1e-3. 16-bit: every layer rounds to 11 (fp16) or 8 (bf16) significant bits, 4.9e-4 and 3.9e-3 at most each; the
/// errors of tens of layers add up like a random walk, to some units of it. Two right implementations each stand so far
/// from the exact result, in directions of their own: the limit is twice what the reference's own logits of 24 layers
/// (SantaCoder's shape) were seen to be off by in bf16, 0.015 of the largest.
constexpr std::array<DtypeRule, 3> kRules = {{
    {"float32", "fp32", 1e-3},
    {"float16", "fp16", 5e-3},
    {"bfloat16", "bf16", 3e-2},
}};

const DtypeRule& rule_of(std::string_view dtype) {
  const auto* const rule = std::find_if(
      kRules.begin(), kRules.end(), [&](const DtypeRule& row) { return row.name == dtype || row.short_name == dtype; });
  if (rule == kRules.end()) {
    throw std::invalid_argument(fmt::format(
        "verification: '{}' is no dtype it has a tolerance for; expected float32, float16 or bfloat16.", dtype));
  }
  return *rule;
}

/// The id of a row's largest logit, its distance to the second largest, and the scale of the row; of equal logits the
/// first counts as larger.
struct RowShape {
  std::size_t top = 0;
  double gap =
      std::numeric_limits<double>::infinity();  ///< Largest minus second largest; infinite in a vocabulary of one.
  double scale = 0;                             ///< max|b|.
};

/// Returns nothing where a value is NaN or infinite.
std::optional<RowShape> shape_of(std::span<const float> row) {
  RowShape shape;
  double second = -std::numeric_limits<double>::infinity();
  for (std::size_t id = 0; id < row.size(); ++id) {
    const double value = row[id];
    if (!std::isfinite(value)) {
      return std::nullopt;
    }
    shape.scale = std::max(shape.scale, std::abs(value));
    if (id > 0 && value > row[shape.top]) {
      second = row[shape.top];
      shape.top = id;
    } else if (id > 0) {
      second = std::max(second, value);
    }
  }
  shape.gap = row[shape.top] - second;
  return shape;
}

double relative_error(std::span<const float> candidate, std::span<const float> reference, double scale) {
  double largest = 0;
  for (std::size_t id = 0; id < reference.size(); ++id) {
    largest = std::max(largest, std::abs(static_cast<double>(candidate[id]) - static_cast<double>(reference[id])));
  }
  if (largest == 0) {
    return 0;
  }
  return scale > 0 ? largest / scale : std::numeric_limits<double>::infinity();
}

/// Returns the Kullback-Leibler divergence of softmax(a) from softmax(b), in nats: sum of p_b (log p_b - log p_a).
/// Never below 0, as in exact arithmetic.
double kl_divergence(std::span<const float> b, std::span<const float> a, double largest_b, double largest_a) {
  double sum_b = 0;
  double sum_a = 0;
  double weighted = 0;  // by exp(b - largest), not yet by p
  for (std::size_t id = 0; id < b.size(); ++id) {
    const double of_b = b[id] - largest_b;
    const double of_a = a[id] - largest_a;
    const double weight = std::exp(of_b);
    sum_b += weight;
    sum_a += std::exp(of_a);
    weighted += weight * (of_b - of_a);
  }
  return std::max(0.0, weighted / sum_b - std::log(sum_b) + std::log(sum_a));
}

/// Returns what is wrong with the dimensions of one trace; empty if nothing.
std::string malformed(const OutputTrace& trace, const char* who) {
  const auto rows = static_cast<std::size_t>(trace.batch);
  if (trace.batch < 1 || trace.tokens.empty()) {
    return fmt::format("The {} has {} steps of {} rows; expected at least one of each.", who, trace.tokens.size(),
                       trace.batch);
  }
  for (std::size_t step = 0; step < trace.tokens.size(); ++step) {
    if (trace.tokens[step].size() != rows) {
      return fmt::format("The {} has {} tokens at step {}; expected one for each of {} rows.", who,
                         trace.tokens[step].size(), step, rows);
    }
  }
  if (!trace.logits.empty() && (trace.logits.size() != trace.tokens.size() || trace.vocabulary < 1)) {
    return fmt::format("The {} has logits of {} steps and {} ids; expected {} steps and at least one id.", who,
                       trace.logits.size(), trace.vocabulary, trace.tokens.size());
  }
  for (std::size_t step = 0; step < trace.logits.size(); ++step) {
    if (trace.logits[step].size() != rows * static_cast<std::size_t>(trace.vocabulary)) {
      return fmt::format("The {} has {} logits at step {}; expected {} rows of {}.", who, trace.logits[step].size(),
                         step, rows, trace.vocabulary);
    }
  }
  return {};
}

std::string shape_difference(const OutputTrace& reference, const OutputTrace& candidate) {
  if (std::string what = malformed(reference, "reference"); !what.empty()) {
    return what;
  }
  if (std::string what = malformed(candidate, "arm"); !what.empty()) {
    return what;
  }
  if (reference.batch != candidate.batch || reference.tokens.size() != candidate.tokens.size()) {
    return fmt::format("The arm has {} steps of {} rows; expected {} steps of {} rows as in the reference.",
                       candidate.tokens.size(), candidate.batch, reference.tokens.size(), reference.batch);
  }
  if (reference.logits.size() != candidate.logits.size() ||
      (!reference.logits.empty() && reference.vocabulary != candidate.vocabulary)) {
    return fmt::format("The arm has logits of {} steps and {} ids; expected {} steps and {} ids as in the reference.",
                       candidate.logits.size(), candidate.vocabulary, reference.logits.size(), reference.vocabulary);
  }
  return {};
}

/// Compares all rows, one after the other, by either rule; `step_` and `row_` are those of the current row.
class OutputComparison {
 public:
  /// Two logits of the reference tie that are closer than twice `rounding` of the largest.
  OutputComparison(const OutputTrace& reference, const OutputTrace& candidate, DtypeRule rule, bool free_running,
                   double rounding)
      : reference_(reference), candidate_(candidate), rule_(rule), free_running_(free_running), rounding_(rounding) {}

  VerificationResult run() {
    result_.difference = shape_difference(reference_, candidate_);
    if (result_.difference.empty() && reference_.logits.empty() && !free_running_) {
      result_.difference = fmt::format(
          "Neither run has logits; expected those of every step, for in {} tokens alone prove nothing.", rule_.name);
    }
    for (step_ = 0; step_ < reference_.tokens.size() && result_.difference.empty(); ++step_) {
      for (row_ = 0; row_ < reference_.tokens[step_].size() && result_.difference.empty(); ++row_) {
        result_.difference = compare_row();
      }
    }
    result_.correct = result_.difference.empty();
    return result_;
  }

 private:
  std::string place() const { return fmt::format("Step {}, row {}", step_, row_); }

  std::span<const float> row_of(const OutputTrace& trace) const {
    const auto width = static_cast<std::size_t>(trace.vocabulary);
    return std::span(trace.logits[step_]).subspan(row_ * width, width);
  }

  std::string compare_row() {
    const std::int64_t expected = reference_.tokens[step_][row_];
    const std::int64_t chosen = candidate_.tokens[step_][row_];
    if (reference_.logits.empty()) {
      return compare_tokens(expected, chosen);
    }
    const std::optional<RowShape> b = shape_of(row_of(reference_));
    const std::optional<RowShape> a = shape_of(row_of(candidate_));
    if (!a || !b) {
      return fmt::format("{}: the {} has a logit that is NaN or infinite.", place(), a ? "reference" : "arm");
    }
    const double error = relative_error(row_of(candidate_), row_of(reference_), b->scale);
    result_.worst = std::max(result_.worst, error);
    std::string difference =
        free_running_ ? compare_tokens(expected, chosen) : compare_choices(expected, chosen, *a, *b);
    if (free_running_ && !difference.empty()) {
      result_.near_tie =
          error <= rule_.tolerance && b->gap < tie_limit(*b) && chosen == static_cast<std::int64_t>(a->top);
    }
    if (difference.empty() && error > rule_.tolerance) {
      return fmt::format("{}: logits differ by {:.2g} of the largest; expected at most {:.2g} in {}.", place(), error,
                         rule_.tolerance, rule_.name);
    }
    return difference;
  }

  double tie_limit(const RowShape& b) const { return 2 * rounding_ * b.scale; }

  std::string compare_tokens(std::int64_t expected, std::int64_t chosen) const {
    return expected == chosen ? std::string()
                              : fmt::format("{}: the arm chose id {}, the reference id {}.", place(), chosen, expected);
  }

  std::string compare_choices(std::int64_t expected, std::int64_t chosen, const RowShape& a, const RowShape& b) {
    const std::span<const float> logits = row_of(candidate_);
    const bool known = chosen >= 0 && chosen < candidate_.vocabulary;
    if (chosen != expected && (!known || logits[static_cast<std::size_t>(chosen)] != logits[a.top])) {
      return fmt::format("{}: the arm chose id {}, though its largest logit is at id {}; the reference chose id {}.",
                         place(), chosen, a.top, expected);
    }
    // Equal largest logits are not another choice: which of them is named first is chance.
    if (logits[b.top] == logits[a.top]) {
      return {};
    }
    const double limit = tie_limit(b);
    if (b.gap < limit) {
      ++result_.ties;
      return {};
    }
    return fmt::format(
        "{}: the arm's largest logit is at id {}, the reference's at id {} by a gap of {:.3g}; expected the same id "
        "above {:.3g}.",
        place(), a.top, b.top, b.gap, limit);
  }

  const OutputTrace& reference_;
  const OutputTrace& candidate_;
  DtypeRule rule_;
  bool free_running_;
  double rounding_;
  VerificationResult result_;
  std::size_t step_ = 0;
  std::size_t row_ = 0;
};

}  // namespace

std::optional<Agreement> agreement_of(const OutputTrace& reference, const OutputTrace& candidate) {
  if (reference.logits.empty() || !shape_difference(reference, candidate).empty()) {
    return std::nullopt;
  }
  const auto width = static_cast<std::size_t>(reference.vocabulary);
  Agreement agreement;
  std::size_t rows = 0;
  for (std::size_t step = 0; step < reference.logits.size(); ++step) {
    for (std::size_t at = 0; at < reference.logits[step].size(); at += width, ++rows) {
      const auto b = std::span(reference.logits[step]).subspan(at, width);
      const auto a = std::span(candidate.logits[step]).subspan(at, width);
      const std::optional<RowShape> b_shape = shape_of(b);
      const std::optional<RowShape> a_shape = shape_of(a);
      if (!a_shape || !b_shape) {
        return std::nullopt;
      }
      agreement.logit_error = std::max(agreement.logit_error, relative_error(a, b, b_shape->scale));
      agreement.kl_divergence += kl_divergence(b, a, b[b_shape->top], a[a_shape->top]);
      agreement.top_1_agreement += a[b_shape->top] == a[a_shape->top] ? 1 : 0;
    }
  }
  agreement.kl_divergence /= static_cast<double>(rows);
  agreement.top_1_agreement /= static_cast<double>(rows);
  return agreement;
}

double logit_tolerance(std::string_view dtype) { return rule_of(dtype).tolerance; }

VerificationResult compare_free_running(const OutputTrace& reference, const OutputTrace& candidate) {
  return OutputComparison(reference, candidate, rule_of("float32"), true, kRoundingOfFp32).run();
}

VerificationResult compare_after_near_tie(const OutputTrace& reference, const OutputTrace& candidate) {
  return OutputComparison(reference, candidate, rule_of("float32"), false, kRoundingOfFp32).run();
}

VerificationResult compare_teacher_forced(const OutputTrace& reference, const OutputTrace& candidate,
                                          std::string_view dtype, double bound) {
  DtypeRule rule = rule_of(dtype);
  rule.tolerance = std::max(rule.tolerance, bound);
  return OutputComparison(reference, candidate, rule, false, rule.tolerance).run();
}

VerificationResult compare_with_exact(const OutputTrace& exact, const OutputTrace& reference,
                                      const OutputTrace& candidate, std::string_view dtype, double bound) {
  DtypeRule rule = rule_of(dtype);
  rule.tolerance = std::max(rule.tolerance, bound);
  if (const std::optional<Agreement> rounding = agreement_of(exact, reference)) {
    rule.tolerance =
        std::max(rule.tolerance, std::min(kRoundingOfTheReference * rounding->logit_error, kMostExcusedError));
  }
  return OutputComparison(exact, candidate, rule, false, rule.tolerance).run();
}

}  // namespace decodelab
