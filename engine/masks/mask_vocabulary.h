// The bytes that tokens stand for, as a tree that a walk over all of them shares beginnings in.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace decodelab {

/// The tokens of a model, as masks need them. Immutable, so any number of sessions may use it.
class MaskVocabulary {
 public:
  /// A node stands for a byte behind those of the nodes above it.
  struct Node {
    std::uint32_t end = 0;     ///< The first node behind those below this one.
    std::uint32_t tokens = 0;  ///< Where its tokens begin in Tree::tokens.
    std::uint16_t token_count = 0;
    std::uint16_t depth = 0;  ///< Bytes up to here, this one included.
    std::uint8_t byte = 0;
  };

  /// Tokens in the order of their bytes, and nodes in the order of a walk that enters each node before those below it.
  struct Tree {
    std::vector<Node> nodes;
    std::vector<std::uint32_t> tokens;
  };

  /// `bytes` has the bytes of each id; an empty text stands for a token that no text has, such as a special one. `eos`
  /// are the ids that end a completion, whatever their bytes. Throws std::invalid_argument for an id of `eos` below 0.
  MaskVocabulary(std::vector<std::string> bytes, std::vector<std::int64_t> eos);

  const std::vector<std::string>& bytes() const { return bytes_; }
  const std::vector<std::int64_t>& eos() const { return eos_; }
  /// Returns the tree of the tokens of up to kPlainLength plain bytes, which are most; a pattern that allows any text
  /// of those allows all of them (as llguidance's slices do).
  const Tree& plain() const { return plain_; }
  /// Returns a bit for each id, 32 a word: set for the tokens of plain().
  const std::vector<std::uint32_t>& plain_bits() const { return plain_bits_; }
  /// Returns the tree of the other tokens that have bytes.
  const Tree& others() const { return others_; }
  /// Printable ASCII but for the quotation mark and the backslash, which strings of JSON leave out.
  static const std::vector<std::uint8_t>& plain_bytes();
  static constexpr std::size_t kPlainLength = 12;
  /// Returns the bytes of the longest token.
  std::size_t depth() const { return depth_; }

 private:
  std::vector<std::string> bytes_;
  std::vector<std::int64_t> eos_;
  Tree plain_;
  std::vector<std::uint32_t> plain_bits_;
  Tree others_;
  std::size_t depth_ = 0;
};

}  // namespace decodelab
