// The tokens that a step chose, on the device and on their way to the host.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "engine/tensor.h"

namespace decodelab {

/// One token a row on its way to the host: the copy is under way, and whoever reads waits for it. On a CPU it is there
/// at once.
class HostTokens {
 public:
  /// Nothing is under way.
  HostTokens() = default;
  explicit HostTokens(std::vector<std::int64_t> tokens) : tokens_(std::move(tokens)) {}
  /// Begins the copy of `device_tokens` ([B, 1] int64): into pinned memory, behind what the current stream does
  /// already.
  explicit HostTokens(const at::Tensor& device_tokens);

  bool empty() const { return tokens_.empty() && !copy_.defined(); }
  /// The tokens, and nothing is under way any more.
  std::vector<std::int64_t> read();

 private:
  std::vector<std::int64_t> tokens_;
  at::Tensor copy_;  ///< [B, 1] int64, on the host.
  std::optional<c10::Event> copied_;
};

/// One token a row, B rows.
struct ChosenTokens {
  HostTokens host;
  at::Tensor device;  ///< [B, 1] int64: the next step's input ids.
};

}  // namespace decodelab
