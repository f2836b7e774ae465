// Starts a child by fork and exec.
#include "bench/measure/process/child_process.h"

#include <fmt/format.h>

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <stdexcept>

namespace decodelab {
namespace {

constexpr int kExecFailed = 127;

}  // namespace

ChildProcess::ChildProcess(const std::vector<std::string>& arguments) {
  int ends[2];
  if (pipe(ends) != 0) {
    throw std::runtime_error(fmt::format("cannot make a pipe: {}", std::strerror(errno)));
  }
  std::vector<char*> words;
  for (const std::string& argument : arguments) {
    words.push_back(const_cast<char*>(argument.c_str()));
  }
  words.push_back(nullptr);
  const pid_t parent = getpid();
  process_ = fork();
  if (process_ < 0) {
    const int error = errno;
    close(ends[0]);
    close(ends[1]);
    throw std::runtime_error(fmt::format("cannot start a process: {}", std::strerror(error)));
  }
  if (process_ == 0) {
    // Only async-signal-safe calls between fork and exec.
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) {
      _exit(kExecFailed);
    }
    if (ends[1] != kEventDescriptor) {
      dup2(ends[1], kEventDescriptor);
      close(ends[1]);
    }
    if (ends[0] != kEventDescriptor) {
      close(ends[0]);
    }
    execv(words[0], words.data());
    _exit(kExecFailed);
  }
  close(ends[1]);
  descriptor_ = ends[0];
  reader_.emplace(descriptor_);
}

ChildProcess::~ChildProcess() {
  if (process_ > 0) {
    kill(process_, SIGKILL);
    wait();
  }
  close(descriptor_);
}

int ChildProcess::wait() {
  int status = 0;
  while (process_ > 0 && waitpid(process_, &status, 0) < 0 && errno == EINTR) {
  }
  process_ = -1;
  return status;
}

void ChildProcess::signal(int number) const {
  if (process_ > 0) {
    kill(process_, number);
  }
}

}  // namespace decodelab
