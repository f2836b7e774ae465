// What other ranks than the first go through while somebody looks: layers and stages, with their times.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "profiles/range.h"

namespace decodelab {

/// A layer, or a stage in or outside of one.
struct RankRange {
  std::int64_t start_ns = 0;  ///< Of CLOCK_MONOTONIC, which all processes of a machine share.
  std::int64_t end_ns = 0;
  std::int32_t layer = -1;  ///< -1: outside of layers.
  bool is_layer = false;    ///< Then `stage` says nothing.
  Stage stage = Stage::other;
};

/// What one rank went through.
struct RankRecord {
  std::int64_t rank = 0;
  std::int64_t process = 0;
  std::int64_t thread = 0;        ///< Thread id of the operating system.
  std::vector<RankRange> ranges;  ///< In the order in which they ended.
  std::int64_t dropped = 0;       ///< Ranges for which there was no room.
};

/// One rank's part of the memory that ranks share: the rank writes it, and the first one reads it once the rank has
/// stopped.
struct RangeLog {
  static constexpr std::size_t kMost = std::size_t{1} << 16;

  std::atomic<std::size_t> count{0};
  std::int64_t process = 0;
  std::int64_t thread = 0;
  std::int64_t dropped = 0;
  std::array<RankRange, kMost> ranges;
};

/// Listens to the thread that makes it, for as long as it lives, and writes what that goes through to the log, from its
/// beginning. It does not allocate.
class RangeRecorder final : public RangeListener {
 public:
  explicit RangeRecorder(RangeLog& log);
  ~RangeRecorder() override;
  RangeRecorder(const RangeRecorder&) = delete;
  RangeRecorder& operator=(const RangeRecorder&) = delete;

  void enter(Stage stage) override;
  void leave() override { end(); }
  void add(Amount amount, std::int64_t value) override;
  void enter_layer(std::int64_t layer) override;
  void leave_layer() override;

 private:
  static constexpr std::size_t kMostDepth = 32;  ///< Layers and stages nest four deep.

  void begin(const RankRange& range);
  void end();

  RangeLog& log_;
  RangeListener* before_;
  std::array<RankRange, kMostDepth> open_{};
  std::size_t depth_ = 0;
  std::int32_t layer_ = -1;
};

/// Returns what the log holds; its rank writes no more.
RankRecord read_log(const RangeLog& log, std::int64_t rank);

}  // namespace decodelab
