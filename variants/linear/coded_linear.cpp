// Rounds weights, and multiplies by them on a CPU.
#include "variants/linear/coded_linear.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <optional>
#include <utility>

#include "engine/kernels/scalar_type.h"
#include "engine/layers/gate.h"
#include "engine/layers/kept_panels.h"
#include "engine/layers/prepared_weights.h"
#include "engine/layers/workspace.h"
#include "engine/tensor.h"

namespace decodelab {
namespace {

/// Rows that are worth another thread to code.
constexpr std::int64_t kRowsOfATask = 4;

class CodedLinear final : public Linear {
 public:
  CodedLinear(const LinearWeights& weights, std::vector<std::shared_ptr<const CodedMatrix>> parts)
      : parts_(std::move(parts)), inputs_(weights.inputs), dtype_(weights.dtype), isa_(best_integer_isa()) {
    if (weights.bias != nullptr) {
      bias_ = *weights.bias;
    }
    for (const auto& part : parts_) {
      results_ += part->results();
    }
  }

  std::int64_t coded_bytes() const override {
    return std::accumulate(parts_.begin(), parts_.end(), std::int64_t{0},
                           [](std::int64_t sum, const auto& part) { return sum + part->bytes(); });
  }
  at::Tensor dequantized() const override {
    std::vector<at::Tensor> values;
    for (const auto& part : parts_) {
      at::Tensor& rows = values.emplace_back(at::empty({part->outputs(), inputs_}, at::kFloat));
      const std::span<float> to(rows.mutable_data_ptr<float>(), static_cast<std::size_t>(rows.numel()));
      at::parallel_for(0, part->panels(), 1,
                       [&](std::int64_t first, std::int64_t last) { part->decode(first, last, to); });
    }
    return at::cat(values);
  }
  at::Tensor forward(const at::Tensor& x, Workspace& workspace) const override { return multiply(x, {}, workspace); }
  at::Tensor activated(const at::Tensor& x, Activation activation, Workspace& workspace) const override {
    return multiply(x, activation, workspace);
  }
  at::Tensor gated(const at::Tensor& x, Activation activation, Workspace& workspace) const override {
    return parts_.front()->gated() ? multiply(x, activation, workspace)
                                   : gate(multiply(x, {}, workspace), activation, workspace);
  }

 private:
  at::Tensor multiply(const at::Tensor& x, std::optional<Activation> activation, Workspace& workspace) const {
    const std::int64_t rows = x.numel() / inputs_;
    const at::Tensor flat = x.reshape({rows, inputs_}).contiguous();
    const std::int64_t bytes = CodedRows::bytes(rows, inputs_);
    const at::Tensor memory = workspace.allocate({bytes}, x.options().dtype(at::kByte));
    const CodedRows coded(rows, inputs_,
                          {static_cast<std::byte*>(memory.mutable_data_ptr()), static_cast<std::size_t>(bytes)},
                          scales_rows(parts_.front()->code()));
    at::parallel_for(0, rows, kRowsOfATask, [&](std::int64_t first, std::int64_t last) {
      coded.fill(flat.const_data_ptr(), dtype_, inputs_, first, last);
    });
    const at::Tensor y = workspace.allocate_rows(x, results_);
    const auto size = static_cast<std::int64_t>(element_bytes(dtype_));
    std::int64_t before = 0;
    for (const auto& part : parts_) {
      const ProductOutput output{
          .outputs = part->outputs(),
          .gated = part->gated(),
          .dtype = dtype_,
          .bias = bias_ ? static_cast<const std::byte*>(bias_->const_data_ptr()) + before * size : nullptr,
          .y = static_cast<std::byte*>(y.mutable_data_ptr()) + before * size,
          .y_stride = results_,
          .activation = activation};
      const std::int64_t together = part->panels_together();
      at::parallel_for(0, part->panels() / together, 1, [&](std::int64_t first, std::int64_t last) {
        multiply_coded(*part, coded, output, first * together, last * together, isa_);
      });
      before += part->results();
    }
    return y;
  }

  std::vector<std::shared_ptr<const CodedMatrix>> parts_;
  std::int64_t inputs_;
  std::int64_t results_ = 0;
  ElementType dtype_;
  IntegerIsa isa_;
  std::optional<at::Tensor> bias_;
};

/// Codes all panels of a matrix whose weights lie in memory as `Element`s.
template <typename Element>
void code_panels(CodedMatrix& matrix, const Element* dense) {
  at::parallel_for(0, matrix.panels(), 1, [&](std::int64_t first, std::int64_t last) {
    std::uint16_t scale = 0;  // Of the row, whose groups come one after the other.
    const auto group_of = [&](std::int64_t row, std::int64_t group) {
      const std::int64_t begin = group * kCodedGroup;
      const std::int64_t count = std::min(kCodedGroup, matrix.inputs() - begin);
      std::array<float, kCodedGroup> values{};
      const Element* const weights = dense + row * matrix.inputs();
      std::copy_n(weights + begin, count, values.begin());
      if (scales_rows(matrix.code())) {
        if (group == 0) {
          float largest = 0;
          for (std::int64_t input = 0; input < matrix.inputs(); ++input) {
            largest = std::max(largest, std::abs(static_cast<float>(weights[input])));
          }
          scale = row_scale(largest);
        }
        return coded_by(scale, values.data(), count);
      }
      return coded(values.data(), count, matrix.code());
    };
    matrix.fill(group_of, first, last);
  });
}

}  // namespace

std::shared_ptr<const CodedMatrix> rounded_matrix(const LinearWeights& weights, PreparedWeights& prepared,
                                                  WeightCode code) {
  const std::string key = std::string(to_string(code)) + (weights.gated ? " gated " : " ") + weights.name;
  const auto bytes =
      static_cast<std::size_t>(CodedMatrix::bytes_of(weights.outputs, weights.inputs, code, weights.gated));
  return prepared.prepare<CodedMatrix>(key, bytes, [&] {
    auto matrix = std::make_unique<CodedMatrix>(weights.outputs, weights.inputs, code, weights.gated);
    // The dtype is that of the model, whose weights are rounded to it first.
    const std::string name = weights.name + (weights.dtype == ElementType::bfloat16 ? " from bf16" : " from fp32");
    fill_or_read(*matrix, name, prepared.files(), [&] {
      const at::Tensor dense = weights.read().contiguous();
      if (dense.scalar_type() == at::kBFloat16) {
        code_panels(*matrix, dense.const_data_ptr<at::BFloat16>());
      } else {
        code_panels(*matrix, dense.const_data_ptr<float>());
      }
    });
    return matrix;
  });
}

std::unique_ptr<Linear> make_coded_linear(const LinearWeights& weights,
                                          std::vector<std::shared_ptr<const CodedMatrix>> parts) {
  return std::make_unique<CodedLinear>(weights, std::move(parts));
}

std::vector<Expectation> coded_linear_expects(const CountedSteps&, const Parameters&) {
  return {{"op.aten::linear", 0}};
}

std::string coded_linear_unsupported(const RunsOn& where) {
  if (where.device != "cpu") {
    return "its kernels are for the CPU";
  }
  return where.dtype == ElementType::float16 ? "its kernels take activations in fp32 and bf16" : "";
}

}  // namespace decodelab
