// Process-wide settings of libtorch, and what it can run on.
#include "engine/runtime.h"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <stdexcept>
#include <string_view>

#include <fmt/format.h>
#include <sched.h>

#include "engine/kernels/cuda_module.h"
#include "engine/tensor.h"

namespace decodelab {
namespace {

/// Throws where there are devices and libtorch's part for them cannot be loaded.
std::int64_t cuda_device_count() {
#ifdef DECODELAB_HAS_CUDA
  const c10::DeviceIndex count = c10::cuda::device_count();
  if (count > 0 && !cuda_module_loaded()) {
    load_cuda_module();
  }
  return count;
#else
  return 0;
#endif
}

}  // namespace

void set_threads(std::int64_t threads) { at::set_num_threads(static_cast<int>(threads)); }
std::int64_t threads() { return at::get_num_threads(); }

void place_threads(const std::vector<std::int64_t>& places) {
  if (places.empty()) {
    return;
  }
  if (std::ssize(places) != threads()) {
    throw std::invalid_argument(fmt::format("{} places for {} threads: expected one each", places.size(), threads()));
  }
  std::atomic<std::int64_t> refused = -1;
  at::parallel_for(0, threads(), 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t index = begin; index < end; ++index) {
      const auto core = static_cast<std::size_t>(places[static_cast<std::size_t>(index)]);
      cpu_set_t set;
      CPU_ZERO(&set);
      CPU_SET(core, &set);
      if (sched_setaffinity(0, sizeof set, &set) != 0) {
        refused = static_cast<std::int64_t>(core);
      }
    }
  });
  if (refused >= 0) {
    throw std::invalid_argument(fmt::format("no thread can be bound to core {}", refused.load()));
  }
}

std::vector<std::string> present_devices() {
  std::vector<std::string> devices{"cpu"};
  for (std::int64_t index = 0; index < cuda_device_count(); ++index) {
    devices.push_back(fmt::format("cuda:{}", index));
  }
  return devices;
}

DeviceCheck check_device(const std::string& name) {
  if (name == "cpu") {
    return {.well_named = true, .present = true, .message = ""};
  }
  constexpr std::string_view kPrefix = "cuda:";
  int index = name == "cuda" ? 0 : -1;
  if (name.starts_with(kPrefix)) {
    const auto parsed = std::from_chars(name.data() + kPrefix.size(), name.data() + name.size(), index);
    if (parsed.ec != std::errc() || parsed.ptr != name.data() + name.size()) {
      index = -1;
    }
  }
  if (index < 0) {
    return {.message = fmt::format("--device: '{}' is no device: expected cpu, or cuda:0, cuda:1, ...", name)};
  }
  if (index >= cuda_device_count()) {
#ifdef DECODELAB_HAS_CUDA
    const std::string why = fmt::format("libtorch sees {} CUDA devices here", cuda_device_count());
#else
    const std::string why = "this build has no CUDA";
#endif
    return {.well_named = true, .message = fmt::format("--device: {} is absent ({}); use --device cpu", name, why)};
  }
  return {.well_named = true, .present = true, .message = ""};
}

void synchronize(const std::string& device) {
#ifdef DECODELAB_HAS_CUDA
  if (device != "cpu") {
    const c10::cuda::CUDAGuard guard{at::Device(device)};
    c10::cuda::device_synchronize();
  }
#else
  static_cast<void>(device);
#endif
}

std::int64_t free_device_bytes(const std::string& device) {
#ifdef DECODELAB_HAS_CUDA
  if (device != "cpu") {
    const c10::cuda::CUDAGuard guard{at::Device(device)};
    std::size_t free = 0;
    std::size_t total = 0;
    C10_CUDA_CHECK(cudaMemGetInfo(&free, &total));
    return static_cast<std::int64_t>(free);
  }
#endif
  throw std::invalid_argument("free_device_bytes() knows CUDA devices only, not " + device);
}

std::string libtorch_version() { return TORCH_VERSION; }

std::string cuda_version() {
#ifdef DECODELAB_HAS_CUDA
  return fmt::format("{}.{}", CUDART_VERSION / 1000, CUDART_VERSION % 1000 / 10);
#else
  return "";
#endif
}

}  // namespace decodelab
