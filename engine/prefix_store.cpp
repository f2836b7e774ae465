// A tree of token runs with their keys and values.
#include "engine/prefix_store.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include "base/round_up.h"
#include "engine/layers/kv_pages.h"
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
  std::vector<float> log_probs;                            ///< Of each token, not a number for a first; or none.
  std::map<std::int64_t, std::unique_ptr<Node>> children;  ///< By their first token.
  std::uint64_t used = 0;
  bool ends = false;  ///< A sequence that was put in ends with these tokens.
};

PrefixStore::PrefixStore(const Engine& engine, std::int64_t most_bytes)
    : page_tokens_(engine.prefix_reuse() == PrefixReuse::shared ? kPageTokens : 1),
      most_bytes_(most_bytes),
      misses_(engine.prefix_reuse() == PrefixReuse::missed),
      root_(std::make_unique<Node>()) {
  const ModelConfig& config = engine.model().config();
  if (config.encoder) {
    throw std::invalid_argument("a prefix store serves decoders alone: an encoder reads each prompt as a whole");
  }
  token_bytes_ = config.layers * config.kv_width() * static_cast<std::int64_t>(element_bytes(engine.model().dtype()));
  if (most_bytes < token_bytes_ * page_tokens_) {
    throw std::invalid_argument(
        fmt::format("a prefix store of {} bytes holds nothing: one {} of this model takes {} bytes", most_bytes,
                    page_tokens_ == 1 ? "token" : "page", token_bytes_ * page_tokens_));
  }
}
PrefixStore::~PrefixStore() = default;

PrefixStore::Node* PrefixStore::next_of(const Node& node, std::int64_t token, bool log_probs) {
  const auto child = node.children.find(token);
  const bool found = child != node.children.end() && !(log_probs && child->second->log_probs.empty());
  return found ? child->second.get() : nullptr;
}

HeldPrefix PrefixStore::match(std::span<const std::int64_t> tokens, bool log_probs) {
  HeldPrefix found;
  count_amount(Amount::prefix_lookups, 1);
  counts_.asked_tokens += std::ssize(tokens);
  ++clock_;
  // Log-probabilities are known of one token more than is left out: see HeldPrefix.
  std::span<const std::int64_t> rest = tokens.empty() || log_probs ? tokens : tokens.first(tokens.size() - 1);
  Node* node = rest.empty() ? nullptr : next_of(*root_, rest.front(), log_probs);
  while (node != nullptr) {
    node->used = clock_;
    const std::size_t length = common_length(node->tokens, rest);
    const auto end = static_cast<std::ptrdiff_t>(length);
    found.tokens.insert(found.tokens.end(), rest.begin(), rest.begin() + end);
    if (log_probs) {
      found.log_probs.insert(found.log_probs.end(), node->log_probs.begin(), node->log_probs.begin() + end);
    }
    rest = rest.subspan(length);
    // The last token whose log-probability is known is fed again, for the logits of the next.
    const bool ends = length < node->tokens.size() || rest.empty();
    Node* const next = ends ? nullptr : next_of(*node, rest.front(), log_probs);
    const std::size_t kept = length - (next == nullptr && log_probs ? 1 : 0);
    if (kept > 0) {
      found.pieces.push_back(kept == node->tokens.size() ? node->held
                                                         : std::make_shared<const FilledCache>(
                                                               node->held->first(static_cast<std::int64_t>(kept))));
    }
    node = next;
  }
  if (log_probs && !found.tokens.empty()) {
    found.tokens.pop_back();
    found.log_probs.erase(found.log_probs.begin());
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
  if (!node.log_probs.empty()) {
    rest->log_probs.assign(node.log_probs.begin() + tokens, node.log_probs.end());
    node.log_probs.resize(length);
  }
  bytes_ += rest->held->bytes() - node.held->bytes();
  rest->children = std::move(node.children);
  rest->used = node.used;
  rest->ends = std::exchange(node.ends, false);
  for (const auto& [first, child] : rest->children) {
    child->parent = rest.get();
  }
  node.tokens.resize(length);
  node.held = std::make_shared<const FilledCache>(node.held->copy(0, tokens));
  bytes_ += node.held->bytes();
  node.children.clear();
  const std::int64_t first = rest->tokens.front();
  node.children.emplace(first, std::move(rest));
}

void PrefixStore::insert(std::span<const std::int64_t> tokens, const Session& session, std::int64_t row) {
  if (rounded_up(std::ssize(tokens), page_tokens_) * token_bytes_ > most_bytes_) {
    ++counts_.too_large;
    return;
  }
  ++clock_;
  std::vector<float> log_probs;
  if (const std::vector<float> known = session.prompt_log_probs(row); known.size() + 1 == tokens.size()) {
    log_probs.push_back(std::numeric_limits<float>::quiet_NaN());
    log_probs.insert(log_probs.end(), known.begin(), known.end());
  }
  const auto know = [&](Node& node, std::size_t begin) {
    if (!log_probs.empty() && node.log_probs.empty()) {
      const auto first = log_probs.begin() + static_cast<std::ptrdiff_t>(begin);
      node.log_probs.assign(first, first + std::ssize(node.tokens));
    }
  };
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
    const bool whole = length == node->tokens.size();
    if (!whole) {
      split(*node, length);
    }
    know(*node, at);
    at += length;
    if (!whole) {
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
  know(*added, at);
  added->used = clock_;
  added->ends = true;
  bytes_ += added->held->bytes();
  counts_.stored_tokens += std::ssize(added->tokens);
  node->children.emplace(tokens[at], std::move(added));
  evict();
}

/// Drops a node without children; its parent may then be a leaf.
void PrefixStore::drop(Node& leaf) {
  bytes_ -= leaf.held->bytes();
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
