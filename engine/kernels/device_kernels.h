// The sizes of launches on a GPU, and which shapes the kernels take: host arithmetic, without CUDA or torch.
#pragma once

#include <cstdint>
#include <string>

namespace decodelab {

/// Element types of the CUDA kernels. Files that nvcc reads know the engine's own types by this name only.
enum class DeviceElement : std::uint8_t { float32, float16, bfloat16 };
constexpr std::int64_t bytes_of(DeviceElement element) { return element == DeviceElement::float32 ? 4 : 2; }

constexpr std::int64_t kWarpThreads = 32;
/// One memory transaction of a thread.
constexpr std::int64_t kVectorBytes = 16;

// --- softmax: a row of L scores
// ----------------------------------------------------------------------------------------

/// Rows up to this length stay in the registers of a warp; longer ones are read twice. 64 floats a thread leave room
/// for the rest.
constexpr std::int64_t kMostWarpKeys = 64 * kWarpThreads;

/// How rows of scores are laid over a GPU.
struct SoftmaxLaunch {
  std::int64_t blocks = 0;
  std::int64_t threads = 0;  ///< Of a block; a multiple of a warp.
  std::int64_t in_vector =
      1;  ///< Scores that a thread reads at once; 1 where rows do not start at multiples of 16 bytes.
  std::int64_t per_lane =
      0;  ///< Of a warp a row: scores that a thread keeps, a power of two; 0: the row is read twice.
};
/// A block a row. `address` is where the first row begins.
SoftmaxLaunch block_softmax_launch(std::int64_t rows, std::int64_t keys, DeviceElement element, std::uintptr_t address);
/// A warp a row, several warps a block (Megatron-LM's scaled_masked_softmax).
SoftmaxLaunch warp_softmax_launch(std::int64_t rows, std::int64_t keys);

// --- residual and layer norm: a row of d elements
// -----------------------------------------------------------------------

struct NormLaunch {
  std::int64_t blocks = 0;
  std::int64_t threads = 0;
  std::int64_t in_vector = 1;  ///< Elements that a thread reads at once.
};
/// A block a row; `addresses` is all of the tensors' addresses, or-ed.
NormLaunch norm_launch(std::int64_t rows, std::int64_t width, DeviceElement element, std::uintptr_t addresses);

// --- decode attention: B rows, G key heads, R query heads a key head, k elements a head
// ---------------------------------

/// Keys that a block has in shared memory at a time: one for each thread of a warp.
constexpr std::int64_t kTileKeys = kWarpThreads;
constexpr std::int64_t kAttentionThreads = 256;
constexpr std::int64_t kMostDeviceHeadDim = 256;
/// Query heads that one thread adds up values for.
constexpr std::int64_t kMostHeadsOfAThread = 64;
/// What a block may ask for on compute capability 8.0, with room for what the system keeps.
constexpr std::int64_t kMostSharedBytes = 160 * 1024;
/// A merge reads so many parts in a row; more would cost as much as they save.
constexpr std::int64_t kMostSplits = 128;

/// What a GPU's decode attention is cut into. Nothing of it depends on how long a row is, only on how many keys are
/// shown, so that a captured launch stays right while rows grow below that number.
struct DecodeLaunch {
  std::int64_t split_keys = 0;  ///< Keys that a block sees; a multiple of kTileKeys.
  std::int64_t splits = 0;
  std::int64_t columns = 0;          ///< k rounded up to a power of two: threads side by side.
  std::int64_t heads_of_thread = 0;  ///< A power of two; of a thread in the product with the values.
  std::int64_t shared_bytes = 0;
};
/// For `keys` shown keys, on `processors` multiprocessors: splits as long as they may be while every processor has two
/// blocks.
DecodeLaunch decode_launch(std::int64_t batch_size, std::int64_t kv_heads, std::int64_t shared_heads,
                           std::int64_t head_dim, std::int64_t keys, std::int64_t processors);
/// Floats of the parts that one block leaves for the merge, for all blocks: the largest score, the sum of weights, k
/// weighted values.
std::int64_t device_partial_floats(std::int64_t batch_size, std::int64_t kv_heads, std::int64_t shared_heads,
                                   std::int64_t head_dim, std::int64_t splits);
/// Why the kernel cannot take heads of that shape, in one sentence without a full stop; empty: it can.
std::string decode_shape_refused(std::int64_t shared_heads, std::int64_t head_dim);

}  // namespace decodelab
