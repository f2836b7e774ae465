// Reads a status, and the end of a log.
#include "bench/measure/process/last_words.h"

#include <algorithm>
#include <csignal>
#include <cstring>

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

namespace decodelab {
namespace {

/// Bytes that are read from the end of the log, and that are quoted of its last line.
constexpr off_t kLogTail = 4096;
constexpr std::size_t kQuotedLog = 300;

}  // namespace

std::string how_it_ended(int status) {
  if (WIFSIGNALED(status)) {
    const int number = WTERMSIG(status);
    return fmt::format("died of signal {} ({}){}", number, strsignal(number),
                       number == SIGKILL ? ", as the system does when memory runs out" : "");
  }
  return fmt::format("ended with exit code {}", WEXITSTATUS(status));
}

std::string last_words_of(int log) {
  const off_t size = lseek(log, 0, SEEK_END);
  const off_t from = std::max<off_t>(size - kLogTail, 0);
  std::string text(static_cast<std::size_t>(std::max<off_t>(size - from, 0)), '\0');
  if (text.empty() || pread(log, text.data(), text.size(), from) <= 0) {
    return "; it printed nothing";
  }
  text.erase(text.find_last_not_of(" \n\r\t") + 1);
  text.erase(0, text.rfind('\n') + 1);  // npos + 1 is 0: the only line
  return text.empty() ? "; it printed nothing" : fmt::format("; its last line: {}", text.substr(0, kQuotedLog));
}

}  // namespace decodelab
