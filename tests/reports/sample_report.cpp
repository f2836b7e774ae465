// Writes a made-up store and the report of it, for tests that open the page or read it beside the store: sample_report KIND FOLDER.
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
  for (std::int64_t i = 0; i < 25; ++i) options.lengths.push_back(64 + i * 163);
  options.arms = {{"causal"}, {"bigcode", 0.7}, {"bigcode,+fused-layer-norm", 0.69}};
  return options;
}

SampleOptions one_cell() {
  SampleOptions options;
  options.phases = {"decode"};
  options.batches = {1};
  options.lengths = {64};
  options.with_failures = false;
  return options;
}

/// All phases, traces, and completions to hold predictions against.
RunData small_run() {
  SampleOptions options = small();
  options.phases = {"prefill", "decode", "generate"};
  RunData data = testing::sample_run(options);
  data.run.plan_json = R"({"seed": 1, "max_tokens": 8})";
  for (const CellRecord& cell : data.cells) {
    if (cell.phase == "decode") {
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
  for (BlockRecord& block : data.blocks) block.other_cpu_share = block.launch == 0 && block.block == 0 ? 0.9 : 0.001;
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
  for (const BlockRecord& block : data.blocks) store.add_block(plan.run.id, block);
  for (const TraceRecord& trace : data.traces) store.save_trace(plan.run.id, trace);
}

int run(const std::string& kind, const std::filesystem::path& folder) {
  const auto found = kKinds.find(kind);
  if (found == kKinds.end()) {
    std::string known;
    for (const auto& [name, make] : kKinds) known += " " + name;
    std::cerr << "sample_report: no kind '" << kind << "'; there are" << known << '\n';
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
  const auto again = std::chrono::steady_clock::now();
  write_report(std::span(&data, 1), folder / "data", warnings,
               {ReportFormat::markdown, ReportFormat::json, ReportFormat::csv});
  fmt::print("{{\"seconds\": {:.3f}, \"seconds_without_figures\": {:.3f}, \"warned\": {}}}\n", all, seconds(again),
             warnings.str().empty() ? "false" : "true");
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
