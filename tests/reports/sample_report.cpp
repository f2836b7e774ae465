// Writes a made-up store and the report of it (or a comparison, or a history), for tests that open the page or read it
// beside the store.
#include <chrono>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <iostream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "reports/page/comparison/comparison_report.h"
#include "reports/page/history/history_page.h"
#include "reports/page/report.h"
#include "reports/store/store.h"
#include "tests/reports/sample_run.h"
#include "tests/reports/sample_trace.h"

namespace decodelab {
namespace {

using testing::SampleOptions;

const std::string kHostile =
    "</script><script>document.title='broken out'</script><img src=x onerror=\"document.title='broken out'\">'\"`|";
constexpr std::size_t kLongText = 10'000;

SampleOptions small() {
  SampleOptions options;
  options.batches = {1, 4};
  options.lengths = {64, 512};
  options.launches = 10;
  return options;
}

SampleOptions large() {
  SampleOptions options;
  options.batches = {1, 2, 4, 8, 16, 32};
  options.lengths.clear();
  for (std::int64_t i = 0; i < 25; ++i) {
    options.lengths.push_back(64 + i * 163);
  }
  options.arms = {{"causal"}, {"bigcode", 0.7}, {"bigcode,+fused-layer-norm", 0.69}};
  return options;
}

SampleOptions one_cell() {
  SampleOptions options;
  options.phases = {Phase::decode};
  options.batches = {1};
  options.lengths = {64};
  options.with_failures = false;
  return options;
}

/// All phases, traces, and completions to hold predictions against.
RunData small_run() {
  SampleOptions options = small();
  options.phases = {Phase::prefill, Phase::decode, Phase::generate};
  RunData data = testing::sample_run(options);
  data.run.plan_json = R"({"seed": 1, "max_tokens": 8})";
  for (const CellRecord& cell : data.cells) {
    if (cell.phase == Phase::decode) {
      data.traces.push_back(testing::sample_trace(cell.id, 1));
      data.traces.push_back(testing::sample_trace(cell.id, 2, 0.5));
    }
  }
  return data;
}

RunData hostile_run() {
  SampleOptions options = small();
  options.arms = {{"causal"}, {"causal,+kv-grow:tokens=" + kHostile, 0.7}};
  RunData data = testing::sample_run(options);
  data.run.name = kHostile;
  data.run.command = kHostile + std::string(kLongText, 'c');
  data.run.model.name = "/models/" + kHostile + std::string(kLongText, 'm');
  data.run.build.commit = kHostile + std::string(kLongText, 's');
  data.run.machine.cpu = kHostile;
  data.cell_arms[1].status = RowStatus::failed;
  data.cell_arms[1].reason = kHostile + std::string(kLongText, 'r');
  data.cell_arms[0].flags = {kHostile};
  data.cell_arms[0].counters = {{kHostile, 3}};
  TraceRecord trace = testing::sample_trace(data.cells[0].id, 1);
  trace.file = trace.command = trace.reason = trace.shares[0].name = kHostile;
  data.traces = {trace};
  return data;
}

RunData failed_run() {
  RunData data = testing::sample_run(small());
  for (CellArmRecord& row : data.cell_arms) {
    row.status = row.arm_id == 1 ? RowStatus::oom : RowStatus::failed;
    row.reason = "needs 71.2 GiB, 60.1 GiB are available";
    row.engaged.reset();
    row.peak_bytes.reset();
  }
  data.blocks.clear();
  return data;
}

RunData void_run() {
  RunData data = testing::sample_run(small());
  for (BlockRecord& block : data.blocks) {
    block.other_cpu_share = block.launch == 0 && block.block == 0 ? 0.9 : 0.001;
  }
  return data;
}

RunData empty_run() {
  RunData data = testing::sample_run(small());
  data.cells.clear();
  data.arms.clear();
  data.cell_arms.clear();
  data.blocks.clear();
  return data;
}

const std::map<std::string, RunData (*)()> kKinds{
    {"small", small_run},     {"large", [] { return testing::sample_run(large()); }},
    {"hostile", hostile_run}, {"one-cell", [] { return testing::sample_run(one_cell()); }},
    {"failed", failed_run},   {"void", void_run},
    {"empty", empty_run}};

/// Into a new store, whose first run has the ids of sample_run().
void save(Store& store, const RunData& data) {
  RunData plan = data;
  plan.run.id = 0;
  plan.blocks.clear();
  plan.traces.clear();
  for (CellArmRecord& row : plan.cell_arms) {
    --row.cell_id;
    --row.arm_id;
  }
  store.add_run(plan);
  for (const BlockRecord& block : data.blocks) {
    store.add_block(plan.run.id, block);
  }
  for (const TraceRecord& trace : data.traces) {
    store.save_trace(plan.run.id, trace);
  }
}

/// Two commits of which the second is slower, does more and was traced like the first, and has a cell of its own.
int run_comparison(const std::filesystem::path& folder) {
  const RunData before = small_run();
  RunData after = small_run();
  after.run.id = 2;
  after.run.uuid = "second";
  after.run.name = "second";
  after.run.build.commit = "fedcba987654";
  after.cells.back().length = 1024;
  for (CellArmRecord& row : after.cell_arms) {
    row.counters = {{"counted_steps", 8}, {"operators", 88}};
  }
  for (BlockRecord& block : after.blocks) {
    for (VisitRecord& visit : block.visits) {
      for (std::int64_t& ns : visit.samples_ns) {
        ns += visit.arm_id == 1 ? ns / 10 : 0;
      }
    }
  }
  for (TraceRecord& trace : after.traces) {
    trace.shares[0].host_ns += 3'200'000;
    trace.steps_ns += 3'200'000;
  }
  const std::vector<RunComparison> comparisons{make_comparison({&before, ""}, {&after, ""}),
                                               make_comparison({&before, "causal"}, {&before, "bigcode"})};
  write_comparison(comparisons, folder / "report", std::cerr);
  return 0;
}

/// Eight commits, of which the fifth made a step.
int run_history(const std::filesystem::path& folder) {
  std::vector<RunData> runs;
  for (std::int64_t i = 0; i < 8; ++i) {
    SampleOptions options = one_cell();
    options.lengths = {64, 128};
    options.arms = {{"causal", i >= 4 ? 1.08 : 1.0}, {"bigcode", 0.7}};
    options.seed = static_cast<std::uint64_t>(i + 1);
    options.launch_noise = options.step_noise = 0.002;
    runs.push_back(testing::sample_run(options));
    runs.back().run.id = i + 1;
    runs.back().run.started_unix_ns += i;
    runs.back().run.build.commit =
        fmt::format("{:012x}", 0x9e3779b97f4aULL * static_cast<std::uint64_t>(i + 1) % (1ULL << 48U));
  }
  write_history(history_of(runs, {.metric = "mean_ns"}), "mean_ns", folder / "report", std::cerr);
  return 0;
}

int run(const std::string& kind, const std::filesystem::path& folder) {
  if (kind == "comparison") {
    return run_comparison(folder);
  }
  if (kind == "history") {
    return run_history(folder);
  }
  const auto found = kKinds.find(kind);
  if (found == kKinds.end()) {
    std::string known;
    for (const auto& [name, make] : kKinds) {
      known += " " + name;
    }
    std::cerr << "sample_report: no kind '" << kind << "'; there are comparison history" << known << '\n';
    return 2;
  }
  {
    Store store(folder / "store.sqlite", StoreAccess::write);
    save(store, found->second());
  }
  const RunData data = Store(folder / "store.sqlite", StoreAccess::read).load_run(1);
  const auto seconds = [](auto since) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - since).count();
  };
  const auto start = std::chrono::steady_clock::now();
  std::ostringstream warnings;
  write_report(data, folder / "report", warnings);
  const double all = seconds(start);
  const auto alone = std::chrono::steady_clock::now();
  write_report(std::span(&data, 1), folder / "page", warnings, {ReportFormat::html});
  const double page = seconds(alone);
  const auto again = std::chrono::steady_clock::now();
  write_report(std::span(&data, 1), folder / "data", warnings,
               {ReportFormat::markdown, ReportFormat::json, ReportFormat::csv});
  fmt::print(
      "{{\"seconds\": {:.3f}, \"seconds_of_page\": {:.3f}, \"seconds_without_figures\": {:.3f}, \"warned\": {}}}\n",
      all, page, seconds(again), warnings.str().empty() ? "false" : "true");
  std::cerr << warnings.str();
  return 0;
}

}  // namespace
}  // namespace decodelab

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: sample_report KIND FOLDER\n";
    return 2;
  }
  try {
    return decodelab::run(argv[1], argv[2]);
  } catch (const std::exception& error) {
    std::cerr << "sample_report: " << error.what() << '\n';
    return 1;
  }
}
