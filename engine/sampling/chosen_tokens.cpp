// Copies chosen tokens to the host without waiting for them.
#include "engine/sampling/chosen_tokens.h"

namespace decodelab {

HostTokens::HostTokens(const at::Tensor& device_tokens) {
  if (device_tokens.is_cpu()) {
    const auto* first = device_tokens.const_data_ptr<std::int64_t>();
    tokens_.assign(first, first + device_tokens.numel());
    return;
  }
  copy_ = at::empty(device_tokens.sizes(), device_tokens.options().device(at::kCPU).pinned_memory(true));
  copy_.copy_(device_tokens, /*non_blocking=*/true);
  copied_.emplace(device_tokens.device().type());
  copied_->record(c10::impl::VirtualGuardImpl(device_tokens.device().type()).getStream(device_tokens.device()));
}

std::vector<std::int64_t> HostTokens::read() {
  if (copy_.defined()) {
    copied_->synchronize();
    const auto* first = copy_.const_data_ptr<std::int64_t>();
    tokens_.assign(first, first + copy_.numel());
    copy_.reset();
  }
  return std::exchange(tokens_, {});
}

}  // namespace decodelab
