// Regions are mapped one by one, with a gap on either side.
#include "tests/cuda_on_cpu/regions.h"

#include <bit>
#include <cstring>
#include <iterator>
#include <new>

#include <sys/mman.h>

namespace decodelab::cuda_on_cpu {
namespace {

constexpr int kPoison = 0xff;
constexpr std::size_t kMostSkew = 256;

std::size_t mapped_bytes(std::size_t bytes) { return bytes + kMostSkew + 2 * Regions::kGap; }

}  // namespace

Regions::~Regions() {
  for (const auto& [begin, region] : regions_) {
    if (region.mapping != nullptr) {
      munmap(region.mapping, mapped_bytes(region.bytes));
    }
  }
}

Region& Regions::allocate(const std::string& name, std::size_t bytes, std::size_t element, bool shared,
                          std::size_t skew) {
  void* const mapped =
      mmap(nullptr, mapped_bytes(bytes), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) {
    throw std::bad_alloc();
  }
  auto* const mapping = static_cast<char*>(mapped);
  char* const begin = mapping + kGap + skew % kMostSkew;
  std::memset(begin, kPoison, bytes);
  const int shift = std::has_single_bit(element) ? std::countr_zero(element) : 0;
  return regions_[begin] = {.name = name,
                            .begin = begin,
                            .bytes = bytes,
                            .element_shift = shift,
                            .shared = shared,
                            .mapping = mapping,
                            .cells = std::vector<Cell>(bytes >> shift)};
}

Region& Regions::adopt_shared(const std::string& name, char* begin, std::size_t bytes) {
  return regions_[begin] = {
             .name = name, .begin = begin, .bytes = bytes, .shared = true, .cells = std::vector<Cell>(bytes)};
}

void Regions::release(char* begin) {
  const auto found = regions_.find(begin);
  if (found == regions_.end()) {
    return;
  }
  if (found->second.mapping != nullptr) {
    munmap(found->second.mapping, mapped_bytes(found->second.bytes));
  }
  regions_.erase(found);
  remembered_ = {};
}

Region* Regions::near(const void* address) {
  const auto* at = static_cast<const char*>(address);
  Region*& remembered = remembered_[reinterpret_cast<std::uintptr_t>(at) / kGap % kRemembered];
  if (remembered != nullptr && remembered->holds(at, 1)) {
    return remembered;
  }
  const auto after = regions_.upper_bound(at);
  if (after != regions_.begin()) {
    Region& before = std::prev(after)->second;
    if (at < before.begin + before.bytes + kGap) {
      remembered = &before;
      return &before;
    }
  }
  return after != regions_.end() && at + kGap > after->second.begin ? &after->second : nullptr;
}

}  // namespace decodelab::cuda_on_cpu
