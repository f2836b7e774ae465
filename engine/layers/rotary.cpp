// The reference of rotary position embeddings, and their tables.
#include "engine/layers/rotary.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

#include "engine/layers/step_rows.h"

namespace decodelab {
namespace {

/// Returns the frequencies of plain rotary embeddings, [dims / 2] fp32.
at::Tensor plain_frequencies(const RotaryRule& rule) {
  const at::Tensor exponents = at::arange(0, rule.dims, 2, at::kLong).to(at::kFloat) / static_cast<double>(rule.dims);
  return at::reciprocal(at::pow(rule.theta, exponents));
}

/// Long waves are stretched, short ones stay, those between are mixed (Llama 3.1).
at::Tensor llama3_frequencies(const RotaryRule& rule) {
  const at::Tensor plain = plain_frequencies(rule);
  const auto original = static_cast<double>(rule.original_positions);
  const at::Tensor wave = 2 * std::numbers::pi / plain;
  const at::Tensor mix =
      (original / wave - rule.low_frequency_factor) / (rule.high_frequency_factor - rule.low_frequency_factor);
  const at::Tensor mixed = (1 - mix) * plain / rule.factor + mix * plain;
  const at::Tensor is_long = wave > original / rule.low_frequency_factor;
  const at::Tensor is_short = wave < original / rule.high_frequency_factor;
  return at::where(is_long, plain / rule.factor, at::where(is_short, plain, mixed));
}

/// A ramp over the dimensions between two numbers of turns mixes stretched and plain frequencies.
at::Tensor yarn_frequencies(const RotaryRule& rule) {
  const auto dims = static_cast<double>(rule.dims);
  const auto dimension_of = [&](double turns) {
    return dims * std::log(static_cast<double>(rule.original_positions) / (turns * 2 * std::numbers::pi)) /
           (2 * std::log(rule.theta));
  };
  const double low = std::max(std::floor(dimension_of(rule.beta_fast)), 0.0);
  double high = std::min(std::ceil(dimension_of(rule.beta_slow)), dims - 1);
  if (low == high) {
    high += 0.001;
  }
  const at::Tensor ramp = ((at::arange(rule.dims / 2, at::kFloat) - low) / (high - low)).clamp(0, 1);
  const at::Tensor exponents = at::arange(0, rule.dims, 2, at::kLong).to(at::kFloat) / dims;
  const at::Tensor powers = at::pow(rule.theta, exponents);
  const at::Tensor plain_share = 1 - ramp;
  return at::reciprocal(rule.factor * powers) * (1 - plain_share) + at::reciprocal(powers) * plain_share;
}

at::Tensor frequencies(const RotaryRule& rule) {
  switch (rule.scaling) {
    case RotaryScaling::none: return plain_frequencies(rule);
    case RotaryScaling::linear: return plain_frequencies(rule) / rule.factor;
    case RotaryScaling::llama3: return llama3_frequencies(rule);
    case RotaryScaling::yarn: return yarn_frequencies(rule);
  }
  return {};
}

class PlainRotary final : public Rotary {
 public:
  explicit PlainRotary(const RotaryWeights& weights) : shape_(weights.shape), table_(weights.table) {
    if (weights.query_norm) {
      query_norm_ = make_plain_residual_norm(*weights.query_norm);
      key_norm_ = make_plain_residual_norm(*weights.key_norm);
    }
  }

  Projected forward(const Projected& projected, const ForwardStep& step) const override {
    at::Tensor query = projected.query.unflatten(2, {shape_.heads, shape_.head_dim});
    at::Tensor keys =
        projected.key_value.narrow(2, 0, shape_.key_width()).unflatten(2, {shape_.kv_heads, shape_.head_dim});
    const at::Tensor values = projected.key_value.narrow(2, shape_.key_width(), shape_.key_width());
    if (query_norm_) {
      query = query_norm_->norm(query, step.workspace);
      keys = key_norm_->norm(keys, step.workspace);
    }
    if (table_) {
      const at::Tensor cosine = of_positions(table_->cosine, step);
      const at::Tensor sine = of_positions(table_->sine, step);
      query = turned(query, cosine, sine);
      keys = turned(keys, cosine, sine);
    }
    return {.query = query.flatten(2), .key_value = at::cat({keys.flatten(2), values}, 2)};
  }

 private:
  /// Returns the rows of the table for the step's positions, for both halves of a head: [b, T, 1, dims].
  static at::Tensor of_positions(const at::Tensor& table, const ForwardStep& step) {
    const at::Tensor rows = at::embedding(table, step.rows.position_ids()).unsqueeze(2);
    return at::cat({rows, rows}, 3);
  }

  at::Tensor turned(const at::Tensor& x, const at::Tensor& cosine, const at::Tensor& sine) const {
    const std::int64_t dims = table_->dims;
    const at::Tensor turning = x.narrow(3, 0, dims);
    const at::Tensor rotated = at::cat({-turning.narrow(3, dims / 2, dims / 2), turning.narrow(3, 0, dims / 2)}, 3);
    const at::Tensor sum = turning * cosine + rotated * sine;
    return dims == shape_.head_dim ? sum : at::cat({sum, x.narrow(3, dims, shape_.head_dim - dims)}, 3);
  }

  AttentionShape shape_;
  std::shared_ptr<const RotaryTable> table_;
  std::unique_ptr<ResidualNorm> query_norm_;
  std::unique_ptr<ResidualNorm> key_norm_;
};

}  // namespace

std::shared_ptr<const RotaryTable> rotary_table(const RotaryRule& rule, std::int64_t positions,
                                                const at::TensorOptions& options) {
  const c10::InferenceMode inference;
  const at::Tensor angles = at::outer(at::arange(positions, at::kFloat), frequencies(rule));
  const auto rounded = [&](const at::Tensor& table) { return (table * rule.attention_factor).to(options); };
  return std::make_shared<const RotaryTable>(
      RotaryTable{.dims = rule.dims, .cosine = rounded(angles.cos()), .sine = rounded(angles.sin())});
}

std::unique_ptr<Rotary> make_plain_rotary(const RotaryWeights& weights) {
  return std::make_unique<PlainRotary>(weights);
}

}  // namespace decodelab
