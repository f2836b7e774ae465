// Fibers start by makecontext() and switch by longjmp(), which makes no system call.
#undef _FORTIFY_SOURCE  // Its longjmp() refuses to go to another stack.
#include "tests/cuda_on_cpu/fibers.h"

#include <csetjmp>
#include <cstddef>
#include <cstdint>
#include <new>

#include <sys/mman.h>
#include <ucontext.h>

namespace decodelab::cuda_on_cpu {
namespace {

/// A kernel needs little; the report of a fault is written on the same stack.
constexpr std::size_t kStackBytes = 128 * 1024;
/// An overflow meets a page that cannot be touched.
constexpr std::size_t kGuardBytes = 4096;

}  // namespace

struct Fibers::Scheduler {
  jmp_buf context;
};

struct Fibers::Fiber {
  Fiber() {
    void* const mapped = mmap(nullptr, kGuardBytes + kStackBytes, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapped == MAP_FAILED || mprotect(mapped, kGuardBytes, PROT_NONE) != 0) {
      throw std::bad_alloc();
    }
    stack = static_cast<char*>(mapped);
  }
  ~Fiber() { munmap(stack, kGuardBytes + kStackBytes); }
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  char* stack = nullptr;
  ucontext_t entry{};
  jmp_buf context;
  bool entered = false;  ///< Whether `context` is the one to go on from.
  bool ended = true;
};

Fibers::Fibers() : scheduler_(std::make_unique<Scheduler>()) {}
Fibers::~Fibers() = default;

void Fibers::start(unsigned count, void (*body)(void*), void* context) {
  while (fibers_.size() < count) {
    fibers_.push_back(std::make_unique<Fiber>());
  }
  body_ = body;
  context_ = context;
  for (unsigned index = 0; index < count; ++index) {
    Fiber& fiber = *fibers_[index];
    // A fiber that has ended waits in enter() for its next body.
    fiber.entered = fiber.entered && fiber.ended;
    fiber.ended = false;
  }
}

void Fibers::enter(unsigned high, unsigned low) {
  // NOLINTNEXTLINE(performance-no-int-to-ptr): resume() took the pointer apart.
  auto* const fibers = reinterpret_cast<Fibers*>(static_cast<std::uintptr_t>(high) << 32 | low);
  for (;;) {
    fibers->body_(fibers->context_);
    fibers->fibers_[fibers->current_]->ended = true;
    fibers->pause();
  }
}

bool Fibers::resume(unsigned index) {
  current_ = index;
  if (_setjmp(scheduler_->context) == 0) {
    Fiber& fiber = *fibers_[index];
    if (fiber.entered) {
      _longjmp(fiber.context, 1);
    }
    fiber.entered = true;
    getcontext(&fiber.entry);
    fiber.entry.uc_stack.ss_sp = fiber.stack + kGuardBytes;
    fiber.entry.uc_stack.ss_size = kStackBytes;
    const auto self = reinterpret_cast<std::uintptr_t>(this);
    // makecontext() passes numbers of 32 bits only.
    makecontext(&fiber.entry, reinterpret_cast<void (*)()>(&Fibers::enter), 2, static_cast<unsigned>(self >> 32),
                static_cast<unsigned>(self));
    setcontext(&fiber.entry);
  }
  return fibers_[current_]->ended;
}

void Fibers::pause() {
  if (_setjmp(fibers_[current_]->context) == 0) {
    _longjmp(scheduler_->context, 1);
  }
}

bool Fibers::on_stack(const void* address) const {
  const auto* at = static_cast<const char*>(address);
  const char* stack = fibers_[current_]->stack;
  return at >= stack && at < stack + kGuardBytes + kStackBytes;
}

}  // namespace decodelab::cuda_on_cpu
