// One child process whose messages come line by line.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "bench/measure/process/line_reader.h"

namespace decodelab {

/// Exit code of a child that could not be executed, as a shell reports it.
inline constexpr int kExecFailed = 127;

// Called in a child between fork and exec, where only async-signal-safe calls may be made.
/// Lets the kernel kill the child with the thread that made it; ends the child where its parent is gone already.
void die_with(pid_t parent);
/// Lets the child read nothing, and print into the file `log`.
void print_into(int log);

/// A child with a pipe from its descriptor kEventDescriptor; it dies with its parent. Destroying it kills it.
class ChildProcess {
 public:
  /// The descriptor that the child writes its messages to.
  static constexpr int kEventDescriptor = 3;
  /// The descriptor through which the child leaves a number for its parent, without waking it.
  static constexpr int kNoteDescriptor = 4;

  /// Starts `arguments[0]` with `arguments`. Throws std::runtime_error when it cannot.
  explicit ChildProcess(const std::vector<std::string>& arguments);
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  /// Returns the next whole line, or nothing after `timeout_ms` without one; check ended() then.
  std::optional<std::string> read_line(int timeout_ms) { return reader_->next(timeout_ms); }
  /// Returns whether the child has closed its pipe and every line was read.
  bool ended() const { return reader_->ended(); }
  /// Waits for the child to end and returns its exit status as waitpid() reports it.
  int wait();
  /// Returns the number that the child left last, also after its death; 0 where it left none.
  std::int64_t note() const;
  /// Called in the child: leaves a number for the parent. Does nothing in a process that is no ChildProcess.
  static void leave_note(std::int64_t note);
  void signal(int number) const;

 private:
  pid_t process_ = -1;
  int descriptor_ = -1;
  int note_ = -1;
  std::optional<LineReader> reader_;
};

}  // namespace decodelab
