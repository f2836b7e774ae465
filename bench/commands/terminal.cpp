// Rewrites a line of a terminal.
#include "bench/commands/terminal.h"

#include <iostream>

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "bench/measure/progress.h"

namespace decodelab {
namespace {

constexpr int kColumnsWithoutTerminal = 80;
constexpr std::chrono::milliseconds kRefresh{500};

}  // namespace

StatusLine::StatusLine() : terminal_(isatty(STDERR_FILENO) == 1) {}
StatusLine::~StatusLine() { clear(); }

int StatusLine::columns() const {
  winsize size{};
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : kColumnsWithoutTerminal;
}

void StatusLine::show(const std::string& line) {
  if (terminal_) {
    std::cerr << '\r' << line << "\x1b[K" << std::flush;
    shown_ = true;
  }
}

void StatusLine::clear() {
  if (shown_) {
    std::cerr << "\r\x1b[K" << std::flush;
    shown_ = false;
  }
}

ByteProgress::ByteProgress(std::string label)
    : label_(std::move(label)), start_(std::chrono::steady_clock::now()), shown_(start_) {}

void ByteProgress::operator()(std::int64_t done_bytes, std::int64_t total_bytes) {
  const auto now = std::chrono::steady_clock::now();
  if (now - shown_ < kRefresh || total_bytes <= 0) {
    return;
  }
  shown_ = now;
  const double share = static_cast<double>(done_bytes) / static_cast<double>(total_bytes);
  const double elapsed = std::chrono::duration<double>(now - start_).count();
  line_.show(progress_line(share, share > 0 ? elapsed * (1 - share) / share : 0, label_, line_.columns()));
}

}  // namespace decodelab
