// Calls libtorch's operators for packed weights through its dispatcher: they have no C++ header.
#include "engine/layers/onednn_linear.h"

#include <string_view>
#include <utility>

#include "engine/kernels/cpu_isa.h"

namespace decodelab {
namespace {

/// The number of rows that the order of the weight is chosen for; others run on the same order.
constexpr std::int64_t kRows = 256;

using Reorder = at::Tensor(const at::Tensor&, std::optional<std::int64_t>);
using Pointwise = at::Tensor(const at::Tensor&, const at::Tensor&, const std::optional<at::Tensor>&, std::string_view,
                             c10::List<std::optional<at::Scalar>>, std::optional<std::string_view>);

template <typename Signature>
std::optional<c10::TypedOperatorHandle<Signature>> find(const char* name) {
  const auto handle = c10::Dispatcher::singleton().findSchema({name, ""});
  return handle ? std::optional(handle->typed<Signature>()) : std::nullopt;
}

const auto& pointwise() {
  static const auto found = find<Pointwise>("mkldnn::_linear_pointwise");
  return found;
}

/// The operator's name of an activation, and its form.
std::pair<std::string_view, std::optional<std::string_view>> names_of(std::optional<Activation> activation) {
  if (!activation) {
    return {"none", std::nullopt};
  }
  switch (*activation) {
    case Activation::gelu_tanh: return {"gelu", "tanh"};
    case Activation::gelu_erf: return {"gelu", "none"};
    case Activation::silu: return {"swish", std::nullopt};
    case Activation::relu: break;
  }
  return {"relu", std::nullopt};
}

}  // namespace

std::unique_ptr<OneDnnLinear> OneDnnLinear::make(const at::Tensor& weight) {
  static const auto reorder = find<Reorder>("mkldnn::_reorder_linear_weight");
  const bool bf16 = weight.scalar_type() == at::kBFloat16;
  if (!at::hasMKLDNN() || !reorder || !pointwise() || !weight.is_cpu() ||
      (bf16 && best_cpu_isa(ElementType::bfloat16) < CpuIsa::avx512)) {
    return nullptr;
  }
  return std::unique_ptr<OneDnnLinear>(new OneDnnLinear(reorder->call(weight.contiguous(), kRows)));
}

at::Tensor OneDnnLinear::forward(const at::Tensor& x, const std::optional<at::Tensor>& bias,
                                 std::optional<Activation> activation) const {
  const auto [attribute, form] = names_of(activation);
  return pointwise()->call(x, packed_, bias, attribute, c10::List<std::optional<at::Scalar>>(), form);
}

}  // namespace decodelab
