// A server that a worker starts for itself, and that ends with it.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

#include "bench/measure/process/process_group.h"

namespace decodelab {

/// Returns the command with each `{name}` of `values` replaced by its value, in quotes for the shell where it needs
/// them; other braces stay as they are. Throws std::invalid_argument that names --serve where there is no `{port}`.
std::string fill_in_command(const std::string& command, const std::map<std::string, std::string>& values);

/// Returns a TCP port of 127.0.0.1 that was free a moment ago. Throws std::runtime_error where none is.
std::uint16_t free_port();

/// A command run by /bin/sh in the process group of this process, so that who stops, continues or kills that group does
/// the same to the server.
///
/// The server may use all usable_cores(), gets no descriptor but the first three, and dies with the thread that has
/// made the object; of a command with several parts, its shell does. What it prints goes to a file without a name,
/// whose last line explains a death. Destroying the object ends the server and the processes that it has started.
class ServerProcess {
 public:
  /// Throws std::runtime_error when no process can be started.
  explicit ServerProcess(const std::string& command);
  ~ServerProcess();
  ServerProcess(const ServerProcess&) = delete;
  ServerProcess& operator=(const ServerProcess&) = delete;

  /// Returns how the server ended and its last words, `ended with exit code 1; its last line: ...`; nothing while it
  /// runs. Waits up to `patience` for an end that is under way.
  std::optional<std::string> ended(std::chrono::milliseconds patience = {});
  /// Returns `; its last line: ...` of what the server has printed so far.
  std::string last_words() const;
  /// Notes which processes the server has started, so that none of them outlives it, even where it dies itself.
  void know_family();

 private:
  void end();

  pid_t process_ = -1;
  int log_ = -1;
  std::string how_;  ///< How it ended; empty while it runs.
  std::vector<StartedProcess> family_;
};

}  // namespace decodelab
