// Keeps, selects and joins the keys and values of encoded prompts.
#include "engine/layers/encoded_prompts.h"

#include <algorithm>
#include <utility>

#include "base/select_rows.h"

namespace decodelab {
namespace {

/// Returns `layer` with zeros up to `tokens` tokens.
at::Tensor filled_up(const at::Tensor& layer, std::int64_t tokens) {
  return layer.size(1) == tokens ? layer : at::constant_pad_nd(layer, {0, 0, 0, tokens - layer.size(1)});
}

}  // namespace

EncodedPrompts::EncodedPrompts(std::vector<at::Tensor> layers, std::vector<std::int64_t> lengths)
    : layers_(std::move(layers)), lengths_(std::move(lengths)), rows_(rows_of_queries()) {}

StepRows EncodedPrompts::rows_of_queries() const {
  std::vector<std::int64_t> past = lengths_;
  for (std::int64_t& length : past) {
    --length;
  }
  return {std::move(past), std::vector<std::int64_t>(lengths_.size(), 1), layers_.front().size(1),
          layers_.front().device()};
}

KeysValues EncodedPrompts::held(std::int64_t layer) const {
  const at::Tensor& both = layers_[static_cast<std::size_t>(layer)];
  const std::int64_t width = both.size(2) / 2;
  return {.keys = both.narrow(2, 0, width), .values = both.narrow(2, width, width)};
}

std::int64_t EncodedPrompts::bytes() const {
  std::int64_t total = 0;
  for (const at::Tensor& layer : layers_) {
    total += static_cast<std::int64_t>(layer.nbytes());
  }
  return total;
}

void EncodedPrompts::select(const std::vector<std::int64_t>& rows) {
  lengths_ = select_rows(lengths_, rows);
  const std::int64_t longest = std::ranges::max(lengths_);
  const at::Tensor index = at::tensor(rows, at::kLong).to(layers_.front().device());
  for (at::Tensor& layer : layers_) {
    layer = layer.narrow(1, 0, longest).index_select(0, index);
  }
  rows_ = rows_of_queries();
}

void EncodedPrompts::append(RowPart& part) {
  const auto& other = dynamic_cast<const EncodedPrompts&>(part);
  const std::int64_t longest = std::max(layers_.front().size(1), other.layers_.front().size(1));
  for (std::size_t layer = 0; layer < layers_.size(); ++layer) {
    layers_[layer] = at::cat({filled_up(layers_[layer], longest), filled_up(other.layers_[layer], longest)});
  }
  lengths_.insert(lengths_.end(), other.lengths_.begin(), other.lengths_.end());
  rows_ = rows_of_queries();
}

}  // namespace decodelab
