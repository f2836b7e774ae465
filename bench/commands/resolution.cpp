// Runs the two A/As of a doctor and says what they can resolve.
#include "bench/commands/resolution.h"

#include <chrono>
#include <cmath>
#include <filesystem>
#include <limits>
#include <stdexcept>

#include <fmt/format.h>
#include <unistd.h>

#include "bench/commands/checkpoint_source.h"
#include "bench/commands/new_run.h"
#include "bench/machine/environment.h"
#include "bench/measure/engine_worker.h"
#include "bench/measure/gate_run.h"
#include "bench/measure/interrupt.h"
#include "bench/plan/arm.h"
#include "reports/statistics/comparison.h"
#include "reports/statistics/gate_blocks.h"

namespace decodelab {
namespace {

using Clock = std::chrono::steady_clock;

/// More than any half minute holds.
constexpr std::int64_t kManyBlocks = 10'000;
constexpr std::int64_t kManyLaunches = 1'000;
/// Fewer values give no useful spread.
constexpr std::size_t kFewestValues = 3;

class TemporaryStore {
 public:
  TemporaryStore() {
    std::string pattern = (std::filesystem::temp_directory_path() / "decodelab-doctor-XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) {
      throw std::runtime_error("cannot make a temporary folder; set TMPDIR to a folder that can be written to");
    }
    folder_ = pattern;
    store_.emplace(folder_ / "store.sqlite", StoreAccess::write);
  }
  ~TemporaryStore() {
    store_.reset();
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  TemporaryStore(const TemporaryStore&) = delete;
  TemporaryStore& operator=(const TemporaryStore&) = delete;
  Store& operator*() { return *store_; }

 private:
  std::filesystem::path folder_;
  std::optional<Store> store_;
};

SweepRequest request_of(const ResolutionRequest& asked) {
  return {.model = asked.model,
          .phases = {Phase::decode},
          .batches = {asked.batch},
          .lengths = {asked.length},
          .threads = asked.threads,
          .fill = "random"};
}

RunData added(RunData data, Store& store, const SweepRequest& sweep, const CheckpointSource& source) {
  describe_run(data, sweep, source);
  store.add_run(data);
  return data;
}

NullContrasts in_process(Store& store, const ResolutionRequest& asked, const CheckpointSource& source,
                         Clock::time_point end, const std::function<void()>& tick) {
  SweepRequest sweep = request_of(asked);
  sweep.arms = {asked.arm};
  sweep.null_arm = true;
  sweep.launches = 1;
  sweep.blocks = kManyBlocks;
  const RunData planned = added(make_sweep(sweep, source.config), store, sweep, source);
  const auto model = Model::load(source.path, dtype_from_name(sweep.dtype), "cpu", memory_to_take("cpu"));
  const LaunchContext context{
      .make_worker = [&](const ArmRecord& record) -> std::unique_ptr<Worker> {
        const Arm arm = parse_arm(record.label);
        return make_engine_worker(std::make_shared<const Engine>(model, bind_arm(arm, reference_plan())), arm,
                                  CellInput{});
      },
      .available_memory_bytes = available_memory_bytes,
      .piece_started = [&](const LaunchPiece&) { tick(); },
      .piece_done = [](const LaunchPiece&, double) {},
      .arm_started = [](std::int64_t) {},
      .stop_requested = [&] { return interrupted() || Clock::now() > end; },
      .visits = {.slice_ns = slice_ns_of(sweep)},
  };
  const auto start = Clock::now();
  run_launch(store, planned.run.id, 0, context);
  const std::chrono::duration<double> took = Clock::now() - start;
  const RunData data = store.load_run(planned.run.id);
  std::vector<const BlockRecord*> blocks;
  for (const BlockRecord& block : data.blocks) {
    blocks.push_back(&block);
  }
  NullContrasts result;
  for (const BlockContrast& block : compare_arms(blocks, data.arms[1].id, data.arms[0].id).blocks) {
    result.values.push_back(block.contrast);
  }
  result.seconds_each = took.count() / std::max<double>(1, static_cast<double>(result.values.size()));
  return result;
}

NullContrasts relaunched(Store& store, const ResolutionRequest& asked, const CheckpointSource& source,
                         Clock::time_point end, const std::function<void()>& tick) {
  SweepRequest sweep = request_of(asked);
  sweep.workers = {"baseline=" + own_worker(asked.arm), "candidate=" + own_worker(asked.arm)};
  sweep.launches = kManyLaunches;
  sweep.slice_ns = kSliceNs;  // as in a gate
  sweep.blocks = kFittedBlocks;
  const std::int64_t run_id = added(plan_gate_run(sweep, source.config), store, sweep, source).run.id;
  GateRun gate(store, run_id, [&](std::int64_t, double) { tick(); }, std::numeric_limits<double>::infinity());
  const auto start = Clock::now();
  std::int64_t blocks = 0;
  while (Clock::now() < end && gate.run_until(blocks + 1) == LaunchEnd::complete) {
    ++blocks;
  }
  const std::chrono::duration<double> took = Clock::now() - start;
  const RunData data = store.load_run(run_id);
  GateArms arms;
  if (const auto problem = find_gate_arms(data, arms)) {
    throw std::logic_error(*problem);
  }
  NullContrasts result;
  for (const GateCell& cell : gate_cells(data, arms, gate_blocks_of(data), 1.0)) {
    for (const double value : cell.values) {
      if (!std::isnan(value)) {
        result.values.push_back(value);
      }
    }
  }
  result.seconds_each = took.count() / std::max<double>(1, static_cast<double>(blocks));
  return result;
}

/// Returns the effect that a two-sided test at .05 finds with 80 % power after `seconds`, or `-` where that cannot be
/// said.
std::string found_after(const NullContrasts& null, double seconds, std::size_t fewest) {
  const auto count = static_cast<std::size_t>(seconds / null.seconds_each);
  if (null.values.size() < kFewestValues || count < fewest) {
    return "-";
  }
  const double sd = standard_deviation(null.values);
  const double t = student_t_quantile(0.975, count) + student_t_quantile(0.8, count);
  return fmt::format("{:.2f} %", 100 * std::expm1(t * sd / std::sqrt(static_cast<double>(count))));
}

}  // namespace

std::optional<Resolution> measure_resolution(const ResolutionRequest& request,
                                             const std::function<void(double seconds_left)>& display) {
  TemporaryStore store;
  const CheckpointSource source = open_checkpoint(request.model, dtype_from_name("fp32"), "cpu");
  const auto start = Clock::now();
  const auto whole = std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(request.seconds));
  const auto tick = [&] {
    display(std::max(0.0, std::chrono::duration<double>(start + whole - Clock::now()).count()));
  };
  Resolution resolution{.in_process = in_process(*store, request, source, start + whole / 2, tick),
                        .relaunched = relaunched(*store, request, source, start + whole, tick)};
  return interrupted() ? std::nullopt : std::optional(std::move(resolution));
}

Table resolution_table(const Resolution& resolution, const ResolutionRequest& request) {
  constexpr std::size_t kFewestBlocks = 2;
  constexpr std::size_t kFewestGateBlocks = 6;
  Table table{
      .title = fmt::format("What can be resolved here (A/A of {}, {}, b{} tg @ d{}, {:.0f} s)", request.arm,
                           request.model, request.batch, request.length, request.seconds),
      .columns =
          {{"way"}, {"blocks", true}, {"s each", true}, {"sd", true}, {"30 s", true}, {"60 s", true}, {"180 s", true}},
      .rows = {},
      .notes = {"Effects that a two-sided test at .05 finds with 80 % power after so many seconds, from the spread "
                "seen. In one process says nothing about another process: layout and allocator vary per launch.",
                "A gate block is four fresh processes; below 6 of them there is no verdict."}};
  const auto add = [&](const char* way, const NullContrasts& null, std::size_t fewest) {
    const bool spread = null.values.size() >= kFewestValues;
    table.rows.push_back(
        {.fields = {way, fmt::format("{}", null.values.size()), fmt::format("{:.2f}", null.seconds_each),
                    spread ? fmt::format("{:.2f} %", 100 * standard_deviation(null.values)) : "-",
                    found_after(null, 30, fewest), found_after(null, 60, fewest), found_after(null, 180, fewest)}});
  };
  add("one process, mirrored blocks", resolution.in_process, kFewestBlocks);
  add("relaunched, gate blocks", resolution.relaunched, kFewestGateBlocks);
  return table;
}

}  // namespace decodelab
