// What all ways of making masks share, and the plainest of them.
#include "engine/masks/token_mask.h"

namespace decodelab {
namespace {

class ScanMasks final : public TokenMask {
 public:
  explicit ScanMasks(const TokenMaskOptions& options) : TokenMask(options) {}

  void find_allowed(ByteDfa::State& state, MaskBits& bits) override {
    bits.forbid_all();
    dfa().forget_if_full();
    const std::vector<std::string>& tokens = vocabulary().bytes();
    for (std::size_t id = 0; id < tokens.size(); ++id) {
      if (!tokens[id].empty() && may_come(state, tokens[id])) {
        bits.allow(static_cast<std::int64_t>(id));
      }
    }
  }
  bool adds_tensor() const override { return true; }

 private:
  bool may_come(ByteDfa::State& state, const std::string& text) {
    ByteDfa::State* at = &state;
    for (std::size_t place = 0; place < text.size() && at != nullptr; ++place) {
      at = dfa().step(*at, static_cast<std::uint8_t>(text[place]), spare_[place % 2]);
    }
    return at != nullptr;
  }

  ByteDfa::State spare_[2];  ///< The state of a place is needed until that of the next one is known.
};

}  // namespace

TokenMask::TokenMask(const TokenMaskOptions& options)
    : vocabulary_(options.vocabulary),
      dfa_(compile_pattern(options.pattern)),
      scratch_(options.vocabulary->depth() + 1),
      path_(options.vocabulary->depth() + 1) {}

TokenMask::State TokenMask::after(const State& state, std::int64_t token_id) {
  const std::vector<std::string>& bytes = vocabulary_->bytes();
  if (state == nullptr || token_id < 0 || token_id >= std::ssize(bytes) ||
      bytes[static_cast<std::size_t>(token_id)].empty()) {
    return nullptr;
  }
  return behind(state, bytes[static_cast<std::size_t>(token_id)]);
}

void TokenMask::walk(ByteDfa::State& state, MaskBits& bits, std::vector<State>* ends) {
  bits.forbid_all();
  dfa_.forget_if_full();
  const MaskVocabulary::Tree& plain = vocabulary_->plain();
  if (ends == nullptr && dfa_.survives(state, MaskVocabulary::plain_bytes(), MaskVocabulary::kPlainLength)) {
    bits.allow_all_of(vocabulary_->plain_bits());
  } else {
    walk(plain, state, bits, ends);
  }
  walk(vocabulary_->others(), state, bits, ends);
}

void TokenMask::walk(const MaskVocabulary::Tree& tree, ByteDfa::State& state, MaskBits& bits,
                     std::vector<State>* ends) {
  const std::vector<MaskVocabulary::Node>& nodes = tree.nodes;
  const std::vector<std::uint32_t>& tokens = tree.tokens;
  path_[0] = &state;
  for (std::uint32_t index = 0; index < nodes.size();) {
    const MaskVocabulary::Node& node = nodes[index];
    ByteDfa::State* const next = dfa_.step(*path_[node.depth - 1U], node.byte, scratch_[node.depth]);
    if (next == nullptr) {
      index = node.end;
      continue;
    }
    path_[node.depth] = next;
    for (std::uint32_t token = 0; token < node.token_count; ++token) {
      bits.allow(tokens[node.tokens + token]);
    }
    if (ends != nullptr && node.token_count > 0) {
      ends->push_back(next == &scratch_[node.depth] ? std::make_shared<ByteDfa::State>(*next)
                                                    : next->shared_from_this());
    }
    ++index;
  }
}

std::unique_ptr<TokenMask> make_scan_masks(const TokenMaskOptions& options) {
  return std::make_unique<ScanMasks>(options);
}

}  // namespace decodelab
