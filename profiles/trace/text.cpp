// The account of a trace, and the checks, as text.
#include "profiles/trace/text.h"

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "profiles/trace/text_table.h"

namespace decodelab {
namespace {

constexpr std::size_t kTopRows = 12;
constexpr std::size_t kTextIndent = 8;

const char* stage_name(Stage stage) {
  return kStageNames[std::min(static_cast<std::size_t>(stage), kStageNames.size() - 1)];
}

std::string verdict_text(const TraceQuality& quality) {
  const std::string verdict = fmt::format("verdict {}", to_string(quality.verdict));
  return quality.reason.empty() ? verdict + "\n" : paragraph(verdict + ":", quality.reason, kTextIndent);
}

class AccountText {
 public:
  AccountText(const Trace& trace, const Attribution& attribution)
      : trace_(trace),
        attribution_(attribution),
        host_(attribution.host_time_believable),
        steps_(static_cast<double>(attribution.steps.size())) {}

  std::string text() const {
    std::string text = head();
    text += "\n" + stages();
    if (attribution_.on_device) text += "\n" + gaps();
    if (attribution_.on_device) text += "\n" + top("kernel", attribution_.kernels, &OperatorCost::total_ns);
    if (host_) text += "\n" + top("operator", attribution_.operators, &OperatorCost::self_ns);
    text += "\n" + perturbation();
    return text;
  }

 private:
  std::string per_step(std::int64_t sum) const { return amount_text(static_cast<double>(sum) / steps_); }
  std::string share(std::int64_t ns) const {
    return percent_text(static_cast<double>(ns) / static_cast<double>(attribution_.steps_ns));
  }
  std::int64_t sum(std::int64_t StepAccount::* part) const {
    std::int64_t sum = 0;
    for (const StepAccount& step : attribution_.steps) sum += step.*part;
    return sum;
  }

  std::string head() const {
    const TraceSession& session = trace_.events().session;
    std::string what = session.cell;
    const std::string source = session.source == "decodelab" ? "" : "from " + session.source;
    for (const std::string& part : {session.arm, session.model, source}) {
      if (!part.empty()) what += (what.empty() ? "" : ", ") + part;
    }
    std::string text = paragraph("",
                                 fmt::format("{}, tier {}, {} of {} steps", what, static_cast<int>(session.tier),
                                             attribution_.steps.size(), trace_.events().steps.size()),
                                 kTextIndent);
    text += fmt::format("step {} ns, bound by {}\n", per_step(attribution_.steps_ns), attribution_.bound_by);
    if (!attribution_.on_device) return text;
    text += fmt::format("per step: busy {} ns ({}), {} launches, kernels under graphs {}\n",
                        per_step(sum(&StepAccount::busy_ns)), share(sum(&StepAccount::busy_ns)),
                        per_step(sum(&StepAccount::launches)), graph_coverage());
    if (host_ && session.tier == TraceTier::causes) {
      text += fmt::format("per step: host ahead of the device by {} ns, launch to start {} ns, summed over launches\n",
                          per_step(sum(&StepAccount::host_margin_ns)), per_step(sum(&StepAccount::launch_to_start_ns)));
    }
    return text;
  }

  std::string graph_coverage() const {
    const std::int64_t kernel_ns = sum(&StepAccount::kernel_ns);
    if (kernel_ns == 0) return "0.0 %";
    return percent_text(static_cast<double>(sum(&StepAccount::graph_kernel_ns)) / static_cast<double>(kernel_ns));
  }

  std::string stages() const {
    const bool device = attribution_.on_device;
    const bool bandwidth = std::any_of(attribution_.stages.begin(), attribution_.stages.end(),
                                       [](const StageCost& stage) { return stage.bandwidth_share.has_value(); });
    std::vector<std::string> header{"stage"};
    if (device) header.insert(header.end(), {"device ns", "share", "kernels"});
    if (host_) header.insert(header.end(), {device ? "host ns" : "ns", "share", "operators", "allocations"});
    if (bandwidth) header.emplace_back("bandwidth");
    TextTable table(header);
    for (const StageCost& stage : attribution_.stages) {
      std::vector<std::string> row{stage_name(stage.stage)};
      if (device) {
        row.insert(row.end(), {per_step(stage.device_ns), share(stage.device_ns), per_step(stage.kernels)});
      }
      if (host_) {
        row.insert(row.end(), {per_step(stage.host_ns), share(stage.host_ns), per_step(stage.operators),
                               per_step(stage.allocations)});
      }
      if (bandwidth) row.push_back(stage.bandwidth_share ? percent_text(*stage.bandwidth_share) : "");
      table.add(std::move(row));
    }
    if (host_) {
      const std::int64_t residual_ns = sum(&StepAccount::residual_ns);
      std::vector<std::string> row{"in no stage"};
      if (device) row.insert(row.end(), {"", "", ""});
      row.insert(row.end(), {per_step(residual_ns), share(residual_ns), "", ""});
      if (bandwidth) row.emplace_back();
      table.add(std::move(row));
    }
    return "means of a step:\n" + table.text();
  }

  std::string gaps() const {
    TextTable table({"gap", "ns/step", "share"});
    for (std::size_t i = 0; i < kGapCauseNames.size(); ++i) {
      std::int64_t ns = 0;
      for (const StepAccount& step : attribution_.steps) ns += step.gap_ns[i];
      if (ns > 0) table.add({kGapCauseNames[i], per_step(ns), share(ns)});
    }
    return table.size() == 0 ? "no gaps\n" : table.text();
  }

  /// One row for each name, over stages and layers.
  std::string top(const char* what, const std::vector<OperatorCost>& costs, std::int64_t OperatorCost::* time) const {
    std::map<StringId, std::pair<std::int64_t, std::int64_t>> names;  // ns and calls
    for (const OperatorCost& cost : costs) {
      names[cost.name].first += cost.*time;
      names[cost.name].second += cost.calls;
    }
    if (names.empty()) return fmt::format("no {} was recorded\n", what);
    std::vector<std::pair<StringId, std::pair<std::int64_t, std::int64_t>>> rows(names.begin(), names.end());
    std::stable_sort(rows.begin(), rows.end(),
                     [](const auto& a, const auto& b) { return a.second.first > b.second.first; });
    TextTable table({what, time == &OperatorCost::self_ns ? "self ns/step" : "ns/step", "share", "calls/step"});
    std::int64_t rest_ns = 0;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const auto& [ns, calls] = rows[i].second;
      if (i >= kTopRows) {
        rest_ns += ns;
        continue;
      }
      const bool named = rows[i].first < trace_.events().strings.size();
      table.add({named ? printable(trace_.text(rows[i].first)) : "", per_step(ns), share(ns), per_step(calls)});
    }
    if (rows.size() > kTopRows) {
      table.add({fmt::format("({} others)", rows.size() - kTopRows), per_step(rest_ns), share(rest_ns), ""});
    }
    return table.text();
  }

  std::string perturbation() const {
    const Perturbation& slow_down = trace_.events().session.perturbation;
    if (slow_down.ratio <= 0) return "tracing: its slow-down was not measured\n";
    return fmt::format("tracing: steps take {:.3f} times as long ({:.3f} to {:.3f}, 95 %, {} pairs)\n", slow_down.ratio,
                       slow_down.low, slow_down.high, slow_down.pairs);
  }

  const Trace& trace_;
  const Attribution& attribution_;
  bool host_;
  double steps_;
};

}  // namespace

std::string trace_text(const Trace& trace, const TraceQuality& quality, const Attribution& attribution) {
  std::string text = verdict_text(quality);
  if (quality.verdict == TraceVerdict::contaminated) {
    text += "tracing slowed the steps down: kernels may be ranked, times of the host are not shown\n";
  }
  if (attribution.believable) return text + AccountText(trace, attribution).text();
  if (attribution.refusal != quality.reason) text += paragraph("", attribution.refusal, kTextIndent);
  return text + "no numbers are printed from a trace that cannot be accounted for\n";
}

std::string explain_text(const TraceQuality& quality) {
  std::string text = verdict_text(quality);
  for (const TraceCheck& check : quality.checks) {
    text += paragraph(fmt::format("{:<4} {:<15}", check.id, to_string(check.status)),
                      check.title + ": " + check.evidence, 5);
  }
  return text;
}

}  // namespace decodelab
