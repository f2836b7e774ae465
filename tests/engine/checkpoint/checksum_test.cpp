// A checksum sees every change, and does not depend on the pieces that it was fed.
#include "engine/checkpoint/checksum.h"

#include <algorithm>
#include <span>
#include <stdexcept>
#include <vector>

#include <gtest/gtest.h>

namespace decodelab {
namespace {

std::vector<std::byte> numbered(std::size_t size) {
  std::vector<std::byte> bytes(size);
  for (std::size_t i = 0; i < size; ++i) {
    bytes[i] = static_cast<std::byte>(i * 37 + i / 251);
  }
  return bytes;
}

TEST(Checksum, SeesEveryBitThatIsTurned) {
  std::vector<std::byte> bytes = numbered(200);
  const std::uint64_t before = checksum_of(bytes);
  for (std::size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    const auto mask = static_cast<std::byte>(1U << (bit % 8));
    bytes[bit / 8] ^= mask;
    EXPECT_NE(checksum_of(bytes), before) << bit;
    bytes[bit / 8] ^= mask;
  }
  EXPECT_EQ(checksum_of(bytes), before);
}

TEST(Checksum, SeesLengthsPlacesAndSeeds) {
  const std::vector<std::byte> zeros(192);
  EXPECT_NE(checksum_of(std::span(zeros).first(128)), checksum_of(zeros));
  EXPECT_NE(checksum_of(std::span(zeros).first(190)), checksum_of(std::span(zeros).first(191)));
  EXPECT_NE(checksum_of({}), checksum_of(std::span(zeros).first(1)));
  EXPECT_NE(checksum_of(zeros, 1), checksum_of(zeros, 2));
  std::vector<std::byte> bytes = numbered(128);
  const std::uint64_t before = checksum_of(bytes);
  std::swap_ranges(bytes.begin(), bytes.begin() + 64, bytes.begin() + 64);
  EXPECT_NE(checksum_of(bytes), before);
}

TEST(Checksum, IsTheSameInPieces) {
  const std::vector<std::byte> bytes = numbered(1000);
  Checksum pieces;
  pieces.add(std::span(bytes).first(64));
  pieces.add(std::span(bytes).subspan(64, 640));
  pieces.add(std::span(bytes).subspan(704));
  EXPECT_EQ(pieces.value(), checksum_of(bytes));
  EXPECT_THROW(pieces.add(bytes), std::logic_error) << "the last piece was no multiple of 64 bytes";
}

}  // namespace
}  // namespace decodelab
