// Computes the sizes of launches.
#include "engine/kernels/device_kernels.h"

#include <algorithm>
#include <bit>

#include <fmt/format.h>

#include "base/round_up.h"

namespace decodelab {
namespace {

constexpr std::int64_t kMostThreads = 1024;
/// Warps per block where warps share nothing: enough to fill a multiprocessor with few blocks.
constexpr std::int64_t kWarpsOfABlock = 4;
/// Blocks that keep a multiprocessor busy while one of them waits for memory.
constexpr std::int64_t kBlocksOfAProcessor = 2;

std::int64_t power_of_two(std::int64_t value) {
  return static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(value)));
}

/// Returns how many elements a thread may read at once: 16 bytes of them if a row of `count` and `addresses` are
/// multiples of 16 bytes, else 1.
std::int64_t vector_of(std::int64_t count, DeviceElement element, std::uintptr_t addresses) {
  const std::int64_t elements = kVectorBytes / bytes_of(element);
  return count % elements == 0 && addresses % kVectorBytes == 0 ? elements : 1;
}

std::int64_t threads_for(std::int64_t items) { return std::clamp(power_of_two(items), kWarpThreads, kMostThreads); }

/// Returns the floats of shared memory that attend_splits() in decode_attention.cu lays out, in its order.
std::int64_t shared_floats(std::int64_t shared_heads, std::int64_t head_dim) {
  const std::int64_t queries = shared_heads * rounded_up(head_dim, 4);
  const std::int64_t tile = kTileKeys * (rounded_up(head_dim, 4) + 4);
  const std::int64_t weights = shared_heads * kTileKeys;
  return queries + tile + weights + 3 * shared_heads;
}

std::int64_t heads_of_thread(std::int64_t shared_heads, std::int64_t columns) {
  return power_of_two(divided_up(shared_heads, std::max<std::int64_t>(kAttentionThreads / columns, 1)));
}

}  // namespace

SoftmaxLaunch block_softmax_launch(std::int64_t rows, std::int64_t keys, DeviceElement element,
                                   std::uintptr_t address) {
  const std::int64_t in_vector = vector_of(keys, element, address);
  return {.blocks = rows, .threads = threads_for(divided_up(keys, in_vector)), .in_vector = in_vector, .per_lane = 0};
}

SoftmaxLaunch warp_softmax_launch(std::int64_t rows, std::int64_t keys) {
  return {.blocks = divided_up(rows, kWarpsOfABlock),
          .threads = kWarpsOfABlock * kWarpThreads,
          .in_vector = 1,
          .per_lane = keys > kMostWarpKeys ? 0 : power_of_two(divided_up(keys, kWarpThreads))};
}

NormLaunch norm_launch(std::int64_t rows, std::int64_t width, DeviceElement element, std::uintptr_t addresses) {
  const std::int64_t in_vector = vector_of(width, element, addresses);
  return {.blocks = rows, .threads = threads_for(divided_up(width, in_vector)), .in_vector = in_vector};
}

DecodeLaunch decode_launch(std::int64_t batch_size, std::int64_t kv_heads, std::int64_t shared_heads,
                           std::int64_t head_dim, std::int64_t keys, std::int64_t processors) {
  const std::int64_t columns = power_of_two(head_dim);
  const std::int64_t wanted_blocks = kBlocksOfAProcessor * std::max<std::int64_t>(processors, 1);
  const std::int64_t wanted_splits =
      std::clamp<std::int64_t>(divided_up(wanted_blocks, batch_size * kv_heads), 1, kMostSplits);
  const std::int64_t split_keys = rounded_up(divided_up(std::max<std::int64_t>(keys, 1), wanted_splits), kTileKeys);
  return {.split_keys = split_keys,
          .splits = divided_up(std::max<std::int64_t>(keys, 1), split_keys),
          .columns = columns,
          .heads_of_thread = heads_of_thread(shared_heads, columns),
          .shared_bytes = shared_floats(shared_heads, head_dim) * static_cast<std::int64_t>(sizeof(float))};
}

DecodeLaunch verify_launch(const DecodeLaunch& step, std::int64_t shared_heads, std::int64_t head_dim,
                           std::int64_t queries) {
  std::int64_t most = 1;
  while (most < queries && decode_shape_refused((most + 1) * shared_heads, head_dim).empty()) {
    ++most;
  }
  DecodeLaunch launch = step;
  launch.queries = divided_up(queries, divided_up(queries, most));  // Blocks take about as many each.
  const std::int64_t heads = launch.queries * shared_heads;
  launch.heads_of_thread = heads_of_thread(heads, launch.columns);
  launch.shared_bytes = shared_floats(heads, head_dim) * static_cast<std::int64_t>(sizeof(float));
  return launch;
}

std::int64_t device_partial_floats(std::int64_t batch_size, std::int64_t kv_heads, std::int64_t shared_heads,
                                   std::int64_t head_dim, std::int64_t splits) {
  return batch_size * kv_heads * splits * shared_heads * (2 + head_dim);
}

std::string decode_shape_refused(std::int64_t shared_heads, std::int64_t head_dim) {
  if (head_dim > kMostDeviceHeadDim) {
    return fmt::format("its kernel takes heads of at most {} elements, and these have {}", kMostDeviceHeadDim,
                       head_dim);
  }
  const std::int64_t most = kMostHeadsOfAThread * kAttentionThreads / power_of_two(head_dim);
  if (shared_heads > most) {
    return fmt::format("its kernel takes at most {} query heads of {} elements for a key head, and there are {}", most,
                       head_dim, shared_heads);
  }
  const std::int64_t bytes = shared_floats(shared_heads, head_dim) * static_cast<std::int64_t>(sizeof(float));
  if (bytes > kMostSharedBytes) {
    return fmt::format("its kernel would need {} bytes of shared memory for {} query heads of {} elements, and has {}",
                       bytes, shared_heads, head_dim, kMostSharedBytes);
  }
  return "";
}

}  // namespace decodelab
