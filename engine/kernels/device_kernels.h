// The sizes of launches on a GPU, and which shapes the kernels take: host arithmetic, without CUDA or torch.
#pragma once

#include <cstdint>
#include <string>

namespace decodelab {

/// Names the element types of the CUDA kernels. Files that nvcc reads know the engine's own types by this name only.
enum class DeviceElement : std::uint8_t { float32, float16, bfloat16 };
constexpr std::int64_t bytes_of(DeviceElement element) { return element == DeviceElement::float32 ? 4 : 2; }

constexpr std::int64_t kWarpThreads = 32;
/// Bytes that a thread moves in one memory transaction.
constexpr std::int64_t kVectorBytes = 16;

// --- softmax: a row of L scores
// ----------------------------------------------------------------------------------------

/// Longest row that stays in the registers of a warp; longer rows are read twice. 64 floats per thread leave registers
/// for the rest.
constexpr std::int64_t kMostWarpKeys = 64 * kWarpThreads;

/// Describes how rows of scores are distributed over a GPU.
struct SoftmaxLaunch {
  std::int64_t blocks = 0;
  std::int64_t threads = 0;  ///< Threads per block; a multiple of a warp.
  std::int64_t in_vector =
      1;  ///< Scores that a thread reads at once; 1 where rows do not start at multiples of 16 bytes.
  std::int64_t per_lane =
      0;  ///< With one warp per row: scores that a thread keeps, a power of two; 0: the row is read twice.
};
/// Assigns one block to each row. `address` is where the first row begins.
SoftmaxLaunch block_softmax_launch(std::int64_t rows, std::int64_t keys, DeviceElement element, std::uintptr_t address);
/// Assigns one warp to each row, several warps per block (Megatron-LM's scaled_masked_softmax).
SoftmaxLaunch warp_softmax_launch(std::int64_t rows, std::int64_t keys);

// --- residual and layer norm: a row of d elements
// -----------------------------------------------------------------------

struct NormLaunch {
  std::int64_t blocks = 0;
  std::int64_t threads = 0;
  std::int64_t in_vector = 1;  ///< Elements that a thread reads at once.
};
/// Assigns one block to each row; `addresses` is the bitwise or of all tensors' addresses.
NormLaunch norm_launch(std::int64_t rows, std::int64_t width, DeviceElement element, std::uintptr_t addresses);

// --- decode attention: B rows, G key heads, R query heads a key head, k elements a head
// ---------------------------------

/// Keys that a block holds in shared memory at a time: one for each thread of a warp.
constexpr std::int64_t kTileKeys = kWarpThreads;
constexpr std::int64_t kAttentionThreads = 256;
constexpr std::int64_t kMostDeviceHeadDim = 256;
/// Maximum number of query heads for which one thread sums values.
constexpr std::int64_t kMostHeadsOfAThread = 64;
/// Shared memory that a block may request on compute capability 8.0, with a margin for what the system reserves.
constexpr std::int64_t kMostSharedBytes = 160 * 1024;
/// Maximum number of parts that a merge reads one after the other; more splits would cost as much as they save.
constexpr std::int64_t kMostSplits = 128;

/// Describes how a GPU's decode attention is cut into blocks. It depends on the number of shown keys, never on the
/// length of a row, so that a captured launch stays valid while rows grow below that number.
struct DecodeLaunch {
  std::int64_t split_keys = 0;  ///< Keys that a block sees; a multiple of kTileKeys.
  std::int64_t splits = 0;
  std::int64_t columns = 0;          ///< k rounded up to a power of two: threads side by side.
  std::int64_t heads_of_thread = 0;  ///< Heads of a thread in the product with the values; a power of two.
  std::int64_t shared_bytes = 0;
  std::int64_t queries = 1;  ///< Queries with the same keys that a block takes at once.
};
/// Returns the launch for `keys` shown keys on `processors` multiprocessors: the longest splits that still give every
/// multiprocessor two blocks.
DecodeLaunch decode_launch(std::int64_t batch_size, std::int64_t kv_heads, std::int64_t shared_heads,
                           std::int64_t head_dim, std::int64_t keys, std::int64_t processors);
/// Returns the launch of a decode step widened to `queries` of each row, as many a block as it has room for. The splits
/// stay those of the step, so that each query has the bits of its own.
DecodeLaunch verify_launch(const DecodeLaunch& step, std::int64_t shared_heads, std::int64_t head_dim,
                           std::int64_t queries);
/// Returns the floats of all blocks' parts, which the merge reads: for each query head the largest score, the sum of
/// weights, and k weighted values.
std::int64_t device_partial_floats(std::int64_t batch_size, std::int64_t kv_heads, std::int64_t shared_heads,
                                   std::int64_t head_dim, std::int64_t splits);
/// Returns why the kernel cannot take heads of that shape, in one sentence without a full stop; empty if it can.
std::string decode_shape_refused(std::int64_t shared_heads, std::int64_t head_dim);

}  // namespace decodelab
