// Hands the bytes of tensors to the memory that ranks share.
#include "engine/ranks/exchange.h"

#include <span>
#include <stdexcept>
#include <vector>

#include "engine/checkpoint/rank_part.h"
#include "engine/kernels/scalar_type.h"
#include "engine/tensor.h"
#include "profiles/range.h"

namespace decodelab {
namespace {

std::span<std::byte> bytes_of(const at::Tensor& tensor) {
  if (!tensor.is_contiguous() || !tensor.is_cpu()) {
    throw std::logic_error("ranks exchange contiguous tensors in the memory of a CPU");
  }
  return {static_cast<std::byte*>(tensor.mutable_data_ptr()), tensor.nbytes()};
}

}  // namespace

void sum_over(RankMemory& memory, const at::Tensor& part, bool exchanges) {
  const Range range(Stage::all_reduce);
  count_amount(Amount::all_reduces, 1);
  count_amount(Amount::all_reduced_bytes, static_cast<std::int64_t>(part.nbytes()));
  if (exchanges) {
    memory.sum(bytes_of(part), element_type(part.scalar_type()));
  }
}

at::Tensor exchange_head(RankMemory& memory, const ModelConfig& config, const at::Tensor& normed, bool exchanges,
                         const std::function<at::Tensor(const at::Tensor&)>& part_of) {
  const std::size_t element = normed.itemsize();
  if (exchanges) {
    memory.broadcast(bytes_of(normed));
  }
  const at::Tensor part = part_of(normed).contiguous();
  if (memory.rank() == 0 && !exchanges) {
    return at::constant_pad_nd(part, {0, config.vocabulary_size - part.size(1)});
  }
  std::vector<std::size_t> firsts;
  std::vector<std::size_t> counts;
  for (std::int64_t rank = 0; rank < memory.ranks(); ++rank) {
    const IndexRange rows = head_rows(config, {.rank = rank, .ranks = memory.ranks()});
    firsts.push_back(static_cast<std::size_t>(rows.first) * element);
    counts.push_back(static_cast<std::size_t>(rows.count) * element);
  }
  const bool first = memory.rank() == 0;
  at::Tensor logits = at::empty({normed.size(0), first ? config.vocabulary_size : 0}, normed.options());
  if (exchanges) {
    const Range range(Stage::all_reduce);
    memory.gather(bytes_of(part), firsts, counts, first ? bytes_of(logits) : std::span<std::byte>());
  }
  return logits;
}

}  // namespace decodelab
