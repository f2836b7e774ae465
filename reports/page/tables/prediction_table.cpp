// Renders predictions.
#include "reports/page/tables/prediction_table.h"

#include <map>

#include <fmt/format.h>

#include "base/units.h"

namespace decodelab {
namespace {

std::string label_of(const CompletionRequest& request) {
  return fmt::format("b{} pp{} + {} tokens", request.batch, request.prompt_tokens, request.new_tokens);
}

std::string time_of(const std::optional<double>& ns) { return ns ? format_time(*ns) : ""; }

std::string time_of(const std::optional<double>& ns, const std::optional<Interval>& interval) {
  if (!ns) {
    return "";
  }
  if (!interval) {
    return format_time(*ns);
  }
  return fmt::format("{} [{}, {}]", format_time(*ns), format_time(interval->low), format_time(interval->high));
}

std::string share_of(const Prediction& prediction) {
  if (!prediction.measured_ns || !prediction.total_ns) {
    return "";
  }
  return fmt::format("{:.3f}", *prediction.measured_ns / *prediction.total_ns);
}

}  // namespace

Table prediction_table(const std::vector<Prediction>& predictions) {
  Table table{.title = "Completions predicted from the curves",
              .columns = {{"Completion"},
                          {"Arm"},
                          {"Prefill", true},
                          {"Decode", true},
                          {"Total [95 %]", true},
                          {"Measured [95 %]", true},
                          {"Measured / predicted", true}},
              .rows = {},
              .notes = {}};
  bool interpolated = false;
  bool measured = false;
  std::map<std::string, std::vector<std::string>> refusals;
  for (const Prediction& prediction : predictions) {
    if (!prediction.total_ns) {
      refusals[prediction.refusal].push_back(
          fmt::format("{} ({})", label_of(prediction.request), prediction.arm.label));
      if (!prediction.measured_ns) {
        continue;
      }
    }
    interpolated = interpolated || prediction.interpolated;
    measured = measured || prediction.measured_ns.has_value();
    table.rows.push_back({prediction.run_id,
                          prediction.measured_cell_id,
                          {label_of(prediction.request), prediction.arm.label, time_of(prediction.prefill_ns),
                           time_of(prediction.decode_ns), time_of(prediction.total_ns, prediction.interval),
                           time_of(prediction.measured_ns, prediction.measured_interval), share_of(prediction)}});
  }
  if (!table.rows.empty()) {
    table.notes.emplace_back(
        "Total: the prefill, which makes the first token, and a step of decode for each of the others, at the number "
        "of keys that it finds. The interval is over launches and holds nothing of the lengths between measured ones.");
    if (interpolated) {
      table.notes.emplace_back("Lengths between measured ones are read from a straight line between their neighbours.");
    }
    table.notes.emplace_back(measured ? "Measured: phase generate of the same run."
                                      : "The run measured no such completion (phase generate) to check them by.");
  }
  for (const auto& [refusal, places] : refusals) {
    table.notes.push_back(fmt::format("Not predicted: {}{}: {}.", places.front(),
                                      places.size() == 1 ? "" : fmt::format(" and {} more", places.size() - 1),
                                      refusal));
  }
  return table;
}

Table prediction_table(const RunSummary& summary) {
  std::vector<Prediction> predictions;
  for (const CompletionRequest& request : completions_of(summary)) {
    for (Prediction& prediction : predict_completion(summary, request)) {
      predictions.push_back(std::move(prediction));
    }
  }
  return prediction_table(predictions);
}

}  // namespace decodelab
