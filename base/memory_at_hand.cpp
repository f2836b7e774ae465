// Says in one sentence what does not fit.
#include "base/memory_at_hand.h"

#include <algorithm>

#include <fmt/format.h>

namespace decodelab {
namespace {

std::string spelled(std::int64_t bytes) {
  constexpr double kGigabyte = 1e9;
  const auto number = static_cast<double>(bytes);
  return number < kGigabyte ? fmt::format("{:.0f} MB", number * 1e-6) : fmt::format("{:.1f} GB", number / kGigabyte);
}

}  // namespace

void require_memory(std::int64_t bytes, const MemoryAtHand& at_hand, const std::string& what) {
  if (!at_hand) {
    return;
  }
  if (const std::int64_t left = at_hand(); bytes > left) {
    throw NotEnoughMemory(fmt::format(
        "not enough memory: {} takes {}, and {} may still be taken; a smaller model, a 16-bit dtype or fewer other "
        "processes would help",
        what, spelled(bytes), spelled(std::max<std::int64_t>(left, 0))));
  }
}

}  // namespace decodelab
