// Starts a server by fork and exec, and ends it.
#include "bench/measure/serving/server_process.h"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <stdexcept>
#include <thread>

#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/machine/environment.h"
#include "bench/measure/process/child_process.h"
#include "bench/measure/process/last_words.h"

namespace decodelab {
namespace {

/// How often a wait looks whether the server has ended.
constexpr auto kServerPoll = std::chrono::milliseconds(2);
/// A server may tidy up for so long. The runner waits 2 s for its worker, which has to end too.
constexpr auto kServerFarewell = std::chrono::milliseconds(1200);

/// Returns the value as one word of the shell.
std::string shell_word(const std::string& value) {
  const bool plain = !value.empty() && std::ranges::all_of(value, [](unsigned char c) {
    return std::isalnum(c) != 0 || std::strchr("_./:+-@%,=", c) != nullptr;
  });
  if (plain) {
    return value;
  }
  std::string word = "'";
  for (const char c : value) {
    word += c == '\'' ? R"('\'')" : std::string(1, c);
  }
  return word + "'";
}

/// Lets the shell become the command, where that is a single one: then the server itself dies with its worker, not its
/// shell alone.
std::string as_one_process(const std::string& command) {
  const std::string first = command.substr(0, command.find(' '));
  if (command.find_first_of(";&|<>()`\n") != std::string::npos || first == "exec") {
    return command;
  }
  return (first.find('=') == std::string::npos ? "exec " : "exec env ") + command;
}

/// Runs in the child: only async-signal-safe calls.
[[noreturn]] void become_server(const char* command, const cpu_set_t& cores, int log, pid_t parent) {
  sched_setaffinity(0, sizeof cores, &cores);
  die_with(parent);
  print_into(log);
  close_range(STDERR_FILENO + 1, ~0U, 0);
  execl("/bin/sh", "sh", "-c", command, static_cast<char*>(nullptr));
  _exit(kExecFailed);
}

}  // namespace

std::string fill_in_command(const std::string& command, const std::map<std::string, std::string>& values) {
  if (command.find("{port}") == std::string::npos) {
    throw std::invalid_argument(fmt::format(
        "--serve '{}': expected a command that tells the server its port, as in --serve 'llama-server -m {{model}} "
        "--port {{port}}'",
        command));
  }
  std::string filled;
  for (std::size_t at = 0; at < command.size();) {
    const std::size_t end = command[at] == '{' ? command.find('}', at) : std::string::npos;
    const auto value = end == std::string::npos ? values.end() : values.find(command.substr(at + 1, end - at - 1));
    if (value == values.end()) {
      filled += command[at++];
    } else {
      filled += shell_word(value->second);
      at = end + 1;
    }
  }
  return filled;
}

std::uint16_t free_port() {
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  const bool found = listener >= 0 && bind(listener, any, size) == 0 && getsockname(listener, any, &size) == 0;
  const int error = errno;
  close(listener);
  if (!found) {
    throw std::runtime_error(fmt::format("no port of 127.0.0.1 is free: {}", std::strerror(error)));
  }
  return ntohs(address.sin_port);
}

ServerProcess::ServerProcess(const std::string& command) {
  const cpu_set_t cores = set_of_cores(usable_cores());
  const std::string line = as_one_process(command);
  log_ = memfd_create("decodelab-server", MFD_CLOEXEC);
  const pid_t parent = getpid();
  process_ = log_ < 0 ? -1 : fork();
  if (process_ < 0) {
    const int error = errno;
    close(log_);
    throw std::runtime_error(fmt::format("cannot start a server: {}", std::strerror(error)));
  }
  if (process_ == 0) {
    become_server(line.c_str(), cores, log_, parent);
  }
}

ServerProcess::~ServerProcess() {
  end();
  close(log_);
}

std::optional<std::string> ServerProcess::ended(std::chrono::milliseconds patience) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  while (how_.empty()) {
    int status = 0;
    if (waitpid(process_, &status, WNOHANG) == process_) {
      process_ = -1;
      how_ = how_it_ended(status) + last_words_of(log_);
      kill_those_left(family_);
      break;
    }
    if (std::chrono::steady_clock::now() >= deadline) {
      return std::nullopt;
    }
    std::this_thread::sleep_for(kServerPoll);
  }
  return how_;
}

std::string ServerProcess::last_words() const { return last_words_of(log_); }

void ServerProcess::know_family() {
  for (const StartedProcess& known : descendants_of(process_)) {
    if (std::ranges::find(family_, known) == family_.end()) {
      family_.push_back(known);
    }
  }
}

void ServerProcess::end() {
  if (process_ < 0) {
    return;
  }
  know_family();
  kill(process_, SIGTERM);
  kill(process_, SIGCONT);  // It may have been stopped by itself.
  if (!ended(kServerFarewell)) {
    know_family();
    kill(process_, SIGKILL);
    int status = 0;
    while (waitpid(process_, &status, 0) < 0 && errno == EINTR) {
    }
    process_ = -1;
    kill_those_left(family_);
  }
}

}  // namespace decodelab
