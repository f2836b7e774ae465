// A checksum of many bytes at about the speed of memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace decodelab {

/// Computes a checksum of data that is added in pieces: FNV-1a's step on eight lanes of 64-bit words, which a processor
/// multiplies in parallel.
///
/// Each step is a bijection of its lane, so that a change of one word is always detected, and any other change with
/// probability 1 - 2^-64. The checksum guards against mistakes, not against malice.
class Checksum {
 public:
  explicit Checksum(std::uint64_t seed = 0);
  /// All pieces but the last must be multiples of kPieceBytes.
  void add(std::span<const std::byte> bytes);
  std::uint64_t value() const;

  static constexpr std::size_t kPieceBytes = 64;

 private:
  std::uint64_t lanes_[8];
  std::uint64_t bytes_ = 0;
};

std::uint64_t checksum_of(std::span<const std::byte> bytes, std::uint64_t seed = 0);

}  // namespace decodelab
