// Keys and values of prompts that were seen, found again by their tokens.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "engine/engine.h"

namespace decodelab {

/// Keeps keys and values of token sequences, and the log-probabilities of the tokens where they were computed, so that
/// a prompt that begins like an earlier one is prefilled from where it differs: a tree whose nodes hold runs of tokens
/// (SGLang's radix cache, Zheng et al. 2024, arXiv:2312.07104). An object of the caller, for sessions of one engine,
/// which must outlive it; used by one thread at a time.
class PrefixStore {
 public:
  struct Counts {
    std::int64_t asked_tokens = 0;  ///< Of all calls of match().
    std::int64_t hit_tokens = 0;    ///< Of those, the ones whose keys were there.
    std::int64_t stored_tokens = 0;
    std::int64_t evicted_tokens = 0;
    std::int64_t too_large = 0;  ///< Sequences that take more than the whole store, which were not kept.
  };

  /// Holds `most_bytes` at most, whole pages counted where the plan shares pages; what was used last stays. Throws
  /// std::invalid_argument where that is less than one token or page takes, and for a model with an encoder, whose
  /// prompts are read as a whole.
  PrefixStore(const Engine& engine, std::int64_t most_bytes);
  ~PrefixStore();

  /// Returns the longest beginning of `tokens`, of one token less at most, whose keys and values are held. It stays
  /// valid whatever the store drops. With `log_probs`, only what has them counts. Returns nothing, after the same
  /// search, for an engine whose plan misses on purpose.
  HeldPrefix match(std::span<const std::int64_t> tokens, bool log_probs = false);
  /// Keeps the keys and values of `tokens`, which row `row` of the session was fed first, as far as they are not held,
  /// and the log-probabilities that the session computed of all of them and no choice has returned yet.
  void insert(std::span<const std::int64_t> tokens, const Session& session, std::int64_t row);
  /// Drops the sequences that begin with `tokens`; what others begin with stays.
  void erase(std::span<const std::int64_t> tokens);
  void clear();

  std::int64_t bytes() const { return bytes_; }
  const Counts& counts() const { return counts_; }

 private:
  struct Node;

  /// Returns the node that goes on behind `node` with a token; null where there is none, or none with log-probabilities
  /// where those are needed.
  static Node* next_of(const Node& node, std::int64_t token, bool log_probs);
  /// Makes two nodes of one, the first with `length` tokens.
  void split(Node& node, std::size_t length);
  void drop(Node& leaf);
  void evict();

  std::int64_t token_bytes_;
  std::int64_t page_tokens_;  ///< Tokens that are held together: 1, or those of a page.
  std::int64_t most_bytes_;
  bool misses_;  ///< As PrefixReuse::missed.
  std::int64_t bytes_ = 0;
  std::uint64_t clock_ = 0;
  std::unique_ptr<Node> root_;
  Counts counts_;
};

}  // namespace decodelab
