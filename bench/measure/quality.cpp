// Compares distributions token by token.
#include "bench/measure/quality.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <stdexcept>

#include <fmt/format.h>

#include "bench/measure/time_account.h"
#include "bench/plan/arm_request.h"
#include "bench/plan/step_scope.h"
#include "reports/statistics/quality.h"

namespace decodelab {
namespace {

/// What turns a row of logits into log-probabilities.
struct RowScale {
  std::size_t top = 0;
  double log_sum = 0;
};

RowScale scale_of(std::span<const float> logits) {
  const auto top = static_cast<std::size_t>(std::ranges::max_element(logits) - logits.begin());
  double sum = 0;
  for (const float logit : logits) {
    sum += std::exp(static_cast<double>(logit) - logits[top]);
  }
  if (!std::isfinite(sum)) {
    throw std::invalid_argument("a logit is no finite number");
  }
  return {.top = top, .log_sum = logits[top] + std::log(sum)};
}

/// Mean of values, and its standard error.
struct Mean {
  double value = 0;
  double error = 0;
};

template <typename Tokens, typename Value>
Mean mean_over(const Tokens& tokens, const Value& value_of) {
  const auto count = static_cast<double>(tokens.size());
  double sum = 0;
  double squares = 0;
  for (const auto& token : tokens) {
    const double value = value_of(token);
    sum += value;
    squares += value * value;
  }
  const double mean = sum / count;
  const double variance = std::max(0.0, squares / count - mean * mean);
  return {.value = mean, .error = count > 1 ? std::sqrt(variance / (count - 1)) : 0};
}

/// An arm, and what it has predicted so far.
struct PredictingArm {
  Worker* worker;
  QualitySums sums{};
  std::string reason{};  ///< Why it cannot predict.
};

/// Returns the reference in fp32, which lives as long as the result: an arm of the run, or one made for this.
std::shared_ptr<Worker> exact_worker(const CellRecord& cell, const ArmWorkers& workers) {
  if (cell.dtype == "fp32") {
    return {workers.reference("").worker, [](Worker*) {}};
  }
  std::shared_ptr<Worker> exact = workers.exact ? workers.exact("") : nullptr;
  if (exact == nullptr) {
    throw std::runtime_error("there is no reference in fp32, beside which the quality of arms could be measured");
  }
  exact->start();
  return exact;
}

/// Lets all arms predict the text, batch by batch, so that the reference's logits of one batch are held at a time.
void predict(std::span<const std::int64_t> ids, CellRecord cell, Worker& exact,
             std::map<std::int64_t, PredictingArm>& arms, const ArmWorkers& workers) {
  for (const OutputTrace& fed : quality_batches(ids)) {
    cell.batch = fed.batch;
    CellRecord of_exact = cell;
    of_exact.dtype = "fp32";
    workers.started(0);
    const OutputTrace expected = exact.outputs(of_exact, kQualitySteps, &fed);
    for (auto& [id, arm] : arms) {
      if (!arm.reason.empty()) {
        continue;
      }
      workers.started(id);
      const TimeSpan span(*workers.account, id, Activity::checking, [&] { return arm.worker->side_work(); });
      try {
        arm.sums.add(fed, expected, arm.worker->outputs(cell, kQualitySteps, &fed));
      } catch (const std::exception& error) {
        arm.reason = row_of_exception({}, error).reason;
      }
    }
  }
}

}  // namespace

std::vector<OutputTrace> quality_batches(std::span<const std::int64_t> ids) {
  std::vector<OutputTrace> batches;
  std::int64_t rows = (std::ssize(ids) - kQualityContext) / kQualitySteps;
  for (std::int64_t first = 0; rows > 0; rows -= kQualityRows) {
    const std::int64_t here = std::min(rows, kQualityRows);
    OutputTrace fed;
    fed.batch = here;
    fed.tokens.resize(static_cast<std::size_t>(kQualitySteps));
    for (std::int64_t row = 0; row < here; ++row, first += kQualitySteps) {
      const auto context = ids.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(kQualityContext));
      fed.prompts.emplace_back(context.begin(), context.end());
      for (std::int64_t step = 0; step < kQualitySteps; ++step) {
        fed.tokens[static_cast<std::size_t>(step)].push_back(
            ids[static_cast<std::size_t>(first + kQualityContext + step)]);
      }
    }
    batches.push_back(std::move(fed));
  }
  return batches;
}

void QualitySums::add(const OutputTrace& fed, const OutputTrace& exact, const OutputTrace& got) {
  const std::size_t steps = fed.tokens.size();
  const auto width = static_cast<std::size_t>(exact.vocabulary);
  const auto rows = static_cast<std::size_t>(fed.batch);
  if (exact.logits.size() != steps || got.logits.size() != steps) {
    throw std::invalid_argument(
        fmt::format("expected the logits of {} steps, got {} and {}", steps, exact.logits.size(), got.logits.size()));
  }
  for (std::size_t step = 0; step < steps; ++step) {
    if (exact.logits[step].size() != rows * width || got.logits[step].size() != rows * width) {
      throw std::invalid_argument(fmt::format("expected {} rows of {} logits, got {} and {} numbers", rows, width,
                                              exact.logits[step].size(), got.logits[step].size()));
    }
    for (std::size_t row = 0; row < rows; ++row) {
      const std::span b(exact.logits[step].data() + row * width, width);
      const std::span a(got.logits[step].data() + row * width, width);
      const RowScale of_b = scale_of(b);
      const RowScale of_a = scale_of(a);
      double divergence = 0;
      for (std::size_t id = 0; id < width; ++id) {
        const double log_prob = b[id] - of_b.log_sum;
        divergence += std::exp(log_prob) * (log_prob - (a[id] - of_a.log_sum));
      }
      const auto token = static_cast<std::size_t>(fed.tokens[step][row]);
      tokens_.push_back({.exact_log_prob = b[token] - of_b.log_sum,
                         .log_prob = a[token] - of_a.log_sum,
                         .kl_divergence = std::max(0.0, divergence),
                         .same_top = a[of_b.top] == a[of_a.top]});
    }
  }
}

QualityRecord QualitySums::record(std::int64_t arm_id) const {
  if (tokens_.empty()) {
    throw std::invalid_argument("no token was predicted");
  }
  const Mean loss = mean_over(tokens_, [](const Token& token) { return -token.log_prob; });
  const Mean ratio = mean_over(tokens_, [](const Token& token) { return token.exact_log_prob - token.log_prob; });
  const Mean divergence = mean_over(tokens_, [](const Token& token) { return token.kl_divergence; });
  const Mean top = mean_over(tokens_, [](const Token& token) { return token.same_top ? 1.0 : 0.0; });
  const Mean squares = mean_over(tokens_, [](const Token& token) {
    return std::pow(std::exp(token.log_prob) - std::exp(token.exact_log_prob), 2);
  });
  std::vector<double> divergences;
  for (const Token& token : tokens_) {
    divergences.push_back(token.kl_divergence);
  }
  std::ranges::sort(divergences);
  const auto place = static_cast<std::size_t>(std::floor(0.999 * static_cast<double>(divergences.size() - 1)));
  return {.arm_id = arm_id,
          .tokens = std::ssize(tokens_),
          .log_perplexity = loss.value,
          .log_perplexity_error = loss.error,
          .log_ratio = ratio.value,
          .log_ratio_error = ratio.error,
          .kl_divergence = divergence.value,
          .kl_divergence_error = divergence.error,
          .kl_divergence_999 = divergences[place],
          .top_1_agreement = top.value,
          .top_1_agreement_error = top.error,
          .rms_probability = std::sqrt(squares.value)};
}

std::string beyond_limit(const QualityLimit& limit, const QualityRecord& quality) {
  if (limit.kl && quality.kl_divergence - kNormal95 * quality.kl_divergence_error > *limit.kl) {
    return fmt::format("its mean KL divergence from the reference in fp32 is {:.3g}, and --quality-limit allows {:g}",
                       quality.kl_divergence, *limit.kl);
  }
  if (limit.perplexity && quality.log_ratio - kNormal95 * quality.log_ratio_error > std::log(*limit.perplexity)) {
    return fmt::format("its perplexity is {:.4f} of the reference's in fp32, and --quality-limit allows {:g}",
                       std::exp(quality.log_ratio), *limit.perplexity);
  }
  if (limit.top_1 && quality.top_1_agreement + kNormal95 * quality.top_1_agreement_error < *limit.top_1) {
    return fmt::format(
        "it finds the reference's most probable token for {:.1f} % of tokens, and --quality-limit wants {:g} %",
        100 * quality.top_1_agreement, 100 * *limit.top_1);
  }
  return "";
}

void keep_qualities(Store& store, RunData& data, const ArmWorkers& workers, const QualityPlan& plan) {
  std::map<std::int64_t, PredictingArm> arms;
  for (const ArmRecord& arm : data.arms) {
    const auto worker = workers.by_arm.find(arm.id);
    const bool open = std::ranges::any_of(
        data.cell_arms, [&](const CellArmRecord& row) { return row.arm_id == arm.id && is_open(row.status); });
    if (open && worker != workers.by_arm.end() && !arm.roofline() && request_part(arm.label).empty() &&
        std::ranges::find(data.qualities, arm.id, &QualityRecord::arm_id) == data.qualities.end()) {
      arms[arm.id] = {.worker = worker->second};
    }
  }
  if (plan.ids.empty() || arms.empty() || data.cells.empty()) {
    return;
  }
  CellRecord cell = data.cells.front();
  cell.phase = Phase::generate;
  cell.scope = scope_of(Phase::generate, {});
  cell.fill = "generated";
  cell.length = kQualityContext;
  try {
    predict(plan.ids, cell, *exact_worker(cell, workers), arms, workers);
  } catch (const std::exception& error) {
    for (auto& [id, arm] : arms) {
      arm.reason = "the reference in fp32 cannot predict the text: " + row_of_exception({}, error).reason;
    }
  }
  for (const auto& [id, arm] : arms) {
    const QualityRecord quality =
        arm.reason.empty() ? arm.sums.record(id) : QualityRecord{.arm_id = id, .reason = arm.reason};
    store.save_quality(quality);
    data.qualities.push_back(quality);
    const std::string reason = arm.reason.empty() ? beyond_limit(plan.limit, quality) : "";
    for (CellArmRecord& row : data.cell_arms) {
      if (!reason.empty() && row.arm_id == id && is_open(row.status)) {
        row.status = RowStatus::incorrect;
        row.reason = reason;
        store.update_cell_arm(row);
      }
    }
  }
}

}  // namespace decodelab
