// A tree of token runs with their keys and values.
#include "engine/prefix_store.h"

#include <algorithm>
#include <iterator>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include "profiles/range.h"

namespace decodelab {
namespace {

std::size_t common_length(std::span<const std::int64_t> a, std::span<const std::int64_t> b) {
  return static_cast<std::size_t>(std::ranges::mismatch(a, b).in1 - a.begin());
}

}  // namespace

struct PrefixStore::Node {
  Node* parent = nullptr;
  std::vector<std::int64_t> tokens;
  std::shared_ptr<const FilledCache> held;                 ///< Of `tokens`, one row.
  std::map<std::int64_t, std::unique_ptr<Node>> children;  ///< By their first token.
  std::uint64_t used = 0;
  bool ends = false;  ///< A sequence that was put in ends with these tokens.
};

PrefixStore::PrefixStore(const Engine& engine, std::int64_t most_bytes)
    : most_bytes_(most_bytes), misses_(engine.prefix_reuse() == PrefixReuse::missed), root_(std::make_unique<Node>()) {
  const ModelConfig& config = engine.model().config();
  if (config.encoder) {
    throw std::invalid_argument("a prefix store serves decoders alone: an encoder reads each prompt as a whole");
  }
  token_bytes_ = config.layers * config.kv_width() * static_cast<std::int64_t>(element_bytes(engine.model().dtype()));
  if (most_bytes < token_bytes_) {
    throw std::invalid_argument(fmt::format(
        "a prefix store of {} bytes holds nothing: one token of this model takes {} bytes", most_bytes, token_bytes_));
  }
}
PrefixStore::~PrefixStore() = default;

HeldPrefix PrefixStore::match(std::span<const std::int64_t> tokens) {
  HeldPrefix found;
  count_amount(Amount::prefix_lookups, 1);
  counts_.asked_tokens += std::ssize(tokens);
  ++clock_;
  std::span<const std::int64_t> rest = tokens.empty() ? tokens : tokens.first(tokens.size() - 1);
  for (Node* node = root_.get(); !rest.empty();) {
    const auto child = node->children.find(rest.front());
    if (child == node->children.end()) {
      break;
    }
    node = child->second.get();
    node->used = clock_;
    const std::size_t length = common_length(node->tokens, rest);
    found.pieces.push_back(length == node->tokens.size() ? node->held
                                                         : std::make_shared<const FilledCache>(
                                                               node->held->first(static_cast<std::int64_t>(length))));
    found.tokens.insert(found.tokens.end(), rest.begin(), rest.begin() + static_cast<std::ptrdiff_t>(length));
    rest = rest.subspan(length);
    if (length < node->tokens.size()) {
      break;
    }
  }
  if (misses_) {
    return {};
  }
  counts_.hit_tokens += std::ssize(found.tokens);
  return found;
}

void PrefixStore::split(Node& node, std::size_t length) {
  const auto tokens = static_cast<std::int64_t>(length);
  auto rest = std::make_unique<Node>();
  rest->parent = &node;
  rest->tokens.assign(node.tokens.begin() + tokens, node.tokens.end());
  rest->held = std::make_shared<const FilledCache>(node.held->copy(tokens, std::ssize(node.tokens)));
  rest->children = std::move(node.children);
  rest->used = node.used;
  rest->ends = std::exchange(node.ends, false);
  for (const auto& [first, child] : rest->children) {
    child->parent = rest.get();
  }
  node.tokens.resize(length);
  node.held = std::make_shared<const FilledCache>(node.held->copy(0, tokens));
  node.children.clear();
  const std::int64_t first = rest->tokens.front();
  node.children.emplace(first, std::move(rest));
}

void PrefixStore::insert(std::span<const std::int64_t> tokens, const Session& session, std::int64_t row) {
  if (std::ssize(tokens) * token_bytes_ > most_bytes_) {
    ++counts_.too_large;
    return;
  }
  ++clock_;
  Node* node = root_.get();
  std::size_t at = 0;
  while (at < tokens.size()) {
    const auto child = node->children.find(tokens[at]);
    if (child == node->children.end()) {
      break;
    }
    node = child->second.get();
    node->used = clock_;
    const std::size_t length = common_length(node->tokens, tokens.subspan(at));
    at += length;
    if (length < node->tokens.size()) {
      split(*node, length);
      break;
    }
  }
  if (at == tokens.size()) {
    node->ends = node != root_.get();
    return;
  }
  auto added = std::make_unique<Node>();
  added->parent = node;
  added->tokens.assign(tokens.begin() + static_cast<std::ptrdiff_t>(at), tokens.end());
  added->held =
      std::make_shared<const FilledCache>(session.held(row, static_cast<std::int64_t>(at), std::ssize(tokens)));
  added->used = clock_;
  added->ends = true;
  bytes_ += std::ssize(added->tokens) * token_bytes_;
  counts_.stored_tokens += std::ssize(added->tokens);
  node->children.emplace(tokens[at], std::move(added));
  evict();
}

/// Drops a node without children; its parent may then be a leaf.
void PrefixStore::drop(Node& leaf) {
  bytes_ -= std::ssize(leaf.tokens) * token_bytes_;
  leaf.parent->children.erase(leaf.tokens.front());
}

/// Drops leaves, the one that was used longest ago first, until the rest fits. What the last call used fits by itself.
void PrefixStore::evict() {
  while (bytes_ > most_bytes_) {
    Node* oldest = nullptr;
    std::vector<Node*> open{root_.get()};
    while (!open.empty()) {
      Node* const node = open.back();
      open.pop_back();
      for (const auto& [first, child] : node->children) {
        open.push_back(child.get());
      }
      if (node != root_.get() && node->children.empty() && (oldest == nullptr || node->used < oldest->used)) {
        oldest = node;
      }
    }
    counts_.evicted_tokens += std::ssize(oldest->tokens);
    drop(*oldest);
  }
}

void PrefixStore::erase(std::span<const std::int64_t> tokens) {
  Node* node = root_.get();
  std::size_t at = 0;
  while (at < tokens.size()) {
    const auto child = node->children.find(tokens[at]);
    if (child == node->children.end()) {
      return;
    }
    node = child->second.get();
    const std::size_t length = common_length(node->tokens, tokens.subspan(at));
    at += length;
    if (length < node->tokens.size() && at < tokens.size()) {
      return;
    }
  }
  if (node == root_.get()) {
    clear();
    return;
  }
  // All below it goes, then it and those above that nothing else needs.
  std::vector<Node*> below{node};
  for (std::size_t index = 0; index < below.size(); ++index) {
    for (const auto& [first, child] : below[index]->children) {
      below.push_back(child.get());
    }
  }
  Node* above = node->parent;
  for (auto next = below.rbegin(); next != below.rend(); ++next) {
    drop(**next);
  }
  while (above != root_.get() && above->children.empty() && !above->ends) {
    Node* const parent = above->parent;
    drop(*above);
    above = parent;
  }
}

void PrefixStore::clear() {
  root_->children.clear();
  bytes_ = 0;
}

}  // namespace decodelab
