// Checks of accesses: which region, whether it is aligned, what came before.
#include <cstring>

#include <fmt/format.h>

#include "tests/cuda_on_cpu/machine.h"

namespace decodelab::cuda_on_cpu {
namespace {

constexpr int kPoison = 0xff;
const std::string kStatic = "static ";

const char* name_of(AccessKind kind) {
  switch (kind) {
    case AccessKind::read: return "read";
    case AccessKind::write: return "write";
    default: return "atomic access";
  }
}

std::uintptr_t number(const void* address) { return reinterpret_cast<std::uintptr_t>(address); }

/// Negative before the region.
std::ptrdiff_t offset_in(const Region& region, const void* address) {
  return static_cast<const char*>(address) - region.begin;
}

/// The function that a static variable stands in: "norm_of_block<float, 4>" of "norm_of_block<float, 4>::scratch".
std::string scope_of(const std::string& variable) { return variable.substr(0, variable.rfind("::")); }

}  // namespace

void* Machine::shared_range(const char* name, std::size_t offset, std::size_t bytes, std::size_t element,
                            SourceLine place) {
  if (bytes == 0) {
    return nullptr;
  }
  if (offset + bytes > shared_bytes_) {
    report_and_stop(
        fmt::format("range '{}' ends at byte {} of dynamic shared memory, and the launch asked for {}, "
                    "at {}:{}",
                    name, offset + bytes, shared_bytes_, place.file, place.line));
  }
  if (const auto found = shared_ranges_.find(offset); found != shared_ranges_.end()) {
    const Region& region = *found->second;
    if (region.bytes != bytes || region.name != name) {
      report_and_stop(
          fmt::format("dynamic shared memory from byte {} is '{}' of {} bytes for one thread and '{}' of "
                      "{} for another, at {}:{}",
                      offset, region.name, region.bytes, name, bytes, place.file, place.line));
    }
    return region.begin;
  }
  Region& region = regions_.allocate(name, bytes, element, true, offset);
  shared_ranges_[offset] = &region;
  return region.begin;
}

/// The region that holds all of an access; else the one that it misses, or null.
Region* Machine::region_of(const void* address, std::size_t bytes) {
  Region* region = regions_.near(address);
  if (region != nullptr && region->holds(address, bytes)) {
    return region;
  }
  const Symbol* variable = symbols_.thread_local_near(address);
  if (variable == nullptr || (region != nullptr && number(region->begin) == variable->begin)) {
    return region;
  }
  // NOLINTNEXTLINE(performance-no-int-to-ptr): the symbol table has numbers.
  return &regions_.adopt_shared(kStatic + variable->name, reinterpret_cast<char*>(variable->begin), variable->bytes);
}

/// Poisons shared memory when a block first touches it. Returns false for a static variable of another kernel.
bool Machine::enter_block(Region& region) const {
  if (region.mapping == nullptr && scope_of(region.name) != kStatic + kernel_name_ &&
      launched_.contains(scope_of(region.name).substr(kStatic.size()))) {
    return false;
  }
  std::memset(region.begin, kPoison, region.bytes);
  region.block = now_.block;
  return true;
}

void Machine::check(const void* address, std::size_t bytes, AccessKind kind, bool is_plain, const void* code) {
  if (!running_ || bytes == 0 || fibers_.on_stack(address)) {
    return;
  }
  Region* const region = region_of(address, bytes);
  const std::uint32_t place = symbols_.offset_of(code);
  if (region == nullptr && kind == AccessKind::read && symbols_.is_constant(address)) {
    return;
  }
  const unsigned thread = fibers_.current();
  const bool is_new = region != nullptr && region->shared && region->block != now_.block;
  if (region == nullptr || !region->holds(address, bytes) || (is_new && !enter_block(*region))) {
    const auto where = region == nullptr ? fmt::format("all memory that the kernel was given ({})", address)
                                         : fmt::format("{} (at byte {} of {})", region->name,
                                                       offset_in(*region, address), region->bytes);
    report_and_stop(fmt::format("{} of {} bytes outside of {} at {} by {}", name_of(kind), bytes, where,
                                symbols_.line_of(place), name_of_thread(thread)));
  }
  if (is_plain && (number(address) & (bytes - 1)) != 0) {
    report_and_stop(fmt::format("misaligned {} of {} bytes at byte {} of {} at {} by {}", name_of(kind), bytes,
                                offset_in(*region, address), region->name, symbols_.line_of(place),
                                name_of_thread(thread)));
  }
  const auto first = static_cast<std::size_t>(offset_in(*region, address));
  const int shift = region->element_shift;
  for (std::size_t cell = first >> shift; cell <= (first + bytes - 1) >> shift; ++cell) {
    const Finding finding = note_access(region->cells[cell], kind, region->shared, now_, place, lane_reads_);
    if (finding.conflict != Conflict::none) {
      report_access(*region, cell << shift, kind, place, finding);
    }
  }
}

void Machine::report_access(const Region& region, std::size_t offset, AccessKind kind, std::uint32_t code,
                            const Finding& finding) {
  if (!reported_.insert({finding.conflict, kind, code, finding.other.code}).second) {
    return;
  }
  const std::string thread = name_of_thread(fibers_.current());
  if (finding.conflict == Conflict::unwritten) {
    report(fmt::format("{} of {}, byte {}, which nobody has written yet, at {} by {}", name_of(kind), region.name,
                       offset, symbols_.line_of(code), thread));
    return;
  }
  const AccessKind other_kind = finding.conflict == Conflict::with_read ? AccessKind::read
                                : finding.other.atomic                  ? AccessKind::atomic
                                                                        : AccessKind::write;
  report(fmt::format("race on {}, byte {}: {} at {} by {} and {} at {} by {}{}, with no barrier between", region.name,
                     offset, name_of(kind), symbols_.line_of(code), thread, name_of(other_kind),
                     symbols_.line_of(finding.other.code), name_of_thread(finding.other.thread),
                     finding.other.block == now_.block ? "" : " of another block"));
}

void Machine::fault_in_line(const std::string& what, SourceLine place) {
  if (running_) {
    report_and_stop(fmt::format("{} at {}:{} by {}", what, place.file, place.line, name_of_thread(fibers_.current())));
  }
}

}  // namespace decodelab::cuda_on_cpu
