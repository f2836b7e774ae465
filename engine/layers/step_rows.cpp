// Index tensors of a forward step, each made at most once and only when a slot asks for it.
#include "engine/layers/step_rows.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <stdexcept>

namespace decodelab {

StepRows::StepRows(std::vector<std::int64_t> past, std::vector<std::int64_t> added, std::int64_t positions,
                   at::Device device, PrefillLayout layout, const StepTables* tables)
    : past_(std::move(past)), added_(std::move(added)), positions_(positions), device_(device), tables_(tables) {
  if (past_.empty() || past_.size() != added_.size()) {
    throw std::invalid_argument("a step needs at least one row, and as many counts of held keys as of new tokens");
  }
  for (std::size_t row = 0; row < past_.size(); ++row) {
    tokens_ = std::max(tokens_, added_[row]);
    keys_ = std::max(keys_, past_[row] + added_[row]);
    uniform_ = uniform_ && past_[row] == past_[0] && added_[row] == added_[0];
  }
  if (tokens_ < 1) {
    throw std::invalid_argument("a step adds at least one token to at least one row");
  }
  packs_ = layout == PrefillLayout::packed && !uniform_ && tokens_ > 1;
}

StepRows::StepRows(const RecordedRows& recorded)
    : added_(static_cast<std::size_t>(recorded.held.size(0)), recorded.tokens),
      positions_(recorded.key_index.size(0)),
      device_(recorded.held.device()),
      tables_(nullptr),
      key_index_(recorded.key_index),
      tokens_(recorded.tokens),
      keys_(recorded.shown_keys),
      uniform_(false),
      held_on_device_(recorded.held),
      position_ids_(recorded.held.unsqueeze(1)),
      scatter_{.source = recorded.row_index, .row = recorded.row_index, .position = recorded.held} {
  if (tokens_ == 1) {
    return;
  }
  const at::Tensor index = key_index_.narrow(0, 0, tokens_);
  const at::Tensor place = position_ids_ + index;  // [B, T]
  position_ids_ = place.clamp_max(positions_ - 1);
  scatter_ = {.source = (recorded.row_index.unsqueeze(1) * tokens_ + index).flatten(),
              .row = recorded.row_index.unsqueeze(1).expand_as(place).flatten().contiguous(),
              .position = place.flatten()};
  held_before_queries_on_device_[tokens_] = scatter_.position;
}

const std::vector<std::int64_t>& StepRows::past() const {
  if (past_.empty()) {
    throw std::logic_error(
        "a recorded step was asked on the host how many keys its rows hold, which only the device knows");
  }
  return past_;
}

const at::Tensor& StepRows::held_on_device() const {
  if (!held_on_device_.defined()) {
    if (!uniform_) {
      held_on_device_ = to_device(past_);
    } else if (tables_ != nullptr && past_[0] < tables_->positions()) {
      held_on_device_ = tables_->position_ids(past_[0], 1).view({1}).expand({batch_size()});
    } else {
      held_on_device_ = at::full({1}, past_[0], at::TensorOptions(at::kLong).device(device_)).expand({batch_size()});
    }
  }
  return held_on_device_;
}

const std::vector<std::int64_t>& StepRows::held_before_queries(std::int64_t queries) const {
  std::vector<std::int64_t>& held = held_before_queries_[queries];
  for (std::size_t row = 0; std::ssize(held) < batch_size() * queries; ++row) {
    for (std::int64_t query = 0; query < queries; ++query) {
      held.push_back(past()[row] + std::max<std::int64_t>(0, std::min(query, added_[row] - 1)));
    }
  }
  return held;
}

const at::Tensor& StepRows::held_before_queries_on_device(std::int64_t queries) const {
  if (queries == 1) {
    return held_on_device();
  }
  at::Tensor& held = held_before_queries_on_device_[queries];
  if (!held.defined()) {
    held = to_device(held_before_queries(queries));
  }
  return held;
}

bool StepRows::all_add() const { return std::ranges::find(added_, 0) == added_.end(); }

std::int64_t StepRows::padding_tokens() const {
  return packs_ ? 0 : batch_size() * tokens_ - std::accumulate(added_.begin(), added_.end(), std::int64_t{0});
}

at::Tensor StepRows::padded(const at::Tensor& x) const {
  if (!packs_) {
    return x;
  }
  at::DimVector shape(x.sizes());
  shape[0] = batch_size() * tokens_;
  shape.erase(shape.begin() + 1);
  return at::zeros(shape, x.options()).index_copy_(0, scatter().source, x[0]).unflatten(0, {batch_size(), tokens_});
}

at::Tensor StepRows::packed(const at::Tensor& x) const {
  return packs_ ? x.flatten(0, 1).index_select(0, scatter().source).unsqueeze(0) : x;
}

at::Tensor StepRows::to_device(const std::vector<std::int64_t>& values) const {
  return at::tensor(values, at::kLong).to(device_);
}

const at::Tensor& StepRows::position_ids() const {
  if (!position_ids_.defined()) {
    const auto options = at::TensorOptions(at::kLong).device(device_);
    if (packs_) {
      position_ids_ = scatter().position.unsqueeze(0);
    } else if (uniform_ && tables_ != nullptr) {
      position_ids_ = tables_->position_ids(past_[0], tokens_);
    } else if (uniform_) {
      position_ids_ = at::arange(past_[0], past_[0] + tokens_, options).unsqueeze(0);
    } else {
      position_ids_ = (to_device(past_).unsqueeze(1) + at::arange(tokens_, options)).clamp_max_(positions_ - 1);
    }
  }
  return position_ids_;
}

at::Tensor StepRows::visible(std::int64_t held_keys, std::int64_t window) const {
  at::Tensor& mask = visible_[{held_keys, window}];
  if (!mask.defined()) {
    mask = make_visible(held_keys, window);
  }
  return mask;
}

at::Tensor StepRows::make_visible(std::int64_t held_keys, std::int64_t window) const {
  if (!sees_all_keys_ && window == 0 && uniform_ && tokens_ == 1 && tables_ != nullptr &&
      held_keys <= tables_->positions()) {
    return tables_->visible(past_[0], held_keys);
  }
  if (sees_all_keys_) {
    std::vector<std::int64_t> held = past_;
    std::ranges::transform(held, added_, held.begin(), std::plus());
    const at::Tensor lengths = to_device(uniform_ ? std::vector<std::int64_t>{held[0]} : held);
    return at::arange(held_keys, lengths.options()).view({1, 1, held_keys}) < lengths.view({-1, 1, 1});
  }
  const auto within = [window](const at::Tensor& keys, const at::Tensor& last_visible) {
    const at::Tensor mask = keys <= last_visible;
    return window == 0 ? mask : mask.logical_and(keys > last_visible - window);
  };
  if (key_index_.defined()) {
    return within(key_index_.narrow(0, 0, held_keys).view({1, 1, held_keys}),
                  scatter_.position.view({batch_size(), tokens_, 1}));
  }
  const auto options = at::TensorOptions(at::kLong).device(device_);
  const at::Tensor first_keys = to_device(uniform_ ? std::vector<std::int64_t>{past_[0]} : past_);
  const at::Tensor last_visible = first_keys.unsqueeze(1) + at::arange(tokens_, options);              // [B, T]
  return within(at::arange(held_keys, options).unsqueeze(0).unsqueeze(0), last_visible.unsqueeze(2));  // [B, T, K]
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

std::vector<std::int64_t> StepRows::first_token_index() const {
  std::vector<std::int64_t> index;
  std::int64_t begin = 0;
  for (const std::int64_t added : added_) {
    index.push_back(begin);
    begin += packs_ ? added : tokens_;
  }
  return index;
}

const at::Tensor& StepRows::last_token_index() const {
  if (!last_token_index_.defined()) {
    std::vector<std::int64_t> index = first_token_index();
    for (std::size_t row = 0; row < index.size(); ++row) {
      index[row] = std::max<std::int64_t>(0, index[row] + added_[row] - 1);
    }
    last_token_index_ = to_device(index);
  }
  return last_token_index_;
}

}  // namespace decodelab
