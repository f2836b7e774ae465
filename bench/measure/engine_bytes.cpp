// Adds up the ranges of one step by their stage.
#include "bench/measure/engine_bytes.h"

#include <algorithm>
#include <array>
#include <utility>

#include "bench/measure/engine_cell.h"
#include "bench/plan/modelled_work.h"
#include "engine/runtime.h"
#include "profiles/collect/range_counters.h"

namespace decodelab {
namespace {

/// Ranges to have room for: a layer has some nine stages, a step some more outside of its layers.
constexpr std::int64_t kRangesOfALayer = 16;
/// Decode steps to run: one that loads the kernels, and the one that is counted.
constexpr std::int64_t kSteps = 2;

/// Makes the listener receive the ranges of this thread while the object lives.
class Listening final {
 public:
  explicit Listening(RangeListener& listener) : before_(std::exchange(range_listener, &listener)) {}
  ~Listening() { range_listener = before_; }
  Listening(const Listening&) = delete;
  Listening& operator=(const Listening&) = delete;

 private:
  RangeListener* before_;
};

std::vector<CountedRange> counted_ranges(CellRunner& runner, std::int64_t most_ranges) {
  RangeCounters counters(most_ranges);
  counters.start();
  {
    const Listening listening(counters);
    runner.step();
  }
  return counters.stop();
}

/// "12 mlp" is the thirteenth range, of the stage mlp.
std::size_t stage_of(const CountedRange& range) {
  const std::string name = range.name.substr(range.name.find(' ') + 1);
  for (std::size_t stage = 0; stage < kStageNames.size(); ++stage) {
    if (name == kStageNames[stage]) {
      return stage;
    }
  }
  return static_cast<std::size_t>(Stage::other);
}

}  // namespace

CountedBytes count_bytes(const Engine& engine, const CellInput& input, const CellRecord& cell) {
  const ModelConfig& config = engine.model().config();
  const std::string& device = engine.model().device();
  if (device == "cpu") {
    return {.stages = {}, .refusal = "a CPU does not tell a program what its memory moves"};
  }
  if (cell.phase != Phase::prefill && cell.phase != Phase::decode) {
    return {.stages = {}, .refusal = "a completion is many steps: take phase prefill or decode"};
  }
  CacheSnapshots snapshots;
  CellRunner runner(engine, input, cell, 0, snapshots);
  const std::int64_t steps = cell.phase == Phase::decode ? std::min(kSteps, decode_room(config, cell)) : 1;
  runner.prepare(steps);
  runner.step();
  const bool goes_on = runner.has_room();
  if (!goes_on) {
    runner.prepare(steps);
  }
  synchronize(device);
  std::vector<CountedRange> ranges;
  try {
    ranges = counted_ranges(runner, kRangesOfALayer * (config.layers + 2));
  } catch (const CountersRefused& refused) {
    return {.stages = {}, .refusal = refused.what()};
  }
  std::array<StageTraffic, kStageNames.size()> all{};
  const StageBytes model = modelled_stage_bytes(config, cell, cell.length + (goes_on ? 1 : 0), engine.coded_bytes());
  for (std::size_t stage = 0; stage < all.size(); ++stage) {
    all[stage].stage = static_cast<Stage>(stage);
    all[stage].modelled_bytes = model.outside[stage];
    for (const StageBytes::ByStage& layer : model.layers) {
      all[stage].modelled_bytes += layer[stage];
    }
  }
  for (const CountedRange& range : ranges) {
    StageTraffic& traffic = all[stage_of(range)];
    traffic.read_bytes += range.read_bytes;
    traffic.written_bytes += range.written_bytes;
  }
  CountedBytes counted;
  for (const StageTraffic& traffic : all) {
    if (traffic.modelled_bytes > 0 || traffic.read_bytes + traffic.written_bytes > 0) {
      counted.stages.push_back(traffic);
    }
  }
  return counted;
}

}  // namespace decodelab
