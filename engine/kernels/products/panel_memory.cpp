// Maps anonymous pages.
#include "engine/kernels/products/panel_memory.h"

#include <new>

#include <sys/mman.h>

namespace decodelab {
namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20;

std::byte* map_pages(std::size_t bytes) {
  void* data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) {
    throw std::bad_alloc();
  }
  madvise(data, bytes, MADV_HUGEPAGE);  // without huge pages, small pages work too
  return static_cast<std::byte*>(data);
}

}  // namespace

void PanelMemory::Unmap::operator()(std::byte* data) const { munmap(data, bytes); }

PanelMemory::PanelMemory(std::size_t bytes) {
  const std::size_t size = (bytes + kHugePage - 1) / kHugePage * kHugePage;
  data_ = {map_pages(size), Unmap{size}};
}

}  // namespace decodelab
