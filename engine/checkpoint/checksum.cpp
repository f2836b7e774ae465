// The steps of the checksum: each multiplies a word into its lane.
#include "engine/checkpoint/checksum.h"

#include <cstring>
#include <stdexcept>

namespace decodelab {
namespace {

constexpr std::uint64_t kOffset = 0xcbf29ce484222325ULL;  // FNV-1a, 64 bits
constexpr std::uint64_t kPrime = 0x100000001b3ULL;

std::uint64_t mixed(std::uint64_t hash, std::uint64_t word) { return (hash ^ word) * kPrime; }

/// Mixes the upper bits into the lower ones, which multiplication alone never does (Murmur3's finalizer).
std::uint64_t folded(std::uint64_t hash) {
  hash ^= hash >> 33;
  hash *= 0xff51afd7ed558ccdULL;
  hash ^= hash >> 33;
  hash *= 0xc4ceb9fe1a85ec53ULL;
  return hash ^ (hash >> 33);
}

}  // namespace

Checksum::Checksum(std::uint64_t seed) {
  for (std::uint64_t lane = 0; lane < 8; ++lane) {
    lanes_[lane] = mixed(mixed(kOffset, lane), seed);
  }
}

void Checksum::add(std::span<const std::byte> bytes) {
  if (bytes_ % kPieceBytes != 0) {
    throw std::logic_error("a checksum was fed after its last piece");
  }
  bytes_ += bytes.size();
  std::uint64_t words[8];
  for (; bytes.size() >= kPieceBytes; bytes = bytes.subspan(kPieceBytes)) {
    std::memcpy(words, bytes.data(), kPieceBytes);
    for (std::size_t lane = 0; lane < 8; ++lane) {
      lanes_[lane] = mixed(lanes_[lane], words[lane]);
    }
  }
  if (!bytes.empty()) {
    std::memset(words, 0, sizeof words);
    std::memcpy(words, bytes.data(), bytes.size());
    for (std::size_t lane = 0; lane < 8; ++lane) {
      lanes_[lane] = mixed(lanes_[lane], words[lane]);
    }
  }
}

std::uint64_t Checksum::value() const {
  std::uint64_t hash = mixed(kOffset, bytes_);
  for (const std::uint64_t lane : lanes_) {
    hash = mixed(hash, folded(lane));
  }
  return folded(hash);
}

std::uint64_t checksum_of(std::span<const std::byte> bytes, std::uint64_t seed) {
  Checksum sum(seed);
  sum.add(bytes);
  return sum.value();
}

}  // namespace decodelab
