// Words and tables of a trace.
#include "bench/commands/trace_words.h"

#include "reports/page/format.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <iterator>
#include <stdexcept>

namespace decodelab {
namespace {

/// The endings of files and what opens them.
struct Viewer {
  const char* ending;
  const char* how;
};
constexpr std::array<Viewer, 4> kViewers{
    {{".pftrace", "open it in https://ui.perfetto.dev (it stays in the browser), or with 'vizviewer'"},
     {".json.gz",
      "open it in https://ui.perfetto.dev or chrome://tracing, or load its folder with HolisticTraceAnalysis"},
     {".sqlite", "ask it with 'decodelab trace sql FILE \"select * from STEP\"'; its tables are those of nsys"},
     {".summary.json", "for scripts: verdict, steps, stages and gaps"}}};

std::string per_step(std::int64_t ns, double steps) {
  return ns == 0 ? "-" : format_time(static_cast<double>(ns) / steps);
}

std::string number(std::int64_t count, double steps) {
  return count == 0 ? "-" : fmt::format("{:.4g}", static_cast<double>(count) / steps);
}

std::string share(std::int64_t part, std::int64_t whole) {
  return whole == 0 ? "-" : format_percent(static_cast<double>(part) / static_cast<double>(whole));
}

std::string bytes(std::int64_t count, double steps) {
  return count == 0 ? "-" : format_bytes(static_cast<std::int64_t>(static_cast<double>(count) / steps));
}

std::int64_t residual_ns(const Attribution& attribution) {
  std::int64_t sum = 0;
  for (const StepAccount& step : attribution.steps) {
    sum += step.residual_ns;
  }
  return sum;
}

std::array<std::int64_t, kGapCauseNames.size()> gap_sums(const Attribution& attribution) {
  std::array<std::int64_t, kGapCauseNames.size()> sums{};
  for (const StepAccount& step : attribution.steps) {
    for (std::size_t cause = 0; cause < sums.size(); ++cause) {
      sums[cause] += step.gap_ns[cause];
    }
  }
  return sums;
}

Table refused(const char* title, const Attribution& attribution) {
  return {.title = title, .columns = {}, .rows = {}, .notes = {"no account: " + attribution.refusal}};
}

void add_gaps(Table& table, const Attribution& attribution, double steps) {
  const auto gaps = gap_sums(attribution);
  for (std::size_t cause = 0; cause < gaps.size(); ++cause) {
    if (gaps[cause] > 0) {
      table.notes.push_back(fmt::format("device idle, {}: {} a step, {} of it", kGapCauseNames[cause],
                                        per_step(gaps[cause], steps), share(gaps[cause], attribution.steps_ns)));
    }
  }
}

}  // namespace

std::string verdict_line(const TraceQuality& quality) {
  const auto count = [&](CheckStatus status) {
    return std::ranges::count(quality.checks, status, &TraceCheck::status);
  };
  const std::string counts = fmt::format("{} of {} checks passed, {} not applicable", count(CheckStatus::passed),
                                         quality.checks.size(), count(CheckStatus::not_applicable));
  return quality.reason.empty() ? fmt::format("{}: {}", to_string(quality.verdict), counts)
                                : fmt::format("{}: {} ({})", to_string(quality.verdict), quality.reason, counts);
}

Table check_table(const TraceQuality& quality) {
  Table table{.title = "Checks", .columns = {{"id"}, {"status"}, {"what"}, {"evidence"}}, .rows = {}, .notes = {}};
  for (const TraceCheck& check : quality.checks) {
    table.rows.push_back({.fields = {check.id, to_string(check.status), check.title, check.evidence}});
  }
  return table;
}

Table stage_table(const Trace& trace, const Attribution& attribution) {
  constexpr const char* kTitle = "Where a step's time goes";
  if (!attribution.believable || attribution.steps.empty()) {
    return refused(kTitle, attribution);
  }
  const auto steps = static_cast<double>(attribution.steps.size());
  const bool device = attribution.on_device;
  Table table{
      .title = kTitle,
      .columns =
          {{"stage"}, {"host", true}, {"share", true}, {"operators", true}, {"allocations", true}, {"allocated", true}},
      .rows = {},
      .notes = {}};
  if (device) {
    table.columns.insert(table.columns.end(), {{"device", true}, {"kernels", true}});
  }
  table.columns.insert(table.columns.end(), {{"modelled", true}, {"of bandwidth", true}});
  const auto add = [&](std::string name, const StageCost& cost) {
    std::vector<std::string> fields{std::move(name),
                                    per_step(cost.host_ns, steps),
                                    share(cost.host_ns, attribution.steps_ns),
                                    number(cost.operators, steps),
                                    number(cost.allocations, steps),
                                    bytes(cost.allocated_bytes, steps)};
    if (device) {
      fields.push_back(per_step(cost.device_ns, steps));
      fields.push_back(number(cost.kernels, steps));
    }
    fields.push_back(bytes(cost.expected_bytes, steps));
    fields.push_back(cost.bandwidth_share ? format_percent(*cost.bandwidth_share) : "-");
    table.rows.push_back({.fields = std::move(fields)});
  };
  // What is in no stage stands in one row: its time is the residual, its operators are those of `other`.
  StageCost outside{.host_ns = residual_ns(attribution)};
  for (const StageCost& cost : attribution.stages) {
    if (cost.stage != Stage::other) {
      add(kStageNames.at(static_cast<std::size_t>(cost.stage)), cost);
    } else {
      const std::int64_t in_no_stage = outside.host_ns;
      outside = cost;
      outside.host_ns = in_no_stage;
    }
  }
  add("in no stage", outside);
  StageCost all{.host_ns = attribution.steps_ns};
  for (const StageCost& cost : attribution.stages) {
    all.device_ns += cost.device_ns;
    all.operators += cost.operators;
    all.kernels += cost.kernels;
    all.allocations += cost.allocations;
    all.allocated_bytes += cost.allocated_bytes;
    all.expected_bytes += cost.expected_bytes;
  }
  add("a step", all);
  table.notes.push_back(fmt::format("mean of {} traced steps, times without what inner spans took; bound by {}",
                                    attribution.steps.size(), attribution.bound_by));
  if (const auto& devices = trace.events().session.devices;
      !devices.empty() && devices.front().measured_bytes_per_second > 0) {
    table.notes.push_back(
        fmt::format("the memory was measured at {:.1f} GB/s; modelled are the bytes that no "
                    "implementation can do without",
                    devices.front().measured_bytes_per_second / 1e9));
  }
  add_gaps(table, attribution, steps);
  return table;
}

Table operator_table(const Trace& trace, const Attribution& attribution, std::size_t most) {
  if (!attribution.believable || attribution.steps.empty()) {
    return refused("Operators", attribution);
  }
  const bool device = attribution.on_device && !attribution.kernels.empty();
  const std::vector<OperatorCost>& costs = device ? attribution.kernels : attribution.operators;
  const auto steps = static_cast<double>(attribution.steps.size());
  // The account has a row a layer; people ask by operator first.
  std::vector<OperatorCost> merged;
  for (const OperatorCost& cost : costs) {
    const auto found = std::ranges::find_if(
        merged, [&](const OperatorCost& other) { return other.name == cost.name && other.stage == cost.stage; });
    if (found == merged.end()) {
      merged.push_back(cost);
    } else {
      found->calls += cost.calls;
      found->self_ns += cost.self_ns;
      found->total_ns += cost.total_ns;
    }
  }
  std::ranges::stable_sort(merged, std::ranges::greater(), &OperatorCost::self_ns);
  Table table{
      .title = device ? "Kernels" : "Operators",
      .columns = {{device ? "kernel" : "operator"}, {"stage"}, {"calls", true}, {"time", true}, {"share", true}},
      .rows = {},
      .notes = {}};
  for (const OperatorCost& cost : merged) {
    if (table.rows.size() == most) {
      table.notes.push_back(fmt::format("{} more have less", merged.size() - most));
      break;
    }
    table.rows.push_back({.fields = {trace.text(cost.name), kStageNames.at(static_cast<std::size_t>(cost.stage)),
                                     number(cost.calls, steps), per_step(cost.self_ns, steps),
                                     share(cost.self_ns, attribution.steps_ns)}});
  }
  return table;
}

std::string perturbation_line(const Perturbation& perturbation) {
  if (perturbation.pairs == 0) {
    return "what tracing costs was not measured (--pairs 0)";
  }
  return fmt::format("tracing makes a step {} times as long [{}, {}], by {} pairs of visits",
                     format_ratio(perturbation.ratio), format_ratio(perturbation.low), format_ratio(perturbation.high),
                     perturbation.pairs);
}

std::vector<std::string> trace_endings() {
  std::vector<std::string> endings;
  std::ranges::transform(kViewers, std::back_inserter(endings), &Viewer::ending);
  return endings;
}

void check_trace_path(const std::string& flag, const std::string& path) {
  const std::vector<std::string> endings = trace_endings();
  if (std::ranges::none_of(endings, [&](const std::string& ending) { return path.ends_with(ending); })) {
    throw std::invalid_argument(
        fmt::format("{}: '{}' does not say which format; end it with one of {}", flag, path, fmt::join(endings, ", ")));
  }
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  if (!folder.empty() && !std::filesystem::is_directory(folder)) {
    throw std::invalid_argument(fmt::format("{}: there is no folder '{}'; make it first", flag, folder.string()));
  }
}

std::string how_to_open(const std::string& path) {
  const auto found =
      std::ranges::find_if(kViewers, [&](const Viewer& viewer) { return path.ends_with(viewer.ending); });
  return found == kViewers.end() ? path : fmt::format("{}: {}", path, found->how);
}

TraceRecord trace_record(const Trace& trace, const TraceQuality& quality, const Attribution& attribution) {
  const TraceSession& session = trace.events().session;
  TraceRecord record{.file = "",
                     .command = "",
                     .verdict = to_string(quality.verdict),
                     .reason = quality.reason,
                     .tier = static_cast<std::int64_t>(session.tier),
                     .steps = static_cast<std::int64_t>(attribution.steps.size()),
                     .steps_ns = attribution.steps_ns,
                     .residual_ns = residual_ns(attribution),
                     .perturbation = session.perturbation.ratio,
                     .perturbation_low = session.perturbation.low,
                     .perturbation_high = session.perturbation.high,
                     .shares = {}};
  for (const StageCost& cost : attribution.stages) {
    record.shares.push_back({.kind = "stage",
                             .name = kStageNames.at(static_cast<std::size_t>(cost.stage)),
                             .host_ns = cost.host_ns,
                             .device_ns = cost.device_ns,
                             .operators = cost.operators,
                             .kernels = cost.kernels,
                             .allocations = cost.allocations,
                             .allocated_bytes = cost.allocated_bytes});
  }
  const auto gaps = gap_sums(attribution);
  for (std::size_t cause = 0; cause < gaps.size(); ++cause) {
    if (gaps[cause] > 0) {
      record.shares.push_back({.kind = "gap", .name = kGapCauseNames[cause], .device_ns = gaps[cause]});
    }
  }
  return record;
}

}  // namespace decodelab
