// Index tensors of a forward step, each made at most once and only when a slot asks for it.
#include "engine/layers/step_rows.h"

#include <algorithm>
#include <stdexcept>

namespace decodelab {

StepRows::StepRows(std::vector<std::int64_t> past, std::vector<std::int64_t> added, std::int64_t positions,
                   at::Device device)
    : past_(std::move(past)), added_(std::move(added)), positions_(positions), device_(device) {
  if (past_.empty() || past_.size() != added_.size()) {
    throw std::invalid_argument("a step needs at least one row, and as many counts of held keys as of new tokens");
  }
  for (std::size_t row = 0; row < past_.size(); ++row) {
    tokens_ = std::max(tokens_, added_[row]);
    keys_ = std::max(keys_, past_[row] + added_[row]);
    uniform_ = uniform_ && past_[row] == past_[0] && added_[row] == added_[0];
  }
}

at::Tensor StepRows::to_device(const std::vector<std::int64_t>& values) const {
  return at::tensor(values, at::kLong).to(device_);
}

const at::Tensor& StepRows::position_ids() const {
  if (!position_ids_.defined()) {
    const auto options = at::TensorOptions(at::kLong).device(device_);
    if (uniform_) {
      position_ids_ = at::arange(past_[0], past_[0] + tokens_, options).unsqueeze(0);
    } else {
      position_ids_ = (to_device(past_).unsqueeze(1) + at::arange(tokens_, options)).clamp_max_(positions_ - 1);
    }
  }
  return position_ids_;
}

const at::Tensor& StepRows::visible(std::int64_t held_keys) const {
  if (!visible_.defined() || visible_.size(2) != held_keys) {
    const auto options = at::TensorOptions(at::kLong).device(device_);
    const at::Tensor first_keys = to_device(uniform_ ? std::vector<std::int64_t>{past_[0]} : past_);
    const at::Tensor last_visible = first_keys.unsqueeze(1) + at::arange(tokens_, options);            // [B, T]
    visible_ = at::arange(held_keys, options).unsqueeze(0).unsqueeze(0) <= last_visible.unsqueeze(2);  // [B, T, K]
  }
  return visible_;
}

const StepRows::Scatter& StepRows::scatter() const {
  if (!scatter_.source.defined()) {
    std::vector<std::int64_t> source;
    std::vector<std::int64_t> row;
    std::vector<std::int64_t> position;
    for (std::int64_t b = 0; b < batch_size(); ++b) {
      for (std::int64_t t = 0; t < added_[static_cast<std::size_t>(b)]; ++t) {
        source.push_back(b * tokens_ + t);
        row.push_back(b);
        position.push_back(past_[static_cast<std::size_t>(b)] + t);
      }
    }
    scatter_ = {.source = to_device(source), .row = to_device(row), .position = to_device(position)};
  }
  return scatter_;
}

const at::Tensor& StepRows::last_token_index() const {
  if (!last_token_index_.defined()) {
    std::vector<std::int64_t> index;
    for (std::int64_t b = 0; b < batch_size(); ++b) {
      index.push_back(b * tokens_ + added_[static_cast<std::size_t>(b)] - 1);
    }
    last_token_index_ = to_device(index);
  }
  return last_token_index_;
}

}  // namespace decodelab
