// Puts tokens in the order of their bytes and builds the tree over them.
#include "engine/masks/mask_vocabulary.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace decodelab {
namespace {

/// A node counts its depth and its tokens in 16 bits; no real token is near that.
constexpr std::size_t kMostOfANode = std::numeric_limits<std::uint16_t>::max();

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
  for (std::uint32_t id = 0; id < bytes_.size(); ++id) {
    if (bytes_[id].size() > kMostOfANode) {
      bytes_[id].clear();
    }
    if (!bytes_[id].empty()) {
      tokens_.push_back(id);
    }
  }
  std::ranges::sort(tokens_, [&](std::uint32_t a, std::uint32_t b) {
    return std::pair<std::string_view, std::uint32_t>(bytes_[a], a) <
           std::pair<std::string_view, std::uint32_t>(bytes_[b], b);
  });
  std::vector<std::uint32_t> path;  // Nodes of the bytes of the token before.
  std::string_view before;
  const auto close_to = [&](std::size_t depth) {
    for (; path.size() > depth; path.pop_back()) {
      nodes_[path.back()].end = static_cast<std::uint32_t>(nodes_.size());
    }
  };
  for (std::uint32_t at = 0; at < tokens_.size(); ++at) {
    const std::string_view text = bytes_[tokens_[at]];
    depth_ = std::max(depth_, text.size());
    const auto shared = static_cast<std::size_t>(std::ranges::mismatch(text, before).in1 - text.begin());
    close_to(shared);
    for (std::size_t depth = shared; depth < text.size(); ++depth) {
      path.push_back(static_cast<std::uint32_t>(nodes_.size()));
      nodes_.push_back(
          {.depth = static_cast<std::uint16_t>(depth + 1), .byte = static_cast<std::uint8_t>(text[depth])});
    }
    Node& node = nodes_[path.back()];
    node.tokens = node.token_count == 0 ? at : node.tokens;
    if (node.token_count < kMostOfANode) {
      ++node.token_count;
    }
    before = text;
  }
  close_to(0);
}

}  // namespace decodelab
