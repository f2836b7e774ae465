// Writes, opens and keeps traces.
#include "bench/commands/trace_words.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <stdexcept>

#include <fmt/format.h>

#include "base/files.h"
#include "base/table.h"
#include "base/units.h"
#include "profiles/trace/summary_json.h"
#include "profiles/write/write_trace.h"

namespace decodelab {
namespace {

constexpr const char* kSummaryEnding = ".summary.json";

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

}  // namespace

void check_trace_path(const std::string& flag, const std::string& path) {
  if (!path.ends_with(kSummaryEnding)) {
    try {
      trace_format(path);
    } catch (const std::invalid_argument& error) {
      throw std::invalid_argument(fmt::format("{}: {} {} is the account alone.", flag, error.what(), kSummaryEnding));
    }
  }
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  if (!folder.empty() && !std::filesystem::is_directory(folder)) {
    throw std::invalid_argument(fmt::format("{}: there is no folder '{}'; make it first", flag, folder.string()));
  }
}

void write_trace_file(const Trace& trace, const TraceQuality& quality, const Attribution& attribution,
                      const std::string& path) {
  if (path.ends_with(kSummaryEnding)) {
    write_file("--out", path, summary_text(trace, quality, attribution));
  } else {
    write_trace(trace, quality, path);
  }
}

std::string how_to_open(const std::string& path) {
  const auto found =
      std::ranges::find_if(kViewers, [&](const Viewer& viewer) { return path.ends_with(viewer.ending); });
  return found == kViewers.end() ? path : fmt::format("{}: {}", path, found->how);
}

std::string bytes_text(const CountedBytes& counted) {
  if (!counted.refusal.empty()) {
    return fmt::format("bytes were not counted: {}\n", counted.refusal);
  }
  Table table{
      .title = "Bytes of one step in the device's memory, counted in a pass of their own",
      .columns = {{"Stage"}, {"Modelled", true}, {"Read", true}, {"Written", true}, {"Moved / modelled", true}},
      .rows = {},
      .notes = {"Below 1: some of it came from the device's caches. Above 1: something is moved more than once."}};
  StageTraffic all;
  const auto add = [&table](const std::string& name, const StageTraffic& stage) {
    const double moved = stage.read_bytes + stage.written_bytes;
    table.rows.push_back(
        {.fields = {name, format_bytes(stage.modelled_bytes), format_bytes(std::llround(stage.read_bytes)),
                    format_bytes(std::llround(stage.written_bytes)),
                    stage.modelled_bytes > 0 ? fmt::format("{:.3f}", moved / static_cast<double>(stage.modelled_bytes))
                                             : std::string()}});
  };
  for (const StageTraffic& stage : counted.stages) {
    all.modelled_bytes += stage.modelled_bytes;
    all.read_bytes += stage.read_bytes;
    all.written_bytes += stage.written_bytes;
    add(kStageNames.at(static_cast<std::size_t>(stage.stage)), stage);
  }
  add("sum", all);
  return to_text(table);
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
