// The memory that kernels may touch, region by region, with the history of each element.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tests/cuda_on_cpu/happens_before.h"

namespace decodelab::cuda_on_cpu {

struct Region {
  std::string name;
  char* begin = nullptr;
  std::size_t bytes = 0;
  int element_shift = 0;    ///< Elements, which are read and written as one, are of 2^element_shift bytes.
  bool shared = false;      ///< Belongs to one block at a time.
  std::uint32_t block = 0;  ///< Of shared memory: the block that it was last poisoned for.
  char* mapping = nullptr;  ///< What release() gives back; null: not ours.
  std::vector<Cell> cells{};

  bool holds(const void* address, std::size_t size) const {
    const auto* at = static_cast<const char*>(address);
    return at >= begin && at + size <= begin + bytes;
  }
};

class Regions final {
 public:
  /// Regions lie at least so many bytes apart, so that an index that leaves one does not come to another.
  static constexpr std::size_t kGap = 64 * 1024;

  Regions() = default;
  ~Regions();
  Regions(const Regions&) = delete;
  Regions& operator=(const Regions&) = delete;

  /// Makes a region of bytes 0xff, which are NaN in every type. It begins at a multiple of 256 bytes plus `skew`.
  /// Elements whose size is no power of two are followed byte by byte.
  Region& allocate(const std::string& name, std::size_t bytes, std::size_t element, bool shared, std::size_t skew);
  /// Takes in memory that the program has anyway; elements are single bytes.
  Region& adopt_shared(const std::string& name, char* begin, std::size_t bytes);
  void release(char* begin);

  /// The region that holds an address, or the nearest one within the gap; null: none.
  Region* near(const void* address);

 private:
  /// The latest region of each stretch of kGap bytes.
  static constexpr std::size_t kRemembered = 256;
  std::map<const char*, Region> regions_;
  std::array<Region*, kRemembered> remembered_{};
};

}  // namespace decodelab::cuda_on_cpu
