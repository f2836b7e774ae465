// The process of a worker: started by a shell, asked line by line, stopped while it is idle, and killed at the end if
// it is still there.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include <sys/types.h>

#include "bench/measure/process/line_reader.h"
#include "bench/measure/worker.h"

namespace decodelab {

/// Thrown where the process has ended or broke the line protocol; the message says how, and quotes the last line that
/// the process printed.
class WorkerDied : public WorkerError {
 public:
  explicit WorkerDied(const std::string& message) : WorkerError(RowStatus::failed, message) {}
};

/// Thrown where no reply came in time; the process was killed.
class WorkerTimedOut : public WorkerError {
 public:
  explicit WorkerTimedOut(const std::string& message) : WorkerError(RowStatus::timeout, message) {}
};

/// A command run by /bin/sh in a process group of its own, with descriptor 3 to read requests from and descriptor 4 to
/// write replies to.
///
/// stdout and stderr go to a file without a name, whose last line explains a death. Destroying the object kills the
/// whole group. When the runner itself is killed, the shell dies with it, and the kernel sends SIGHUP to what is left
/// of a stopped group.
///
/// The process may use all usable_cores(), however this thread is bound. `places` holds a core for each of its threads,
/// or nothing; OMP_PLACES and OMP_PROC_BIND tell them to the process, as libgomp and other OpenMP runtimes expect. A
/// library with threads of its own must place them itself.
class WorkerProcess {
 public:
  static constexpr int kRequestDescriptor = 3;
  static constexpr int kReplyDescriptor = 4;

  /// Throws std::runtime_error when no process can be started.
  explicit WorkerProcess(const std::string& command, const std::vector<std::int64_t>& places = {});
  ~WorkerProcess();
  WorkerProcess(const WorkerProcess&) = delete;
  WorkerProcess& operator=(const WorkerProcess&) = delete;

  /// Called in the process: returns the places that it was started with; none where it was started otherwise.
  static std::vector<std::int64_t> own_places();

  /// Sends one line and returns the line that answers it. Throws WorkerDied or WorkerTimedOut, after which the process
  /// is gone.
  std::string ask(const std::string& line, std::chrono::milliseconds limit);
  /// Stop the whole group, so that an idle worker takes no core time (SIGSTOP), or continue it (SIGCONT).
  void stop() const;
  void go_on() const;
  /// Closes the descriptors, so that a well-behaved worker ends by itself.
  void begin_end() const;
  /// Calls begin_end() where that was not done, waits for the process to end, and kills what is left after `limit`.
  void end(std::chrono::milliseconds limit);

  /// Return the core seconds that the group's processes have used, or the bytes that they hold; 0 where they are gone.
  double cpu_seconds() const;
  std::int64_t resident_bytes() const;

 private:
  void send(const std::string& line, std::chrono::steady_clock::time_point deadline);
  [[noreturn]] void died(const std::string& how);
  void kill_group();
  std::string last_words() const;

  pid_t process_ = -1;
  int socket_ = -1;
  int log_ = -1;
  std::optional<LineReader> replies_;
};

}  // namespace decodelab
