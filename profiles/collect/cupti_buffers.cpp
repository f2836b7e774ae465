// Hands buffers out and takes them back.
#include "profiles/collect/cupti_buffers.h"

#include <algorithm>
#include <cstdlib>
#include <new>
#include <utility>

namespace decodelab {
namespace {

constexpr std::size_t kAlignment = 8;

}  // namespace

void CuptiBuffers::Free::operator()(std::uint8_t* memory) const { std::free(memory); }

CuptiBuffers::Memory CuptiBuffers::allocate(std::size_t bytes) {
  auto* const memory = static_cast<std::uint8_t*>(std::aligned_alloc(kAlignment, bytes));
  if (memory == nullptr) {
    throw std::bad_alloc();
  }
  return Memory(memory);
}

CuptiBuffers::CuptiBuffers(std::size_t count, std::size_t bytes) : bytes_(bytes) {
  for (std::size_t index = 0; index < count; ++index) {
    free_.push_back(memory_.emplace_back(allocate(bytes)).get());
  }
  filled_.reserve(count);
}

std::uint8_t* CuptiBuffers::take() {
  const std::scoped_lock lock(mutex_);
  if (!free_.empty()) {
    std::uint8_t* const buffer = free_.back();
    free_.pop_back();
    return buffer;
  }
  ++refused_;
  if (free_lost_.empty()) {
    // This is the only allocation while steps run: without a buffer CUPTI before 12.9 would write to null. The trace is
    // broken by then.
    free_lost_.push_back(lost_.emplace_back(allocate(bytes_)).get());
  }
  std::uint8_t* const buffer = free_lost_.back();
  free_lost_.pop_back();
  return buffer;
}

bool CuptiBuffers::loses(const std::uint8_t* buffer) const {
  const std::scoped_lock lock(mutex_);
  return std::ranges::any_of(lost_, [&](const Memory& memory) { return memory.get() == buffer; });
}

void CuptiBuffers::give(std::uint8_t* buffer, std::size_t valid_bytes) {
  const bool lost = loses(buffer);
  const std::scoped_lock lock(mutex_);
  if (lost) {
    free_lost_.push_back(buffer);
  } else if (valid_bytes == 0) {
    free_.push_back(buffer);
  } else {
    filled_.push_back({.buffer = buffer, .valid_bytes = valid_bytes});
  }
}

std::vector<CuptiBuffers::Filled> CuptiBuffers::filled() const {
  const std::scoped_lock lock(mutex_);
  return filled_;
}

void CuptiBuffers::reuse() {
  const std::scoped_lock lock(mutex_);
  for (const Filled& filled : std::exchange(filled_, {})) {
    free_.push_back(filled.buffer);
  }
  filled_.reserve(memory_.size());
  refused_ = 0;
}

std::int64_t CuptiBuffers::refused() const {
  const std::scoped_lock lock(mutex_);
  return refused_;
}

}  // namespace decodelab
