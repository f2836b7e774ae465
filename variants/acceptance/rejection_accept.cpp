// Keeps a guess with the probability that leaves the distribution as it is, in rows that draw.
#include <algorithm>
#include <memory>

#include "engine/sampling/acceptance.h"
#include "engine/tensor.h"
#include "variants/registry.h"

namespace decodelab {
namespace {

/// Returns the first token whose running sum passes the share `unit` of all weights [V] fp64; every one of them if
/// rounding lets none pass: the last that has any.
std::int64_t token_at(const at::Tensor& weights, double unit) {
  const auto* weight = weights.const_data_ptr<double>();
  const std::int64_t count = weights.numel();
  double total = 0;
  for (std::int64_t token = 0; token < count; ++token) {
    total += weight[token];
  }
  double sum = 0;
  std::int64_t last = 0;
  for (std::int64_t token = 0; token < count; ++token) {
    if (weight[token] > 0) {
      sum += weight[token];
      last = token;
      if (sum > unit * total) {
        return token;
      }
    }
  }
  return last;
}

/// Returns what is left of the probabilities p [V] where a guess drawn from q [V] was refused: p - q where that is
/// above 0. Where rounding leaves nothing, p.
at::Tensor left_over(const at::Tensor& p, const at::Tensor& q) {
  const at::Tensor left = (p - q).clamp_min(0);
  return left.sum().item<double>() > 0 ? left : p;
}

class RejectionAcceptance final : public Acceptance {
 public:
  bool wants_drawn_guesses() const override { return true; }

  std::vector<std::vector<std::int64_t>> accept(Round& round) const override {
    std::vector<std::vector<std::int64_t>> said(round.guesses().size());
    std::vector<std::int64_t> greedy;
    std::vector<std::int64_t> drawn;
    for (std::int64_t row = 0; row < std::ssize(said); ++row) {
      (round.draws(row) ? drawn : greedy).push_back(row);
    }
    for (std::int64_t position = 0; !greedy.empty() || !drawn.empty(); ++position) {
      if (!greedy.empty()) {
        const std::vector<std::int64_t> tokens = round.choose(position, greedy);
        greedy = add_said(round, position, greedy, tokens, said);
      }
      if (!drawn.empty()) {
        const std::vector<std::int64_t> tokens = round.pick(position, drawn, [&](const at::Tensor& probabilities) {
          std::vector<std::int64_t> picked;
          for (std::size_t line = 0; line < drawn.size(); ++line) {
            picked.push_back(
                pick(round, position, drawn[line], probabilities[static_cast<std::int64_t>(line)].contiguous()));
          }
          return picked;
        });
        drawn = add_said(round, position, drawn, tokens, said);
      }
    }
    return said;
  }

 private:
  /// Says what a row says at a position: its guess with probability min(1, p / q), and else a token of what is left.
  /// Both together have the probabilities p (Leviathan et al. 2023, theorem 1 of appendix A).
  static std::int64_t pick(const Round& round, std::int64_t position, std::int64_t row, const at::Tensor& p) {
    const std::vector<std::int64_t>& guesses = round.guesses()[static_cast<std::size_t>(row)];
    if (position >= std::ssize(guesses)) {
      return token_at(p, round.uniform(row, position, Round::Use::go_on));
    }
    const std::int64_t guess = guesses[static_cast<std::size_t>(position)];
    at::Tensor q;
    if (const at::Tensor* drawn = round.drawn_from(row)) {
      q = (*drawn)[position].to(at::kDouble);
    } else {  // A guess that nobody drew is certain.
      q = at::zeros_like(p);
      q[guess] = 1;
    }
    const double of_guess = p[guess].item<double>();
    if (round.uniform(row, position, Round::Use::accept) * q[guess].item<double>() < of_guess) {
      return guess;
    }
    return token_at(left_over(p, q), round.uniform(row, position, Round::Use::replace));
  }
};

void apply(EnginePlan& plan, const Parameters&) {
  plan.acceptance.bind("rejection-accept", [] { return std::make_unique<RejectionAcceptance>(); });
}

[[maybe_unused]] const bool registered = register_variant({
    .name = "rejection-accept",
    .summary = "Rows that draw keep a guess with the probability that leaves their distribution as it is; greedy rows "
               "match.",
    .source = "Leviathan et al. 2023 (arXiv:2211.17192); Chen et al. 2023 (arXiv:2302.01318)",
    .parameters = {},
    .expects = {},
    .unsupported = {},
    .conflict = {},
    .apply = apply,
});

}  // namespace
}  // namespace decodelab
