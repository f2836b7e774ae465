// Sums of measured curves, launch by launch.
#include "reports/statistics/prediction.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <stdexcept>
#include <tuple>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/json_text.h"

namespace decodelab {
namespace {

using Rows = std::vector<const SummaryRow*>;
/// The weight of each row's mean in a sum.
using Weights = std::map<const SummaryRow*, double>;

auto setting_of(const CellRecord& cell) { return std::tie(cell.dtype, cell.device, cell.threads, cell.fill); }

/// Tokens of the completions of a run's phase generate; 0 where its plan does not say.
std::int64_t generated_tokens(const RunSummary& summary) {
  const auto plan = parse_json_or_discard(summary.run.plan_json);
  return plan.is_object() && plan.contains("max_tokens") && plan["max_tokens"].is_number_integer()
             ? plan["max_tokens"].get<std::int64_t>()
             : 0;
}

double first_length(const SummaryRow& row) { return static_cast<double>(row.cell.length); }
double last_length(const SummaryRow& row) {
  return row.cell.phase == Phase::decode ? 2 * row.plotted_length() - first_length(row) : first_length(row);
}

/// A measured curve: the rows of one phase, by length.
struct Curve {
  Rows rows;

  bool reaches(double length) const {
    return !rows.empty() && length >= first_length(*rows.front()) && length <= last_length(*rows.back());
  }

  /// Adds the value at `length`, which the curve reaches, to `weights`. Returns true where it lies between two rows'
  /// own lengths.
  bool add(double length, Weights& weights) const {
    const auto right =
        std::ranges::find_if(rows, [&](const SummaryRow* row) { return row->plotted_length() >= length; });
    if (right == rows.begin() || right == rows.end()) {
      weights[right == rows.begin() ? rows.front() : rows.back()] += 1;
      return false;
    }
    const SummaryRow* const left = *(right - 1);
    const double share = (length - left->plotted_length()) / ((*right)->plotted_length() - left->plotted_length());
    weights[*right] += share;
    if (share < 1) {
      weights[left] += 1 - share;
    }
    return length > last_length(*left) && length < first_length(**right);
  }

  std::string lengths() const {
    return fmt::format("{} to {}", first_length(*rows.front()), last_length(*rows.back()));
  }
};

Curve curve_of(const RunSummary& summary, Phase phase, const Prediction& prediction) {
  Curve curve;
  for (const SummaryRow& row : summary.rows) {
    if (row.cell.phase == phase && row.arm.id == prediction.arm.id && row.cell.batch == prediction.request.batch &&
        setting_of(row.cell) == setting_of(prediction.like) && row.cell.scope == "step" && row.cell_mean_ns &&
        row.comparable()) {
      curve.rows.push_back(&row);
    }
  }
  std::ranges::sort(curve.rows, {}, [](const SummaryRow* row) { return row->cell.length; });
  return curve;
}

double sum(const Weights& weights) {
  double total = 0;
  for (const auto& [row, weight] : weights) {
    total += weight * *row->cell_mean_ns;
  }
  return total;
}

/// Returns the same sum for every launch in which all of the rows were timed.
std::vector<double> launch_sums(const Weights& weights) {
  std::map<std::int64_t, std::pair<double, std::size_t>> sums;
  for (const auto& [row, weight] : weights) {
    for (const auto& [launch, ns] : row->launch_means_ns) {
      sums[launch].first += weight * ns;
      ++sums[launch].second;
    }
  }
  std::vector<double> values;
  for (const auto& [launch, value] : sums) {
    if (value.second == weights.size()) {
      values.push_back(value.first);
    }
  }
  return values;
}

std::string refusal_of(const Prediction& prediction, Phase phase, const Curve& curve, double first, double last) {
  if (curve.rows.empty()) {
    return fmt::format("no {} was measured at batch {}", to_string(phase), prediction.request.batch);
  }
  if (curve.reaches(first) && curve.reaches(last)) {
    return "";
  }
  return fmt::format("{} was measured at lengths {} and {} to {} is asked for; nothing is extrapolated",
                     to_string(phase), curve.lengths(), first, last);
}

void predict(const RunSummary& summary, Prediction& prediction) {
  const CompletionRequest& request = prediction.request;
  const Curve prefill = curve_of(summary, Phase::prefill, prediction);
  const Curve decode = curve_of(summary, Phase::decode, prediction);
  const auto prompt = static_cast<double>(request.prompt_tokens);
  const std::int64_t steps = request.new_tokens - 1;
  prediction.refusal = refusal_of(prediction, Phase::prefill, prefill, prompt, prompt);
  if (prediction.refusal.empty() && steps > 0) {
    prediction.refusal = refusal_of(prediction, Phase::decode, decode, prompt, prompt + static_cast<double>(steps - 1));
  }
  if (!prediction.refusal.empty()) {
    return;
  }
  Weights of_prefill;
  Weights of_decode;
  prediction.interpolated = prefill.add(prompt, of_prefill);
  for (std::int64_t step = 0; step < steps; ++step) {
    const bool between = decode.add(prompt + static_cast<double>(step), of_decode);
    prediction.interpolated = prediction.interpolated || between;
  }
  prediction.prefill_ns = sum(of_prefill);
  prediction.decode_ns = sum(of_decode);
  prediction.total_ns = *prediction.prefill_ns + *prediction.decode_ns;
  Weights all = of_prefill;
  all.insert(of_decode.begin(), of_decode.end());  // rows of another phase: no row is in both
  const std::vector<double> launches = launch_sums(all);
  if (!launches.empty()) {
    prediction.interval = mean_interval(launches);
  }
}

void find_measured(const RunSummary& summary, Prediction& prediction) {
  if (generated_tokens(summary) != prediction.request.new_tokens) {
    return;
  }
  for (const SummaryRow& row : summary.rows) {
    if (row.cell.phase == Phase::generate && row.arm.id == prediction.arm.id &&
        row.cell.batch == prediction.request.batch && row.cell.length == prediction.request.prompt_tokens &&
        setting_of(row.cell) == setting_of(prediction.like) && row.cell_mean_ns && row.comparable()) {
      prediction.measured_ns = row.cell_mean_ns;
      prediction.measured_interval = row.cell_mean_interval_ns;
      prediction.measured_cell_id = row.cell.id;
    }
  }
}

}  // namespace

std::vector<Prediction> predict_completion(const RunSummary& summary, const CompletionRequest& request) {
  for (const auto& [name, value] : {std::pair("sequences", request.batch),
                                    {"prompt tokens", request.prompt_tokens},
                                    {"new tokens", request.new_tokens}}) {
    if (value < 1) {
      throw std::invalid_argument(fmt::format("prediction of a completion: {} {}: expected 1 or more", value, name));
    }
  }
  std::vector<Prediction> predictions;
  for (const SummaryRow& row : summary.rows) {
    if (row.arm.roofline()) {
      continue;
    }
    const bool known = std::ranges::any_of(predictions, [&](const Prediction& other) {
      return other.arm.id == row.arm.id && setting_of(other.like) == setting_of(row.cell);
    });
    if (known) {
      continue;
    }
    Prediction& prediction = predictions.emplace_back(
        Prediction{.request = request, .arm = row.arm, .like = row.cell, .refusal = {}, .run_id = summary.run.id});
    predict(summary, prediction);
    find_measured(summary, prediction);
  }
  return predictions;
}

std::vector<CompletionRequest> completions_of(const RunSummary& summary, std::int64_t most_new_tokens) {
  std::set<std::tuple<std::int64_t, std::int64_t, std::int64_t>> completions;  // batch, prompt tokens, new tokens
  const std::int64_t tokens = generated_tokens(summary);
  for (const SummaryRow& row : summary.rows) {
    if (row.cell.phase == Phase::generate && tokens > 0) {
      completions.emplace(row.cell.batch, row.cell.length, tokens);
    }
  }
  if (completions.empty()) {
    std::map<std::int64_t, std::set<std::int64_t>> prompts;                       // by batch
    std::map<std::int64_t, std::pair<std::int64_t, std::int64_t>> keys_measured;  // by batch: fewest and most
    for (const SummaryRow& row : summary.rows) {
      if (!row.cell_mean_ns || !row.comparable() || row.arm.roofline()) {
        continue;
      }
      if (row.cell.phase == Phase::prefill) {
        prompts[row.cell.batch].insert(row.cell.length);
      }
      if (row.cell.phase != Phase::decode) {
        continue;
      }
      const std::int64_t last = row.cell.length + std::max<std::int64_t>(row.cell.steps, 1) - 1;
      const auto [keys, added] = keys_measured.try_emplace(row.cell.batch, row.cell.length, last);
      keys->second = {std::min(keys->second.first, row.cell.length), std::max(keys->second.second, last)};
    }
    for (const auto& [batch, lengths] : prompts) {
      const auto keys = keys_measured.find(batch);
      if (keys == keys_measured.end()) {
        continue;
      }
      const auto prompt = lengths.lower_bound(keys->second.first);
      if (prompt == lengths.end() || *prompt > keys->second.second) {
        continue;
      }
      completions.emplace(batch, *prompt, std::min(most_new_tokens, keys->second.second - *prompt + 2));
    }
  }
  std::vector<CompletionRequest> requests;
  for (const auto& [batch, prompt, new_tokens] : completions) {
    requests.push_back({batch, prompt, new_tokens});
  }
  return requests;
}

}  // namespace decodelab
