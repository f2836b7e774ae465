// Computes two FNV-1a hashes of 64 bits in one pass.
#include "base/digest.h"

#include <cstdint>

#include <fmt/format.h>

namespace decodelab {

std::string digest(std::string_view text) {
  constexpr std::uint64_t kPrime = 0x100000001b3;
  std::uint64_t low = 0xcbf29ce484222325;
  std::uint64_t high = 0x6c62272e07bb0142;
  for (const char c : text) {
    low = (low ^ static_cast<unsigned char>(c)) * kPrime;
    high = (high ^ static_cast<unsigned char>(c) ^ (low >> 56)) * kPrime;
  }
  return fmt::format("{:016x}{:016x}", high, low);
}

}  // namespace decodelab
