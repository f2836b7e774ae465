// Puts tokens in the order of their bytes and builds the tree over them.
#include "engine/masks/mask_vocabulary.h"

#include <algorithm>
#include <array>
#include <limits>
#include <stdexcept>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace decodelab {
namespace {

/// A node counts its depth and its tokens in 16 bits; no real token is near that.
constexpr std::size_t kMostOfANode = std::numeric_limits<std::uint16_t>::max();

/// Sorts the tokens of a tree and makes its nodes.
void make_nodes(const std::vector<std::string>& bytes, MaskVocabulary::Tree& tree) {
  std::ranges::sort(tree.tokens, [&](std::uint32_t a, std::uint32_t b) {
    return std::pair<std::string_view, std::uint32_t>(bytes[a], a) <
           std::pair<std::string_view, std::uint32_t>(bytes[b], b);
  });
  std::vector<std::uint32_t> path;  // Nodes of the bytes of the token before.
  std::string_view before;
  const auto close_to = [&](std::size_t depth) {
    for (; path.size() > depth; path.pop_back()) {
      tree.nodes[path.back()].end = static_cast<std::uint32_t>(tree.nodes.size());
    }
  };
  for (std::uint32_t at = 0; at < tree.tokens.size(); ++at) {
    const std::string_view text = bytes[tree.tokens[at]];
    const auto shared = static_cast<std::size_t>(std::ranges::mismatch(text, before).in1 - text.begin());
    close_to(shared);
    for (std::size_t depth = shared; depth < text.size(); ++depth) {
      path.push_back(static_cast<std::uint32_t>(tree.nodes.size()));
      tree.nodes.push_back(
          {.depth = static_cast<std::uint16_t>(depth + 1), .byte = static_cast<std::uint8_t>(text[depth])});
    }
    MaskVocabulary::Node& node = tree.nodes[path.back()];
    node.tokens = node.token_count == 0 ? at : node.tokens;
    if (node.token_count < kMostOfANode) {
      ++node.token_count;
    }
    before = text;
  }
  close_to(0);
}

}  // namespace

MaskVocabulary::MaskVocabulary(std::vector<std::string> bytes, std::vector<std::int64_t> eos)
    : bytes_(std::move(bytes)), eos_(std::move(eos)) {
  for (const std::int64_t id : eos_) {
    if (id < 0) {
      throw std::invalid_argument(fmt::format("the id {} cannot end a completion: ids begin at 0", id));
    }
    if (id < std::ssize(bytes_)) {
      bytes_[static_cast<std::size_t>(id)].clear();  // It ends a text and is no part of it.
    }
  }
  std::array<bool, 256> plain{};
  for (const std::uint8_t byte : plain_bytes()) {
    plain[byte] = true;
  }
  for (std::uint32_t id = 0; id < bytes_.size(); ++id) {
    std::string& text = bytes_[id];
    if (text.size() > kMostOfANode) {
      text.clear();
    }
    if (!text.empty()) {
      const bool is_plain = text.size() <= kPlainLength && std::ranges::all_of(text, [&](char byte) {
                              return plain[static_cast<std::uint8_t>(byte)];
                            });
      (is_plain ? plain_ : others_).tokens.push_back(id);
      depth_ = std::max(depth_, text.size());
    }
  }
  plain_bits_.resize((bytes_.size() + 31) / 32);
  for (const std::uint32_t id : plain_.tokens) {
    plain_bits_[id / 32] |= std::uint32_t{1} << (id % 32);
  }
  for (Tree* const tree : {&plain_, &others_}) {
    make_nodes(bytes_, *tree);
  }
}

const std::vector<std::uint8_t>& MaskVocabulary::plain_bytes() {
  static const std::vector<std::uint8_t> bytes = [] {
    std::vector<std::uint8_t> all;
    for (std::uint8_t byte = ' '; byte <= '~'; ++byte) {
      if (byte != '"' && byte != '\\') {
        all.push_back(byte);
      }
    }
    return all;
  }();
  return bytes;
}

}  // namespace decodelab
