// Which tokens a regular expression allows next: the interface of a slot, and its reference.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/masks/byte_dfa.h"
#include "engine/masks/mask_bits.h"
#include "engine/masks/mask_vocabulary.h"

namespace decodelab {

/// What the masks of one pattern are made of.
struct TokenMaskOptions {
  std::string pattern;  ///< As compile_pattern() takes it.
  std::shared_ptr<const MaskVocabulary> vocabulary;
};

/// Follows the completions of one pattern, token by token, and says what may come next. Rows and samples of a session
/// share it; not for several threads at once.
class TokenMask {
 public:
  /// Where a completion has come to; its accepting() says that the text so far matches.
  using State = std::shared_ptr<ByteDfa::State>;

  virtual ~TokenMask() = default;

  State start() { return dfa_.start(); }
  /// Returns the state behind a text; null where no matching text goes on so.
  State behind(const State& state, std::string_view text) { return dfa_.after(state, text); }
  /// Returns the state behind a token; null where no matching text goes on so, or the token has no bytes.
  State after(const State& state, std::int64_t token_id);
  /// Allows in `bits` the tokens whose bytes a matching text may go on with, and forbids all others; those that end a
  /// completion are not its business.
  virtual void find_allowed(ByteDfa::State& state, MaskBits& bits) = 0;
  /// How bits are brought to the logits: as a tensor of 0 and -infinity that is added, or by writing -infinity over
  /// what is forbidden.
  virtual bool adds_tensor() const { return false; }

 protected:
  /// Throws what compile_pattern() throws.
  explicit TokenMask(const TokenMaskOptions& options);

  const MaskVocabulary& vocabulary() const { return *vocabulary_; }
  ByteDfa& dfa() { return dfa_; }
  /// Does what find_allowed() does in one walk over the tree of tokens, which leaves out what is below a byte that
  /// cannot come (as llguidance does: github.com/guidance-ai/llguidance). Appends to `ends` the states behind the
  /// tokens.
  void walk(ByteDfa::State& state, MaskBits& bits, std::vector<State>* ends = nullptr);

 private:
  void walk(const MaskVocabulary::Tree& tree, ByteDfa::State& state, MaskBits& bits, std::vector<State>* ends);

  std::shared_ptr<const MaskVocabulary> vocabulary_;
  ByteDfa dfa_;
  std::vector<ByteDfa::State> scratch_;  ///< [depth + 1]: states that the automaton does not keep.
  std::vector<ByteDfa::State*> path_;    ///< [depth + 1]: those behind the bytes of a node and of the nodes above it.
};

/// The reference: follows the bytes of every token from the state, and adds the mask to the logits (as the library does
/// from which the study of sequence generation started).
std::unique_ptr<TokenMask> make_scan_masks(const TokenMaskOptions& options);

}  // namespace decodelab
