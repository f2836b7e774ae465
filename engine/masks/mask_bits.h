// One bit a token: which of them may come next.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace decodelab {

/// Bits of `width` tokens, 32 a word; those behind the last token are 0.
class MaskBits {
 public:
  explicit MaskBits(std::int64_t width) : width_(width), words_(static_cast<std::size_t>((width + 31) / 32)) {}

  std::int64_t width() const { return width_; }
  std::vector<std::uint32_t>& words() { return words_; }
  const std::vector<std::uint32_t>& words() const { return words_; }

  bool allows(std::int64_t id) const { return (words_[word(id)] >> (id % 32) & 1) != 0; }
  /// Ids that have no bit are ignored.
  void allow(std::int64_t id) {
    if (id >= 0 && id < width_) {
      words_[word(id)] |= std::uint32_t{1} << (id % 32);
    }
  }
  /// Allows the tokens whose bits are set; those that have no bit here are ignored.
  void allow_all_of(const std::vector<std::uint32_t>& other) {
    for (std::size_t index = 0; index < words_.size() && index < other.size(); ++index) {
      words_[index] |= other[index];
    }
    clear_rest();
  }
  void forbid(std::int64_t id) {
    if (id >= 0 && id < width_) {
      words_[word(id)] &= ~(std::uint32_t{1} << (id % 32));
    }
  }
  void allow_all() {
    for (std::uint32_t& word : words_) {
      word = ~std::uint32_t{0};
    }
    clear_rest();
  }
  void forbid_all() {
    for (std::uint32_t& word : words_) {
      word = 0;
    }
  }
  void keep_only(const MaskBits& other) {
    for (std::size_t index = 0; index < words_.size(); ++index) {
      words_[index] &= other.words_[index];
    }
  }
  std::int64_t count() const {
    std::int64_t total = 0;
    for (const std::uint32_t word : words_) {
      total += std::popcount(word);
    }
    return total;
  }
  bool none() const { return count() == 0; }
  bool operator==(const MaskBits&) const = default;

 private:
  void clear_rest() {
    if (width_ % 32 != 0) {
      words_.back() &= (std::uint32_t{1} << (width_ % 32)) - 1;
    }
  }
  static std::size_t word(std::int64_t id) { return static_cast<std::size_t>(id / 32); }

  std::int64_t width_;
  std::vector<std::uint32_t> words_;
};

}  // namespace decodelab
