// The tokens that a step chose, on the device and as an asynchronous copy to the host.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "engine/tensor.h"

namespace decodelab {

/// Holds an asynchronous copy of one token per row to the host; read() waits for the copy. On a CPU the tokens are
/// available at once.
class HostTokens {
 public:
  /// Holds no copy.
  HostTokens() = default;
  explicit HostTokens(std::vector<std::int64_t> tokens) : tokens_(std::move(tokens)) {}
  /// Starts to copy `device_tokens` ([B, 1] int64) into pinned memory, after the work that the current stream already
  /// has.
  explicit HostTokens(const at::Tensor& device_tokens);

  bool empty() const { return tokens_.empty() && !copy_.defined(); }
  /// Waits for the copy, returns its tokens, and leaves the object empty.
  std::vector<std::int64_t> read();

 private:
  std::vector<std::int64_t> tokens_;
  at::Tensor copy_;  ///< [B, 1] int64, on the host.
  std::optional<c10::Event> copied_;
};

/// Holds one token per row, B rows.
struct ChosenTokens {
  HostTokens host;
  at::Tensor device;  ///< [B, 1] int64: the next step's input ids.
};

}  // namespace decodelab
