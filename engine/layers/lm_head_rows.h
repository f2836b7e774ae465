// Which positions of a prefill go through the language-model head: the interface of a slot, and its reference.
#pragma once

#include <memory>

namespace decodelab {

struct DetailsRequest;

/// Chooses the hidden states that become logits.
class LmHeadRows {
 public:
  virtual ~LmHeadRows() = default;

  /// True when every position of the step gets logits, false when each row's last real token alone does.
  virtual bool all_positions(const DetailsRequest& requested) const = 0;
};

/// The reference: every position, whatever was requested.
std::unique_ptr<LmHeadRows> make_all_lm_head_rows();

}  // namespace decodelab
