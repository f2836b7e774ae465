// Small kernels without faults that use each word of CUDA, for words_test.cpp.
#pragma once

namespace decodelab::cuda_on_cpu {

constexpr int kLanes = 32;
constexpr int kBins = 5;

/// What each lane of one warp has from the others; [lane].
struct WarpValues {
  int* from_lane_5;
  double* one_up;
  unsigned long long* three_down_of_8;
  float* swapped_of_16;
  unsigned* odd_lanes;
  int* any_and_all;  ///< Bit 0: any lane is above 30; bit 1: all are; bit 2: all are below 32.
};
void launch_warp_words(const WarpValues& values);

/// Writes to each element how its thread is numbered, over 2 x 3 x 2 blocks of 4 x 2 x 3 threads.
void launch_indices(int* out);

/// Counts `bins` numbers by atomics, with their largest and least; each of `tickets` is taken once.
void launch_atomics(const int* numbers, int count, int* counts, int* largest, int* least, int* tickets);

/// Numbers the threads of one block in the order in which they run.
void launch_ticket_order(int* next, int* tickets, int threads);

/// Turns 64 numbers around through shared memory: static and in a device function, in ranges, and whole; a half of a
/// warp for itself.
void launch_shared_words(const float* from, float* to);

}  // namespace decodelab::cuda_on_cpu
