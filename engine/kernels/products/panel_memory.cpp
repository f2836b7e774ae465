// Maps anonymous pages, and shares huge ones among matrices.
#include "engine/kernels/products/panel_memory.h"

#include <algorithm>
#include <cstdint>
#include <mutex>
#include <new>
#include <utility>

#include <sys/mman.h>

#include "base/round_up.h"

namespace decodelab {
namespace {

constexpr std::int64_t kPage = 4096;
constexpr std::int64_t kHugePage = std::int64_t{2} << 20;
constexpr std::int64_t kLeast = 8 * kHugePage;

/// Pages that begin where a huge page may.
class Pages {
 public:
  explicit Pages(std::int64_t bytes) : bytes_(bytes) {
    const std::int64_t mapped_bytes = bytes + kHugePage;
    void* const mapped = mmap(nullptr, static_cast<std::size_t>(mapped_bytes), PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED) {
      throw std::bad_alloc();
    }
    auto* const begin = static_cast<std::byte*>(mapped);
    const auto address = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(mapped));
    const std::int64_t before = rounded_up(address, kHugePage) - address;
    data_ = begin + before;
    unmap(begin, before);
    unmap(data_ + bytes, kHugePage - before);
    madvise(data_, static_cast<std::size_t>(bytes), MADV_HUGEPAGE);  // without huge pages, small pages work too
  }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  ~Pages() { unmap(data_, bytes_); }

  std::byte* data() const { return data_; }
  std::byte* end() const { return data_ + bytes_; }

 private:
  static void unmap(std::byte* begin, std::int64_t bytes) {
    if (bytes > 0) {
      munmap(begin, static_cast<std::size_t>(bytes));
    }
  }

  std::byte* data_ = nullptr;
  std::int64_t bytes_;
};

/// Pages of which matrices take one part after the other. Whoever took some keeps them all.
struct Shared {
  std::mutex mutex;
  std::weak_ptr<Pages> pages;
  std::int64_t left = 0;
};

std::shared_ptr<std::byte> take(std::int64_t bytes) {
  static Shared shared;
  const std::scoped_lock lock(shared.mutex);
  std::shared_ptr<Pages> pages = shared.pages.lock();
  if (pages && bytes <= shared.left) {
    std::byte* const data = pages->end() - shared.left;
    shared.left -= bytes;
    return {std::move(pages), data};
  }
  // Whole huge pages: 3 % of a step of 27 ms were lost where the last 2 MiB of each matrix lay on small ones.
  const std::int64_t size = rounded_up(std::max(bytes, kLeast), kHugePage);
  const auto fresh = std::make_shared<Pages>(size);
  if (!pages || size - bytes > shared.left) {
    shared.pages = fresh;
    shared.left = size - bytes;
  }
  return {fresh, fresh->data()};
}

}  // namespace

PanelMemory::PanelMemory(std::size_t bytes) : data_(take(rounded_up(static_cast<std::int64_t>(bytes), kPage))) {}

}  // namespace decodelab
