// Flash-decoding for heads that share keys (Dao et al. 2023, https://pytorch.org/blog/flash-decoding/): each key and
// value is read once.
#include "engine/kernels/attention/decode_attention.cuh"
#include "engine/kernels/device_float.cuh"
#include "engine/kernels/launch.cuh"

namespace decodelab {
namespace {

using namespace device;

constexpr int kTile = static_cast<int>(kTileKeys);
constexpr int kThreads = static_cast<int>(kAttentionThreads);
constexpr int kWarps = kThreads / static_cast<int>(kWarpThreads);
constexpr int kMergeThreads = 128;

/// Returns k rounded up to a multiple of 4. In shared memory a token takes that many floats, zeros past its k elements,
/// and 4 more, so that the threads of a warp, one key each, use different banks.
__device__ __host__ inline int filled(std::int64_t head_dim) { return static_cast<int>((head_dim + 3) / 4 * 4); }

/// Returns the parts of one query of a block: for each of R heads the largest score and the sum of weights, then [R, k]
/// weighted values.
__device__ inline float* parts_of(const DeviceDecodeAttention& a, std::int64_t query, std::int64_t kv_head,
                                  std::int64_t split) {
  return a.partials + ((query * a.kv_heads + kv_head) * a.launch.splits + split) * a.shared_heads * (2 + a.head_dim);
}

/// Returns the number of keys up to the last one that a query sees.
__device__ inline std::int64_t visible_to(const DeviceDecodeAttention& a, std::int64_t query) {
  return a.held[query * a.held_stride] + 1;
}

/// Returns the first key that a query sees, of those up to its last one.
__device__ inline std::int64_t first_key(const DeviceDecodeAttention& a, std::int64_t visible) {
  return a.window > 0 && a.window < visible ? visible - a.window : 0;
}

/// Loads `count` tokens of k elements into shared memory as fp32; missing rows of a short tile and the padding of each
/// row become zero.
template <typename Element>
__device__ void load_tile(const Element* from, std::int64_t stride, int count, int head_dim, float* tile) {
  const int width = filled(head_dim);
  for (int at = threadIdx.x; at < kTile * width; at += kThreads) {
    const int token = at / width;
    const int column = at % width;
    tile[token * (width + 4) + column] =
        token < count && column < head_dim ? to_float(from[token * stride + column]) : 0.0f;
  }
}

/// Does the same, sixteen bytes of a token at a time.
template <typename Element>
__device__ void load_tile_in_vectors(const Element* from, std::int64_t stride, int count, int head_dim, float* tile) {
  constexpr int kVector = kVectorBytes / sizeof(Element);
  const int width = filled(head_dim);
  const int pieces = head_dim / kVector;
  for (int at = threadIdx.x; at < kTile * pieces; at += kThreads) {
    const int token = at / pieces;
    const int column = at % pieces * kVector;
    Elements<Element, kVector> read{};
    if (token < count) {
      read = load<kVector>(from + token * stride + column);
    }
#pragma unroll
    for (int index = 0; index < kVector; ++index) {
      tile[token * (width + 4) + column + index] = token < count ? to_float(read.of[index]) : 0.0f;
    }
  }
}

template <typename Element, int kHeads>
__global__ void __launch_bounds__(kThreads) attend_splits(DeviceDecodeAttention a, bool in_vectors) {
  const int k = static_cast<int>(a.head_dim);
  const int R = static_cast<int>(a.shared_heads);
  const int width = filled(k);
  // The block takes some of the queries that have one row of keys; its heads are those of all of them.
  const int blocks = static_cast<int>((a.queries_of_keys + a.launch.queries - 1) / a.launch.queries);
  const std::int64_t row = blockIdx.z / blocks;
  const std::int64_t before_first = blockIdx.z % blocks * a.launch.queries;
  const std::int64_t first_query = row * a.queries_of_keys + before_first;
  const std::int64_t end_query = first_query + min(a.launch.queries, a.queries_of_keys - before_first);
  const int heads = static_cast<int>(end_query - first_query) * R;
  const int room = static_cast<int>(a.launch.queries) * R;  // For the heads of any block.
  // In the order of shared_floats() in device_kernels.cpp.
  SharedRanges ranges;
  float* queries = ranges.take<float>("queries", room * width);   // [room, width]
  float* tile = ranges.take<float>("tile", kTile * (width + 4));  // [kTile, width + 4]
  float* weights = ranges.take<float>("weights", room * kTile);   // [room, kTile]
  float* most = ranges.take<float>("most", room);                 // [room]
  float* total = ranges.take<float>("total", room);               // [room]
  float* rescale = ranges.take<float>("rescale", room);           // [room]

  const std::int64_t split = blockIdx.x;
  const std::int64_t kv_head = blockIdx.y;
  std::int64_t visible = 0;
  for (std::int64_t query = first_query; query < end_query; ++query) {
    visible = max(visible, visible_to(a, query));
  }
  const std::int64_t first = first_key(a, visible) + split * a.launch.split_keys;
  if (first >= visible) {
    return;  // The merge does not read splits without keys of its query.
  }
  const std::int64_t end = min(first + a.launch.split_keys, visible);
  const int warp = threadIdx.x / kWarpThreads;
  const int lane = threadIdx.x % kWarpThreads;

  const Element* query = static_cast<const Element*>(a.query) + first_query * a.query_stride + kv_head * R * k;
  for (int at = threadIdx.x; at < heads * width; at += kThreads) {
    const int head = at / width;
    const int column = at % width;
    queries[at] = column < k ? to_float(query[head / R * a.query_stride + head % R * k + column]) * a.scale : 0.0f;
  }
  for (int head = threadIdx.x; head < heads; head += kThreads) {
    most[head] = kLowest;
    total[head] = 0.0f;
  }
  // In the product with the values, a thread computes one column of every groups-th head.
  const int columns = static_cast<int>(a.launch.columns);
  const int groups = kThreads / columns;
  const int column = threadIdx.x % columns;
  const int group = threadIdx.x / columns;
  float sums[kHeads];
#pragma unroll
  for (int index = 0; index < kHeads; ++index) {
    sums[index] = 0.0f;
  }

  const Element* keys = static_cast<const Element*>(a.keys) + row * a.row_stride + kv_head * k;
  const Element* values = static_cast<const Element*>(a.values) + row * a.row_stride + kv_head * k;
  for (std::int64_t begin = first; begin < end; begin += kTile) {
    const int count = static_cast<int>(min(static_cast<std::int64_t>(kTile), end - begin));
    __syncthreads();  // The last tile's values have been read.
    in_vectors ? load_tile_in_vectors(keys + begin * a.token_stride, a.token_stride, count, k, tile)
               : load_tile(keys + begin * a.token_stride, a.token_stride, count, k, tile);
    __syncthreads();
    // A warp handles whole heads, a thread one key.
    for (int head = warp; head < heads; head += kWarps) {
      const bool seen = lane < count && begin + lane < visible_to(a, first_query + head / R);
      const float* q = queries + head * width;
      const float* key = tile + lane * (width + 4);
      float score = 0.0f;
      for (int at = 0; at < width; at += 4) {
        const float4 x = *reinterpret_cast<const float4*>(q + at);
        const float4 y = *reinterpret_cast<const float4*>(key + at);
        score += x.x * y.x + x.y * y.y + x.z * y.z + x.w * y.w;
      }
      const float before = most[head];
      const float largest = fmaxf(before, warp_max(seen ? score : kLowest));
      const float weight = seen ? __expf(score - largest) : 0.0f;
      weights[head * kTile + lane] = weight;
      const float added = warp_sum(weight);
      __syncwarp();  // Every thread has read `before`.
      if (lane == 0) {
        const float shrink = __expf(before - largest);
        rescale[head] = shrink;
        total[head] = total[head] * shrink + added;
        most[head] = largest;
      }
    }
    __syncthreads();  // The keys have been read and the weights written.
    in_vectors ? load_tile_in_vectors(values + begin * a.token_stride, a.token_stride, count, k, tile)
               : load_tile(values + begin * a.token_stride, a.token_stride, count, k, tile);
    __syncthreads();
    if (column < k) {
#pragma unroll
      for (int index = 0; index < kHeads; ++index) {
        const int head = group + index * groups;
        sums[index] *= head < heads ? rescale[head] : 0.0f;
      }
      for (int at = 0; at < kTile; at += 4) {
        const float v0 = tile[at * (width + 4) + column];
        const float v1 = tile[(at + 1) * (width + 4) + column];
        const float v2 = tile[(at + 2) * (width + 4) + column];
        const float v3 = tile[(at + 3) * (width + 4) + column];
#pragma unroll
        for (int index = 0; index < kHeads; ++index) {
          const int head = group + index * groups;
          if (head < heads) {
            const float4 w = *reinterpret_cast<const float4*>(weights + head * kTile + at);
            sums[index] += w.x * v0 + w.y * v1 + w.z * v2 + w.w * v3;
          }
        }
      }
    }
  }

  __syncthreads();
  for (int head = threadIdx.x; head < heads; head += kThreads) {
    float* parts = parts_of(a, first_query + head / R, kv_head, split);
    parts[head % R] = most[head];
    parts[R + head % R] = total[head];
  }
  if (column < k) {
#pragma unroll
    for (int index = 0; index < kHeads; ++index) {
      const int head = group + index * groups;
      if (head < heads) {
        parts_of(a, first_query + head / R, kv_head, split)[2 * R + head % R * k + column] = sums[index];
      }
    }
  }
}

/// Combines the parts of one query and head, one block for each, and rounds once. Reads only splits that the query sees
/// keys of.
template <typename Element>
__global__ void merge_splits(DeviceDecodeAttention a) {
  const int R = static_cast<int>(a.shared_heads);
  const int k = static_cast<int>(a.head_dim);
  const int head = blockIdx.x % R;
  const std::int64_t kv_head = blockIdx.x / R;
  const std::int64_t row = blockIdx.y;
  const std::int64_t visible = visible_to(a, row);
  std::int64_t splits = (visible - first_key(a, visible) + a.launch.split_keys - 1) / a.launch.split_keys;
  splits = splits < a.launch.splits ? splits : a.launch.splits;
  float most = kLowest;
  for (std::int64_t split = 0; split < splits; ++split) {
    most = fmaxf(most, parts_of(a, row, kv_head, split)[head]);
  }
  float total = 0.0f;
  for (std::int64_t split = 0; split < splits; ++split) {
    const float* parts = parts_of(a, row, kv_head, split);
    total += parts[R + head] * __expf(parts[head] - most);
  }
  Element* out = static_cast<Element*>(a.out) + ((row * a.kv_heads + kv_head) * R + head) * k;
  for (int column = threadIdx.x; column < k; column += kMergeThreads) {
    float sum = 0.0f;
    for (std::int64_t split = 0; split < splits; ++split) {
      const float* parts = parts_of(a, row, kv_head, split);
      sum += parts[2 * R + head * k + column] * __expf(parts[head] - most);
    }
    out[column] = from_float<Element>(sum / total);
  }
}

/// Shared memory that a kernel gets by default; more must be requested, once per kernel.
constexpr std::int64_t kSharedBytesUnasked = 48 * 1024;

template <typename Element, int kHeads>
void run_heads(const DeviceDecodeAttention& a, bool in_vectors, CUstream_st* stream) {
  if (a.launch.shared_bytes > kSharedBytesUnasked) {
    cudaFuncSetAttribute(reinterpret_cast<const void*>(attend_splits<Element, kHeads>),
                         cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(a.launch.shared_bytes));
  }
  const std::int64_t rows = a.batch_size / a.queries_of_keys;
  const std::int64_t blocks_of_a_row = (a.queries_of_keys + a.launch.queries - 1) / a.launch.queries;
  const dim3 grid(static_cast<unsigned>(a.launch.splits), static_cast<unsigned>(a.kv_heads),
                  static_cast<unsigned>(rows * blocks_of_a_row));
  launch_kernel(attend_splits<Element, kHeads>, grid, kThreads, static_cast<std::size_t>(a.launch.shared_bytes), stream,
                a, in_vectors);
}

template <typename Element>
void run(const DeviceDecodeAttention& a, CUstream_st* stream) {
  constexpr std::int64_t kVector = kVectorBytes / sizeof(Element);
  const auto addresses = reinterpret_cast<std::uintptr_t>(a.keys) | reinterpret_cast<std::uintptr_t>(a.values);
  const bool in_vectors = addresses % kVectorBytes == 0 && a.head_dim % kVector == 0 && a.row_stride % kVector == 0 &&
                          a.token_stride % kVector == 0;
  switch (a.launch.heads_of_thread) {
    case 1: run_heads<Element, 1>(a, in_vectors, stream); break;
    case 2: run_heads<Element, 2>(a, in_vectors, stream); break;
    case 4: run_heads<Element, 4>(a, in_vectors, stream); break;
    case 8: run_heads<Element, 8>(a, in_vectors, stream); break;
    case 16: run_heads<Element, 16>(a, in_vectors, stream); break;
    case 32: run_heads<Element, 32>(a, in_vectors, stream); break;
    default: run_heads<Element, 64>(a, in_vectors, stream); break;
  }
  const dim3 merges(static_cast<unsigned>(a.kv_heads * a.shared_heads), static_cast<unsigned>(a.batch_size));
  launch_kernel(merge_splits<Element>, merges, kMergeThreads, 0, stream, a);
}

}  // namespace

void launch_decode_attention(const DeviceDecodeAttention& a, CUstream_st* cuda_stream) {
  if (a.batch_size == 0) {
    return;
  }
  switch (a.element) {
    case DeviceElement::float32: run<float>(a, cuda_stream); break;
    case DeviceElement::float16: run<__half>(a, cuda_stream); break;
    case DeviceElement::bfloat16: run<__nv_bfloat16>(a, cuda_stream); break;
  }
}

}  // namespace decodelab
