// Launches the kernels, and puts details together from what they leave.
#include "variants/top_tokens/scan_on_device.h"

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <utility>

#include "engine/kernels/device_element.h"
#include "engine/kernels/elementwise/scan_logits.cuh"
#include "engine/tensor.h"
#include "variants/top_tokens/scanned_details.h"

namespace decodelab {

#ifdef DECODELAB_HAS_CUDA
namespace {

/// Tensors on their way to the host.
class Copies {
 public:
  explicit Copies(const at::Tensor& where) : device_(where.device()), copied_(device_.type()) {}

  at::Tensor add(const at::Tensor& tensor) {
    at::Tensor host = at::empty(tensor.sizes(), tensor.options().device(at::kCPU).pinned_memory(true));
    host.copy_(tensor, /*non_blocking=*/true);
    return host;
  }
  void end() { copied_.record(c10::impl::VirtualGuardImpl(device_.type()).getStream(device_)); }
  void wait() { copied_.synchronize(); }

 private:
  at::Device device_;
  c10::Event copied_;
};

/// What the kernels leave of N rows, on the host once it was waited for.
struct Found {
  std::vector<TokenRequest> wanted;
  std::shared_ptr<Copies> copies;
  at::Tensor own;         ///< [N, 1] fp32: the logits of the rows' tokens.
  at::Tensor of_ids;      ///< [M] fp32: those of all ids that rows ask for, row by row.
  at::Tensor parts;       ///< [N, P, 4] int32: DevicePart
  at::Tensor found;       ///< [N] int32
  at::Tensor top_logits;  ///< [N, C] fp32
  at::Tensor top_ids;     ///< [N, C] int32

  LogitScan scan_of(std::int64_t row) const {
    const std::int64_t count = parts.size(1);
    const auto* of_row = reinterpret_cast<const DevicePart*>(parts.const_data_ptr()) + row * count;
    LogitScan whole;
    for (std::int64_t part = 0; part < count; ++part) {
      LogitScan scan{.largest = of_row[part].largest,
                     .sum = static_cast<double>(of_row[part].sum),
                     .greater = of_row[part].greater,
                     .has_nan = of_row[part].nans > 0};
      if (scan.sum == 0) {
        scan.largest = -std::numeric_limits<float>::infinity();
      }
      whole = merged(whole, scan);
    }
    return whole;
  }

  std::vector<RankedLogit> largest_of_row(std::int64_t row) const {
    const std::int64_t capacity = top_logits.size(1);
    std::vector<RankedLogit> some;
    for (std::int64_t place = row * capacity; place < row * capacity + found.const_data_ptr<std::int32_t>()[row];
         ++place) {
      some.push_back(
          {.logit = top_logits.const_data_ptr<float>()[place], .id = top_ids.const_data_ptr<std::int32_t>()[place]});
    }
    return some;
  }

  std::vector<TokenDetails> details() const {
    copies->wait();
    std::vector<TokenDetails> all(wanted.size());
    const float* of_id = of_ids.defined() ? of_ids.const_data_ptr<float>() : nullptr;
    for (std::size_t index = 0; index < all.size(); ++index) {
      const TokenRequest& asked = wanted[index];
      const auto row = static_cast<std::int64_t>(index);
      const float* const ids_of_row = std::exchange(of_id, of_id + asked.ids.size());
      all[index] = scanned_details(
          asked, scan_of(row), own.const_data_ptr<float>()[row], [&](std::size_t place) { return ids_of_row[place]; },
          [&] { return largest_of(largest_of_row(row), asked.top, asked.ties); });
    }
    return all;
  }
};

}  // namespace

PendingDetails scan_on_device(const DetailsTask& task) {
  const at::Tensor logits = task.logits.stride(1) == 1 ? task.logits : task.logits.contiguous();
  const auto rows = static_cast<std::int64_t>(task.wanted.size());
  const std::int64_t width = logits.size(1);
  Found found{.wanted = {}, .copies = std::make_shared<Copies>(logits)};
  std::vector<std::int64_t> tops;
  std::vector<std::int64_t> rows_of_ids;
  std::vector<std::int64_t> all_ids;
  for (std::int64_t row = 0; row < rows; ++row) {
    const TokenRequest& asked = *task.wanted[static_cast<std::size_t>(row)];
    found.wanted.push_back(asked);
    tops.push_back(asked.top);
    rows_of_ids.insert(rows_of_ids.end(), asked.ids.size(), row);
    all_ids.insert(all_ids.end(), asked.ids.begin(), asked.ids.end());
  }
  const std::int64_t most = std::min(most_top_tokens(task), width);
  // Four times n is what ties may take; a group more shows that there are others.
  const std::int64_t capacity = most == 0 ? 0 : std::min(4 * most + kScanGroup, width);
  const auto on_device = logits.options();
  const auto to_device = [&](const std::vector<std::int64_t>& values) {
    return at::tensor(values, at::kLong).to(logits.device());
  };
  const at::Tensor ids = task.ids.contiguous();
  const at::Tensor wanted_tops = to_device(tops);
  const at::Tensor maxima = at::empty({rows, scan_groups(width)}, on_device.dtype(at::kFloat));
  const at::Tensor parts =
      at::empty({rows, scan_parts(width), static_cast<std::int64_t>(sizeof(DevicePart) / sizeof(std::int32_t))},
                on_device.dtype(at::kInt));
  const at::Tensor counts = at::empty({rows}, on_device.dtype(at::kInt));
  const at::Tensor top_logits = at::empty({rows, capacity}, on_device.dtype(at::kFloat));
  const at::Tensor top_ids = at::empty({rows, capacity}, on_device.dtype(at::kInt));
  const DeviceScan scan{.element = device_element(logits.scalar_type()),
                        .rows = rows,
                        .width = width,
                        .stride = logits.stride(0),
                        .capacity = capacity,
                        .logits = logits.const_data_ptr(),
                        .ids = ids.const_data_ptr<std::int64_t>(),
                        .tops = wanted_tops.const_data_ptr<std::int64_t>(),
                        .group_maxima = maxima.mutable_data_ptr<float>(),
                        .parts = static_cast<DevicePart*>(parts.mutable_data_ptr()),
                        .found = counts.mutable_data_ptr<std::int32_t>(),
                        .top_logits = top_logits.mutable_data_ptr<float>(),
                        .top_ids = top_ids.mutable_data_ptr<std::int32_t>()};
  on_stream_of(logits, [&](CUstream_st* stream) { launch_scan_logits(scan, most > 0, stream); });
  Copies& copies = *found.copies;
  found.own = copies.add(logits.gather(1, ids).to(at::kFloat));
  if (!all_ids.empty()) {
    found.of_ids = copies.add(logits.index({to_device(rows_of_ids), to_device(all_ids)}).to(at::kFloat));
  }
  found.parts = copies.add(parts);
  if (most > 0) {
    found.found = copies.add(counts);
    found.top_logits = copies.add(top_logits);
    found.top_ids = copies.add(top_ids);
  }
  copies.end();
  return [found = std::move(found)] { return found.details(); };
}
#else
PendingDetails scan_on_device(const DetailsTask&) {
  throw std::invalid_argument("details of tokens on a GPU need a build with CUDA");
}
#endif

}  // namespace decodelab
