// Starts a child by fork and exec.
#include "bench/measure/process/child_process.h"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <stdexcept>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace decodelab {
namespace {

/// Above the descriptors that a child is given.
constexpr int kSpareDescriptors = 10;

}  // namespace

void die_with(pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) {
    _exit(kExecFailed);
  }
}

void print_into(int log) {
  dup2(log, STDOUT_FILENO);
  dup2(log, STDERR_FILENO);
  dup2(open("/dev/null", O_RDONLY), STDIN_FILENO);
}

ChildProcess::ChildProcess(const std::vector<std::string>& arguments) {
  note_ = memfd_create("note", MFD_CLOEXEC);
  int ends[2];
  if (note_ < 0 || pipe2(ends, O_CLOEXEC) != 0) {
    const int error = errno;
    close(note_);
    throw std::runtime_error(fmt::format("cannot make a pipe: {}", std::strerror(error)));
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
    close(note_);
    close(ends[0]);
    close(ends[1]);
    throw std::runtime_error(fmt::format("cannot start a process: {}", std::strerror(error)));
  }
  if (process_ == 0) {
    // Only async-signal-safe calls between fork and exec.
    die_with(parent);
    const int events = fcntl(ends[1], F_DUPFD_CLOEXEC, kSpareDescriptors);
    const int note = fcntl(note_, F_DUPFD_CLOEXEC, kSpareDescriptors);
    dup2(events, kEventDescriptor);
    dup2(note, kNoteDescriptor);
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
  close(note_);
}

std::int64_t ChildProcess::note() const {
  std::int64_t note = 0;
  return pread(note_, &note, sizeof(note), 0) == sizeof(note) ? note : 0;
}

void ChildProcess::leave_note(std::int64_t note) {
  [[maybe_unused]] const auto written = pwrite(kNoteDescriptor, &note, sizeof(note), 0);
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
