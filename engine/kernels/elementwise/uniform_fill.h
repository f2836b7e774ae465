// Uniform random numbers by their index: the same bits on every processor, in every order, and on a GPU.
#pragma once

#include <cstdint>
#include <span>

namespace decodelab {

/// Writes elements [first_index, first_index + out.size()) of the stream `stream_number` to `out`.
///
/// Element i is uniform_float() of word i % 4 of Philox4x32-10 (engine/kernels/philox.h) with the key `seed` and the
/// counter (i / 4, stream_number). It depends on nothing else, so that chunks, threads and a GPU all give the same
/// bits. Throws std::invalid_argument for a negative first_index.
void fill_uniform(std::span<float> out, std::uint64_t seed, std::uint64_t stream_number, std::int64_t first_index,
                  float mean, float half_width);

}  // namespace decodelab
