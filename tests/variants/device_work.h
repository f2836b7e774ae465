// Work for a GPU whose length and bytes are known beforehand: what records of a device are held against. No header of
// CUDA in here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <vector>

namespace decodelab::testing {

/// When a kernel began and ended by the device's own timer, read inside of it.
struct SpinTime {
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
};

#ifdef DECODELAB_HAS_CUDA

/// A stream of device 0 that waits for no other, with a buffer of pinned memory and two of the device's. All calls
/// return at once but wait(), times() and the constructor. Throws std::runtime_error where CUDA refuses a call.
class DeviceStream final {
 public:
  /// `slots` spins keep their times; each of the buffers holds `bytes`.
  explicit DeviceStream(std::int64_t slots, std::size_t bytes = 8);
  ~DeviceStream();
  DeviceStream(const DeviceStream&) = delete;
  DeviceStream& operator=(const DeviceStream&) = delete;

  void empty();  ///< A kernel of one thread that does nothing.
  /// One thread that runs until `ns` have passed on the device's timer, and keeps its times in `slot`.
  void spin(std::int64_t ns, std::int64_t slot);
  /// The same, launched programmatically: it may start before the spin that was launched just before it has ended.
  void spin_early(std::int64_t ns, std::int64_t slot);
  /// A kernel that reads the first buffer of the device and writes the second, 16 bytes a thread and turn.
  void copy_by_kernel();

  void copy_to_device(std::size_t bytes);
  void copy_to_host(std::size_t bytes);
  void copy_on_device(std::size_t bytes);
  void set(std::size_t bytes);

  /// Until all of this stream is done.
  void wait();
  std::vector<SpinTime> times();

  struct Impl;

 private:
  friend class DeviceGraph;
  std::unique_ptr<Impl> impl_;
};

/// A CUDA graph of what a function launches on a stream, ready to be replayed there. Throws as the stream does.
class DeviceGraph final {
 public:
  DeviceGraph(DeviceStream& stream, const std::function<void()>& work);
  ~DeviceGraph();
  DeviceGraph(const DeviceGraph&) = delete;
  DeviceGraph& operator=(const DeviceGraph&) = delete;

  void replay();
  /// Gives the nodes that are there the arguments of `work`, which must launch the same kernels in the same order
  /// (cudaGraphExecUpdate).
  void update(const std::function<void()>& work);

 private:
  DeviceStream& stream_;
  void* executable_ = nullptr;
};

/// CUDA's events on the stream that libtorch runs on unless it is told otherwise.
class EventTimer final {
 public:
  EventTimer();
  ~EventTimer();
  EventTimer(const EventTimer&) = delete;
  EventTimer& operator=(const EventTimer&) = delete;

  void start();
  void stop();
  /// Between the last start() and stop(), after waiting for both.
  std::int64_t elapsed_ns() const;

 private:
  void* events_[2] = {nullptr, nullptr};
};

/// A spin on the stream of EventTimer, whose times nobody keeps.
void spin_on_default_stream(std::int64_t ns);

/// The least step of the device's timer that a kernel sees.
std::int64_t timer_tick_ns();
std::int64_t l2_bytes();
std::int64_t multiprocessors();
/// Whether kernels may be launched programmatically: from compute capability 9.0 on.
bool launches_programmatically();

#else

/// Stands where the kernels were not compiled; tests skip before they come here.
class DeviceStream final {
 public:
  explicit DeviceStream(std::int64_t, std::size_t = 8) { throw std::logic_error("this build has no CUDA"); }
  void empty() {}
  void spin(std::int64_t, std::int64_t) {}
  void spin_early(std::int64_t, std::int64_t) {}
  void copy_by_kernel() {}
  void copy_to_device(std::size_t) {}
  void copy_to_host(std::size_t) {}
  void copy_on_device(std::size_t) {}
  void set(std::size_t) {}
  void wait() {}
  std::vector<SpinTime> times() { return {}; }
};

class DeviceGraph final {
 public:
  DeviceGraph(DeviceStream&, const std::function<void()>&) { throw std::logic_error("this build has no CUDA"); }
  void replay() {}
  void update(const std::function<void()>&) {}
};

class EventTimer final {
 public:
  EventTimer() { throw std::logic_error("this build has no CUDA"); }
  void start() {}
  void stop() {}
  std::int64_t elapsed_ns() const { return 0; }
};

inline void spin_on_default_stream(std::int64_t) {}
inline std::int64_t timer_tick_ns() { return 0; }
inline std::int64_t l2_bytes() { return 0; }
inline std::int64_t multiprocessors() { return 0; }
inline bool launches_programmatically() { return false; }

#endif

}  // namespace decodelab::testing
