// Norms of heads and rotary positions on the device: a warp for each head of a token.
#include "engine/kernels/device_float.cuh"
#include "engine/kernels/elementwise/rotary_rows.cuh"
#include "engine/kernels/launch.cuh"

namespace decodelab {
namespace {

using namespace device;

constexpr int kRotaryThreads = 128;
constexpr int kHeadsOfABlock = kRotaryThreads / static_cast<int>(kWarpThreads);

template <typename Element>
__global__ void turn_heads(DeviceRotary r) {
  const int warp = static_cast<int>(kWarpThreads);
  const int lane = static_cast<int>(threadIdx.x) % warp;
  const std::int64_t item = static_cast<std::int64_t>(blockIdx.x) * kHeadsOfABlock + threadIdx.x / warp;
  const bool caches = r.cache.keys != nullptr;
  const std::int64_t heads = caches ? 2 * r.heads : r.heads;  // With the heads of values, which are copied.
  if (item >= r.tokens * heads) {
    return;  // The whole warp: no other one waits for it.
  }
  const std::int64_t token = item / heads;
  const std::int64_t index = item % heads;
  const int k = static_cast<int>(r.head_dim);
  const int dims = static_cast<int>(r.dims);
  const int half = dims / 2;
  const std::int64_t position = dims > 0 || caches ? r.positions[token % r.position_count] : 0;
  Element* head = static_cast<Element*>(r.rows) + token * r.stride + index * k;
  Element* stored = head;
  if (caches) {
    const std::int64_t slot = token / r.cache.tokens * r.cache.row_stride + position * r.cache.slot_stride;
    if (index >= r.heads) {
      Element* values = static_cast<Element*>(r.cache.values) + slot + (index - r.heads) * k;
      for (int at = lane; at < k; at += warp) {
        values[at] = head[at];
      }
      return;
    }
    stored = static_cast<Element*>(r.cache.keys) + slot + index * k;
  }
  const Element* norm = static_cast<const Element*>(r.norm);
  float scale = 1.0f;
  if (norm != nullptr) {
    float squares = 0.0f;
    for (int at = lane; at < k; at += warp) {
      const float value = to_float(head[at]);
      squares += value * value;
    }
    scale = 1.0f / sqrtf(warp_sum(squares) / static_cast<float>(k) + r.epsilon);
    __syncwarp();  // Every lane has read what another one overwrites.
  }
  const auto normed = [&](int at) {
    const float value = to_float(head[at]);
    return norm == nullptr ? value : value * scale * (to_float(norm[at]) + r.weight_offset);
  };
  for (int at = lane; at < half; at += warp) {
    const float first = normed(at);
    const float second = normed(at + half);
    const float cosine = to_float(static_cast<const Element*>(r.cosine)[position * half + at]);
    const float sine = to_float(static_cast<const Element*>(r.sine)[position * half + at]);
    stored[at] = from_float<Element>(first * cosine - second * sine);
    stored[at + half] = from_float<Element>(second * cosine + first * sine);
  }
  if (caches || norm != nullptr) {
    for (int at = dims + lane; at < k; at += warp) {
      stored[at] = from_float<Element>(normed(at));
    }
  }
}

template <typename Element>
void run(const DeviceRotary& r, CUstream_st* stream) {
  const std::int64_t heads = r.tokens * (r.cache.keys != nullptr ? 2 * r.heads : r.heads);
  const auto blocks = static_cast<unsigned>((heads + kHeadsOfABlock - 1) / kHeadsOfABlock);
  launch_kernel(turn_heads<Element>, blocks, kRotaryThreads, 0, stream, r);
}

}  // namespace

void launch_rotary_rows(const DeviceRotary& r, CUstream_st* cuda_stream) {
  if (r.tokens == 0) {
    return;
  }
  switch (r.element) {
    case DeviceElement::float32: run<float>(r, cuda_stream); break;
    case DeviceElement::float16: run<__half>(r, cuda_stream); break;
    case DeviceElement::bfloat16: run<__nv_bfloat16>(r, cuda_stream); break;
  }
}

}  // namespace decodelab
