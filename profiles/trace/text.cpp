// The account of a trace, and the checks, as text.
#include "profiles/trace/text.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/table.h"
#include "profiles/trace/find_steps.h"
#include "profiles/trace/names.h"
#include "profiles/trace/ranges.h"
#include "profiles/trace/words.h"

namespace decodelab {
namespace {

constexpr std::size_t kTopRows = 12;
constexpr std::size_t kTextIndent = 8;
constexpr std::size_t kCandidates = 5;

std::string verdict_text(const TraceQuality& quality) {
  const std::string verdict = fmt::format("verdict {}", to_string(quality.verdict));
  return quality.reason.empty() ? verdict + "\n" : finding(verdict + ":", quality.reason, kTextIndent);
}

/// Steps that are at least as long as this are shown in milliseconds.
constexpr double kLongStepNs = 1e7;

class AccountText {
 public:
  AccountText(const Trace& trace, const Attribution& attribution)
      : trace_(trace),
        attribution_(attribution),
        host_(attribution.host_time_believable),
        steps_(static_cast<double>(attribution.steps.size())),
        in_ms_(static_cast<double>(attribution.steps_ns) >= kLongStepNs * steps_),
        unit_(in_ms_ ? "ms" : "ns") {}

  std::string text() const {
    std::string text = head();
    if (has_stages()) {
      text += "\n" + stages();
    }
    text += ranks();
    if (attribution_.on_device) {
      text += "\n" + gaps();
    }
    // In a foreign trace the host may be far ahead: what kept a step's device busy was launched long before.
    const bool foreign = trace_.events().session.foreign;
    const auto time = foreign ? &OperatorCost::self_ns : &OperatorCost::total_ns;
    if (attribution_.on_device) {
      text += "\n" + top("kernel", attribution_.kernels, time);
    }
    if (host_ && has_stages()) {
      text += "\n" + top("operator", attribution_.operators, &OperatorCost::self_ns);
    }
    if (trace_.events().session.foreign) {
      text += ranges() + candidates();
    }
    text += "\n" + perturbation();
    return text;
  }

 private:
  std::string per_step(std::int64_t sum) const { return amount_text(static_cast<double>(sum) / steps_); }
  std::string time_per_step(std::int64_t sum) const {
    return in_ms_ ? fmt::format("{:.3f}", static_cast<double>(sum) / steps_ * 1e-6) : per_step(sum);
  }
  /// Returns whether there are stages to show. A trace of ours always has stages; a foreign one may have none.
  bool has_stages() const {
    return !trace_.events().session.foreign ||
           std::any_of(attribution_.stages.begin(), attribution_.stages.end(),
                       [](const StageCost& stage) { return stage.stage != Stage::other; });
  }
  std::string share(std::int64_t ns) const {
    return percent_text(static_cast<double>(ns) / static_cast<double>(attribution_.steps_ns));
  }
  std::int64_t sum(std::int64_t StepAccount::* part) const {
    std::int64_t sum = 0;
    for (const StepAccount& step : attribution_.steps) {
      sum += step.*part;
    }
    return sum;
  }

  std::string head() const {
    const TraceSession& session = trace_.events().session;
    std::string what = session.cell;
    const std::string source = session.source == "decodelab" ? "" : "from " + session.source;
    for (const std::string& part : {session.arm, session.model, source}) {
      if (!part.empty()) {
        what += (what.empty() ? "" : ", ") + part;
      }
    }
    std::string text = paragraph("",
                                 fmt::format("{}, tier {}, {} of {} steps", what, static_cast<int>(session.tier),
                                             attribution_.steps.size(), trace_.events().steps.size()),
                                 kTextIndent);
    if (!session.steps_from.empty()) {
      text += paragraph("", "steps: " + session.steps_from, kTextIndent);
    }
    text +=
        fmt::format("step {} {}, bound by {}\n", time_per_step(attribution_.steps_ns), unit_, attribution_.bound_by);
    if (!attribution_.on_device) {
      return text;
    }
    text += fmt::format("per step: busy {} {} ({}), {} launches, kernels under graphs {}\n",
                        time_per_step(sum(&StepAccount::busy_ns)), unit_, share(sum(&StepAccount::busy_ns)),
                        per_step(sum(&StepAccount::launches)), graph_coverage());
    if (host_ && session.tier == TraceTier::causes && !session.steps_by_time) {
      text += fmt::format("per step: host ahead of the device by {} {}, launch to start {} {}, summed over launches\n",
                          time_per_step(sum(&StepAccount::host_margin_ns)), unit_,
                          time_per_step(sum(&StepAccount::launch_to_start_ns)), unit_);
    }
    return text + lead();
  }

  /// Returns a note where the host is further ahead than a step is long: it then launches other things in a step than
  /// its device runs.
  std::string lead() const {
    const std::int64_t launches = sum(&StepAccount::launches);
    if (!trace_.events().session.foreign || trace_.events().session.steps_by_time || launches == 0) {
      return "";
    }
    const double lead_ns = static_cast<double>(sum(&StepAccount::launch_to_start_ns)) / static_cast<double>(launches);
    if (lead_ns * steps_ < static_cast<double>(attribution_.steps_ns)) {
      return "";
    }
    return fmt::format(
        "launches start {:.1f} ms later on the device: its time in a step is of what was launched before\n",
        lead_ns * 1e-6);
  }

  std::string graph_coverage() const {
    const std::int64_t kernel_ns = sum(&StepAccount::kernel_ns);
    if (kernel_ns == 0) {
      return "0.0 %";
    }
    return percent_text(static_cast<double>(sum(&StepAccount::graph_kernel_ns)) / static_cast<double>(kernel_ns));
  }

  std::string stages() const {
    const bool device = attribution_.on_device;
    const bool bandwidth = std::any_of(attribution_.stages.begin(), attribution_.stages.end(),
                                       [](const StageCost& stage) { return stage.bandwidth_share.has_value(); });
    std::vector<std::string> header{"stage"};
    if (device) {
      header.insert(header.end(), {"device " + unit_, "share", "kernels"});
    }
    if (host_) {
      header.insert(header.end(), {device ? "host " + unit_ : unit_, "share", "operators", "allocations"});
    }
    if (bandwidth) {
      header.emplace_back("bandwidth");
    }
    Table table = names_and_numbers(header);
    for (const StageCost& stage : attribution_.stages) {
      std::vector<std::string> row{stage_name(stage.stage)};
      if (device) {
        row.insert(row.end(), {time_per_step(stage.device_ns), share(stage.device_ns), per_step(stage.kernels)});
      }
      if (host_) {
        row.insert(row.end(), {time_per_step(stage.host_ns), share(stage.host_ns), per_step(stage.operators),
                               per_step(stage.allocations)});
      }
      if (bandwidth) {
        row.push_back(stage.bandwidth_share ? percent_text(*stage.bandwidth_share) : "");
      }
      table.add(std::move(row));
    }
    if (host_) {
      const std::int64_t residual_ns = sum(&StepAccount::residual_ns);
      std::vector<std::string> row{"in no stage"};
      if (device) {
        row.insert(row.end(), {"", "", ""});
      }
      row.insert(row.end(), {time_per_step(residual_ns), share(residual_ns), "", ""});
      if (bandwidth) {
        row.emplace_back();
      }
      table.add(std::move(row));
    }
    return "means of a step:\n" + to_text(table);
  }

  /// Returns a table of the other ranks that share the model; what is said of them is inside of the first one's steps.
  std::string ranks() const {
    const TraceEvents& events = trace_.events();
    if (events.session.threads.empty()) {
      return "";
    }
    std::set<std::int32_t> steps;
    for (const StepAccount& step : attribution_.steps) {
      steps.insert(step.index);
    }
    Table table =
        names_and_numbers({"of a step", "computes " + unit_, "share", "exchanges and waits " + unit_, "share"});
    for (const NamedThread& rank : events.session.threads) {
      std::int64_t outermost_ns = 0;
      std::int64_t exchange_ns = 0;
      for (const HostSpan& span : events.spans) {
        if (span.thread != rank.thread || span.process != rank.process || !steps.contains(span.step)) {
          continue;
        }
        outermost_ns += span.depth == 0 ? span.end_ns - span.start_ns : 0;
        exchange_ns +=
            span.kind == SpanKind::stage && span.stage == Stage::all_reduce ? span.end_ns - span.start_ns : 0;
      }
      const std::int64_t computes_ns = outermost_ns - exchange_ns;
      table.add(
          {rank.name, time_per_step(computes_ns), share(computes_ns), time_per_step(exchange_ns), share(exchange_ns)});
    }
    return "\n" + to_text(table);
  }

  std::string gaps() const {
    Table table = names_and_numbers({"gap", unit_ + "/step", "share"});
    for (std::size_t i = 0; i < kGapCauseNames.size(); ++i) {
      std::int64_t ns = 0;
      for (const StepAccount& step : attribution_.steps) {
        ns += step.gap_ns[i];
      }
      if (ns > 0) {
        table.add({kGapCauseNames[i], time_per_step(ns), share(ns)});
      }
    }
    return table.rows.empty() ? "no gaps\n" : to_text(table);
  }

  struct Row {
    std::int64_t ns = 0;
    std::int64_t calls = 0;
    std::set<StringId> kinds;  ///< Whole names that have the same short name.
  };

  /// Returns a table with one row for each short name, summed over stages and layers.
  std::string top(const char* what, const std::vector<OperatorCost>& costs, std::int64_t OperatorCost::* time) const {
    std::map<std::string, Row> names;
    for (const OperatorCost& cost : costs) {
      const bool named = cost.name < trace_.events().strings.size();
      Row& row = names[named ? short_name(trace_.text(cost.name)) : ""];
      row.ns += cost.*time;
      row.calls += cost.calls;
      row.kinds.insert(cost.name);
    }
    if (names.empty()) {
      return fmt::format("no {} was recorded\n", what);
    }
    std::vector<std::pair<std::string, Row>> rows(names.begin(), names.end());
    std::stable_sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) { return a.second.ns > b.second.ns; });
    Table table = names_and_numbers(
        {what, (time == &OperatorCost::self_ns ? "self " : "") + unit_ + "/step", "share", "calls/step"});
    std::int64_t rest_ns = 0;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const Row& row = rows[i].second;
      if (row.ns == 0) {
        continue;
      }
      if (i >= kTopRows) {
        rest_ns += row.ns;
        continue;
      }
      const std::string kinds = row.kinds.size() > 1 ? fmt::format(" ({} kinds)", row.kinds.size()) : "";
      table.add({printable(rows[i].first) + kinds, time_per_step(row.ns), share(row.ns), per_step(row.calls)});
    }
    if (rows.size() > kTopRows) {
      table.add({fmt::format("others ({})", rows.size() - kTopRows), time_per_step(rest_ns), share(rest_ns), ""});
    }
    return to_text(table);
  }

  /// Returns a table of the ranges that people marked, by what they launched.
  std::string ranges() const {
    const std::vector<RangeCost> costs = range_costs(trace_);
    if (costs.empty()) {
      return "";
    }
    Table table = names_and_numbers({"range", unit_ + "/step on the device", "on the host", "operations", "times"});
    for (std::size_t i = 0; i < std::min(costs.size(), kTopRows); ++i) {
      const RangeCost& cost = costs[i];
      table.add({printable(cost.name), time_per_step(cost.device_ns), time_per_step(cost.host_ns),
                 per_step(cost.operations), per_step(cost.count)});
    }
    std::int64_t before = 0;
    for (const DeviceOperation& row : trace_.events().operations) {
      before += row.launched_before ? 1 : 0;
    }
    std::string text = "\nranges, with what was launched in them and in those inside of them:\n" + to_text(table);
    if (costs.size() > kTopRows) {
      text += fmt::format("and {} more\n", costs.size() - kTopRows);
    }
    if (before > 0) {
      text += fmt::format("{} operations were launched before the capture, in no range\n", grouped(before));
    }
    return text;
  }

  /// Returns a table of ranges that may be steps, for a trace whose steps nobody marked.
  std::string candidates() const {
    const std::string& from = trace_.events().session.steps_from;
    if (!trace_.events().session.steps_by_time && !from.starts_with("CUDA graph")) {
      return "";
    }
    const std::vector<RangeCandidate> ranges = step_candidates(trace_.events(), kCandidates);
    if (ranges.empty()) {
      return "";
    }
    Table table = names_and_numbers({"ranges for --step-range", "times", "median ms", "sum ms"});
    for (const RangeCandidate& range : ranges) {
      table.add({printable(range.name), grouped(range.count),
                 fmt::format("{:.3f}", static_cast<double>(range.median_ns) * 1e-6),
                 fmt::format("{:.3f}", static_cast<double>(range.total_ns) * 1e-6)});
    }
    return "\n" + to_text(table);
  }

  std::string perturbation() const {
    const Perturbation& slow_down = trace_.events().session.perturbation;
    if (slow_down.ratio <= 0) {
      return "tracing: its slow-down was not measured\n";
    }
    return fmt::format("tracing: steps take {:.3f} times as long ({:.3f} to {:.3f}, 95 %, {} pairs)\n", slow_down.ratio,
                       slow_down.low, slow_down.high, slow_down.pairs);
  }

  const Trace& trace_;
  const Attribution& attribution_;
  bool host_;
  double steps_;
  bool in_ms_;
  std::string unit_;
};

}  // namespace

std::string trace_text(const Trace& trace, const TraceQuality& quality, const Attribution& attribution,
                       std::string_view heading) {
  std::string text =
      paragraph(heading, account_sentence(trace, quality, attribution), kTextIndent) + verdict_text(quality);
  if (quality.verdict == TraceVerdict::contaminated) {
    text += "tracing slowed the steps down: kernels may be ranked, times of the host are not shown\n";
  }
  if (!quality.believe.empty()) {
    text += paragraph("to be believed:", quality.believe, kTextIndent);
  }
  if (attribution.believable) {
    return text + AccountText(trace, attribution).text();
  }
  if (attribution.refusal != quality.reason) {
    text += paragraph("", attribution.refusal, kTextIndent);
  }
  return text + "no numbers are printed from a trace that cannot be accounted for\n";
}

std::string explain_text(const TraceQuality& quality, std::string_view heading) {
  std::string text = paragraph(heading, verdict_sentence(quality), kTextIndent) + verdict_text(quality);
  for (const TraceCheck& check : quality.checks) {
    text +=
        finding(fmt::format("{:<4} {:<15}", check.id, to_string(check.status)), check.title + ": " + check.evidence, 5);
  }
  return text;
}

}  // namespace decodelab
