// The signal handler: sets a flag; a second signal has its default action.
#include "bench/measure/interrupt.h"

#include <csignal>

namespace decodelab {
namespace {

volatile std::sig_atomic_t flag = 0;

void on_signal(int) { flag = 1; }

}  // namespace

void catch_interrupts() {
  struct sigaction action{};
  action.sa_handler = on_signal;
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

bool interrupted() { return flag != 0; }

}  // namespace decodelab
