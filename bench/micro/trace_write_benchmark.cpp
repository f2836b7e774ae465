// Time to write a million events of a decode in each format, and what a byte of the file costs.
#include <filesystem>
#include <string>
#include <utility>

#include <benchmark/benchmark.h>
#include <unistd.h>

#include "profiles/collect/synthetic.h"
#include "profiles/trace/quality.h"
#include "profiles/trace/trace.h"
#include "profiles/write/rows.h"
#include "profiles/write/write_trace.h"

namespace decodelab {
namespace {

constexpr std::size_t kEvents = 1'000'000;

/// Steps of a model with 40 layers of 12 kernels, until there are kEvents rows.
Trace million_events() {
  SyntheticShape shape{.layers = 40, .kernels_per_layer = 12, .steps = 8};
  const std::size_t rows = event_count(synthetic_trace(shape).events);
  shape.steps = static_cast<int>(kEvents * static_cast<std::size_t>(shape.steps) / rows + 1);
  return seal(synthetic_trace(shape).events);
}

/// An item is an event.
void write_events(benchmark::State& state, const std::string& ending) {
  static const Trace trace = million_events();
  const TraceQuality quality{.verdict = TraceVerdict::ok};
  const std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("decodelab-benchmark-" + std::to_string(getpid()) + ending);
  for (auto _ : state) write_trace(trace, quality, path, {.most_events = 2 * static_cast<std::int64_t>(kEvents)});
  const auto events = static_cast<double>(event_count(trace.events()));
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(events));
  state.counters["events"] = events;
  state.counters["file_MB"] = static_cast<double>(std::filesystem::file_size(path)) / 1e6;
  std::filesystem::remove(path);
}

BENCHMARK_CAPTURE(write_events, pftrace, ".pftrace")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(write_events, json_gz, ".json.gz")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(write_events, json, ".json")->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace decodelab

BENCHMARK_MAIN();
