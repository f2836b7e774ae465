// Which positions of a prefill go through the language-model head: the interface of a slot, and its reference.
#pragma once

#include <cstdint>
#include <memory>

namespace decodelab {

struct DetailsRequest;

/// Chooses the hidden states of prompts that become logits.
class LmHeadRows {
 public:
  virtual ~LmHeadRows() = default;

  /// True when every position of the step gets logits where a row of it has this request, false when each row's last
  /// real token alone does.
  virtual bool all_positions(const DetailsRequest& requested) const = 0;
  /// Returns how many positions of a row go through the head at a time where they only give details; 0: all at once.
  virtual std::int64_t piece() const { return 0; }
};

/// The reference: every position, whatever was requested.
std::unique_ptr<LmHeadRows> make_all_lm_head_rows();

}  // namespace decodelab
