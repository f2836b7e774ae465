// Reports the engine's ranges as NVTX ranges, so that Nsight Systems and other tools show the same ranges.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "profiles/range.h"

namespace decodelab {

inline constexpr const char* kNvtxDomainName = "decode";
/// The range around the steps of a trace; a registered string, which is what `nsys --nvtx-capture` can find.
inline constexpr const char* kNvtxWindowName = "window";

/// Pushes and pops ranges of the domain "decode": "step", "layer 3", and the names of stages, all registered strings,
/// each with the index of the step as its payload.
class NvtxRanges final : public RangeListener {
 public:
  /// Becomes the listener of this thread while it lives, and passes every call on to the listener before it. Construct
  /// and destroy it on one thread.
  NvtxRanges();
  ~NvtxRanges() override;
  NvtxRanges(const NvtxRanges&) = delete;
  NvtxRanges& operator=(const NvtxRanges&) = delete;

  /// Returns whether a tool listens: a profiler that was injected, or a test. Without one there is no need for an
  /// object of this class.
  static bool tool_attached();
  /// Returns in one sentence why no tool listens; empty where one does.
  static std::string why_not();

  void enter(Stage stage) override;
  void leave() override;
  void add(Amount amount, std::int64_t value) override;
  void enter_layer(std::int64_t layer) override;
  void leave_layer() override;
  void enter_step(std::int64_t index) override;
  void leave_step() override;

  /// Opens the range around the steps of a trace; leave_window() closes it.
  void enter_window();
  void leave_window();

 private:
  struct Strings;
  void pop();

  std::unique_ptr<Strings> strings_;
  RangeListener* next_;
  std::int64_t step_ = 0;
};

}  // namespace decodelab
