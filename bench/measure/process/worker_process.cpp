// Starts a worker by fork and exec, talks over a socket with time limits, and reads what the kernel tells of its group.
#include "bench/measure/process/worker_process.h"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <thread>

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/machine/environment.h"
#include "bench/measure/process/child_process.h"
#include "bench/measure/process/last_words.h"
#include "bench/measure/process/process_group.h"

namespace decodelab {
namespace {

using Clock = std::chrono::steady_clock;

/// How often a wait looks whether something has happened.
constexpr int kReplyPollMs = 200;
constexpr auto kEndPoll = std::chrono::milliseconds(2);

/// Returns the variables of this process; where there are `places`, those that place OpenMP's threads are replaced.
std::vector<std::string> environment_with(const std::vector<std::int64_t>& places) {
  std::vector<std::string> variables;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string_view text = *variable;
    if (places.empty() || (!text.starts_with("OMP_PLACES=") && !text.starts_with("OMP_PROC_BIND="))) {
      variables.emplace_back(text);
    }
  }
  if (!places.empty()) {
    variables.push_back(fmt::format("OMP_PLACES={{{}}}", fmt::join(places, "},{")));
    variables.emplace_back("OMP_PROC_BIND=close");
  }
  return variables;
}

/// Runs in the child: only async-signal-safe calls.
[[noreturn]] void become(const char* command, char* const* environment, const cpu_set_t& cores, int socket, int log,
                         pid_t parent) {
  setpgid(0, 0);
  sched_setaffinity(0, sizeof cores, &cores);
  die_with(parent);
  print_into(log);
  // A descriptor above both targets, so that neither duplicate closes it.
  const int high = fcntl(socket, F_DUPFD, WorkerProcess::kReplyDescriptor + 1);
  dup2(high, WorkerProcess::kRequestDescriptor);
  dup2(high, WorkerProcess::kReplyDescriptor);
  close_range(WorkerProcess::kReplyDescriptor + 1, ~0U, 0);
  execle("/bin/sh", "sh", "-c", command, static_cast<char*>(nullptr), environment);
  _exit(kExecFailed);
}

}  // namespace

WorkerProcess::WorkerProcess(const std::string& command, const std::vector<std::int64_t>& places) {
  std::vector<std::string> environment = environment_with(places);
  std::vector<char*> variables;
  for (std::string& variable : environment) {
    variables.push_back(variable.data());
  }
  variables.push_back(nullptr);
  const cpu_set_t cores = set_of_cores(usable_cores());
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    throw std::runtime_error(fmt::format("cannot make a socket: {}", std::strerror(errno)));
  }
  log_ = memfd_create("decodelab-worker", MFD_CLOEXEC);
  const pid_t parent = getpid();
  process_ = log_ < 0 ? -1 : fork();
  if (process_ < 0) {
    const int error = errno;
    close(ends[0]);
    close(ends[1]);
    close(log_);
    throw std::runtime_error(fmt::format("cannot start a process: {}", std::strerror(error)));
  }
  if (process_ == 0) {
    become(command.c_str(), variables.data(), cores, ends[1], log_, parent);
  }
  // Done in both processes, since either may get here first.
  setpgid(process_, process_);
  close(ends[1]);
  socket_ = ends[0];
  replies_.emplace(socket_);
}

std::vector<std::int64_t> WorkerProcess::own_places() {
  const char* const places = std::getenv("OMP_PLACES");
  return places == nullptr ? std::vector<std::int64_t>() : cores_in_places(places);
}

WorkerProcess::~WorkerProcess() {
  kill_group();
  close(socket_);
  close(log_);
}

std::string WorkerProcess::ask(const std::string& line, std::chrono::milliseconds limit) {
  if (process_ < 0) {
    throw WorkerDied("the process is gone");
  }
  const auto deadline = Clock::now() + limit;
  send(line + "\n", deadline);
  try {
    while (!replies_->ended()) {
      if (const auto reply = replies_->next(kReplyPollMs)) {
        return *reply;
      }
      if (Clock::now() > deadline) {
        kill_group();
        throw WorkerTimedOut(fmt::format(
            "no reply within {} s{}", std::chrono::duration_cast<std::chrono::seconds>(limit).count(), last_words()));
      }
    }
  } catch (const WorkerTimedOut&) {
    throw;
  } catch (const std::runtime_error& error) {
    kill_group();
    throw WorkerDied(fmt::format("the process {}{}", error.what(), last_words()));
  }
  died("closed its descriptor without a reply");
}

void WorkerProcess::send(const std::string& line, Clock::time_point deadline) {
  std::size_t sent = 0;
  while (sent < line.size()) {
    const ssize_t count = ::send(socket_, line.data() + sent, line.size() - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count > 0) {
      sent += static_cast<std::size_t>(count);
    } else if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) {
      pollfd waiting{.fd = socket_, .events = POLLOUT, .revents = 0};
      poll(&waiting, 1, kReplyPollMs);
      if (Clock::now() > deadline) {
        kill_group();
        throw WorkerTimedOut("did not read its request" + last_words());
      }
    } else {
      died("stopped reading");
    }
  }
}

void WorkerProcess::died(const std::string& how) {
  // A process that has closed its end may take a moment to end.
  int status = 0;
  for (int wait = 0; wait < 50; ++wait) {
    if (waitpid(process_, &status, WNOHANG) == process_) {
      kill(-process_, SIGKILL);
      process_ = -1;
      throw WorkerDied("the process " + how_it_ended(status) + last_words());
    }
    std::this_thread::sleep_for(kEndPoll);
  }
  kill_group();
  throw WorkerDied("the process " + how + last_words());
}

void WorkerProcess::stop() const {
  if (process_ > 0) {
    kill(-process_, SIGSTOP);
  }
}

void WorkerProcess::go_on() const {
  if (process_ > 0) {
    kill(-process_, SIGCONT);
  }
}

void WorkerProcess::begin_end() const {
  go_on();
  shutdown(socket_, SHUT_RDWR);
}

void WorkerProcess::end(std::chrono::milliseconds limit) {
  if (process_ < 0) {
    return;
  }
  begin_end();
  const auto deadline = Clock::now() + limit;
  while (Clock::now() < deadline) {
    int status = 0;
    if (waitpid(process_, &status, WNOHANG) == process_) {
      kill(-process_, SIGKILL);
      process_ = -1;
      return;
    }
    std::this_thread::sleep_for(kEndPoll);
  }
  kill_group();
}

void WorkerProcess::kill_group() {
  if (process_ < 0) {
    return;
  }
  kill(-process_, SIGKILL);
  int status = 0;
  while (waitpid(process_, &status, 0) < 0 && errno == EINTR) {
  }
  process_ = -1;
}

double WorkerProcess::cpu_seconds() const { return process_ > 0 ? group_usage(process_).cpu_seconds : 0; }

std::int64_t WorkerProcess::resident_bytes() const { return process_ > 0 ? group_usage(process_).resident_bytes : 0; }

std::string WorkerProcess::last_words() const { return last_words_of(log_); }

}  // namespace decodelab
