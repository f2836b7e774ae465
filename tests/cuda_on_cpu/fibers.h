// Fibers: the threads of a CUDA block, of which one runs at a time until it pauses.
#pragma once

#include <memory>
#include <vector>

namespace decodelab::cuda_on_cpu {

class Fibers final {
 public:
  Fibers();
  ~Fibers();
  Fibers(const Fibers&) = delete;
  Fibers& operator=(const Fibers&) = delete;

  /// Makes `count` fibers, each of which calls `body(context)` when it is first resumed. What earlier fibers left
  /// undone is dropped, without destructors.
  void start(unsigned count, void (*body)(void*), void* context);
  /// Runs a fiber until it pauses or ends. Returns whether it has ended.
  bool resume(unsigned fiber);
  /// Goes back to resume(). Called by the fiber that runs.
  void pause();

  /// The fiber that runs, or ran last.
  unsigned current() const { return current_; }
  /// Whether an address lies on the stack of the current fiber.
  bool on_stack(const void* address) const;

 private:
  struct Fiber;
  static void enter(unsigned high, unsigned low);

  std::vector<std::unique_ptr<Fiber>> fibers_;
  struct Scheduler;
  std::unique_ptr<Scheduler> scheduler_;
  void (*body_)(void*) = nullptr;
  void* context_ = nullptr;
  unsigned current_ = 0;
};

}  // namespace decodelab::cuda_on_cpu
