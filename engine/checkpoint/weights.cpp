// Matches a checkpoint's tensors with what the configuration asks for, and copies them where the model will read them.
#include "engine/checkpoint/weights.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <span>
#include <stdexcept>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/memory_at_hand.h"
#include "engine/kernels/scalar_type.h"
#include "engine/tensor.h"

namespace decodelab {
namespace {

constexpr std::size_t kHugePageBytes = std::size_t{2} << 20;
/// Every tensor starts on a cache line.
constexpr std::size_t kAlignmentBytes = 64;
/// Maximum number of names in an error message.
constexpr std::size_t kNamesInAnError = 8;

std::size_t round_up(std::size_t bytes, std::size_t multiple) { return (bytes + multiple - 1) / multiple * multiple; }

/// Anonymous memory on huge pages where the system grants them.
class Arena {
 public:
  explicit Arena(std::size_t bytes) : bytes_(round_up(bytes, kHugePageBytes)) {
    address_ = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (address_ == MAP_FAILED) {
      throw NotEnoughMemory(fmt::format("not enough memory: the system refused {} bytes for the weights", bytes_));
    }
    madvise(address_, bytes_, MADV_HUGEPAGE);
  }
  ~Arena() { munmap(address_, bytes_); }
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  void* take(std::size_t bytes) {
    void* taken = static_cast<char*>(address_) + used_;
    used_ += round_up(bytes, kAlignmentBytes);
    return taken;
  }

 private:
  std::size_t bytes_;
  std::size_t used_ = 0;
  void* address_;
};

/// The name that weight_specs() uses for a tensor of the file.
std::string full_name(const std::string& stored) {
  return stored.starts_with("transformer.") || stored == "lm_head.weight" ? stored : "transformer." + stored;
}

bool is_mask_buffer(std::string_view name) {
  return name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias");
}

std::string some_of(const std::vector<std::string>& names) {
  const std::size_t shown = std::min(names.size(), kNamesInAnError);
  std::string text =
      fmt::format("{}", fmt::join(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(shown), ", "));
  return shown < names.size() ? fmt::format("{} and {} more", text, names.size() - shown) : text;
}

void check_tied_head(const std::filesystem::path& directory, const std::map<std::string, StoredTensor>& stored) {
  const auto head = stored.find("lm_head.weight");
  if (head == stored.end()) {
    return;
  }
  const StoredTensor& embedding = stored.at("transformer.wte.weight");
  const StoredTensor& tied = head->second;
  if (tied.shape != embedding.shape || tied.dtype != embedding.dtype ||
      !std::ranges::equal(tied.data, embedding.data)) {
    throw std::invalid_argument(directory.string() +
                                ": lm_head.weight differs from transformer.wte.weight, but this model family ties "
                                "them; save the checkpoint tied");
  }
}

/// Returns the stored tensors by full name: every tensor that the model needs, with its shape and a dtype that can be
/// read.
std::map<std::string, StoredTensor> match(const std::filesystem::path& directory,
                                          const std::map<std::string, StoredTensor>& stored,
                                          const std::vector<WeightSpec>& specs) {
  std::map<std::string, StoredTensor> by_name;
  for (const auto& [name, tensor] : stored) {
    if (!is_mask_buffer(name) && !by_name.emplace(full_name(name), tensor).second) {
      throw std::invalid_argument(fmt::format(
          "{}: the tensor '{}' is there twice, with the prefix 'transformer.' and without", directory.string(), name));
    }
  }
  std::vector<std::string> missing;
  std::vector<std::string> unknown;
  for (const WeightSpec& spec : specs) {
    const auto found = by_name.find(spec.name);
    if (found == by_name.end()) {
      missing.push_back(spec.name);
    } else if (found->second.shape != spec.shape) {
      throw std::invalid_argument(fmt::format("{}: tensor '{}' has shape [{}], but config.json asks for [{}]",
                                              directory.string(), spec.name, fmt::join(found->second.shape, ", "),
                                              fmt::join(spec.shape, ", ")));
    } else {
      found->second.element_type(spec.name);
    }
  }
  for (const auto& [name, tensor] : by_name) {
    if (name != "lm_head.weight" &&
        std::none_of(specs.begin(), specs.end(), [&](const WeightSpec& spec) { return spec.name == name; })) {
      unknown.push_back(name);
    }
  }
  if (!missing.empty() || !unknown.empty()) {
    std::string problem = directory.string() + ": the weights do not fit config.json";
    if (!missing.empty()) {
      problem += fmt::format("; {} missing: {}", missing.size(), some_of(missing));
    }
    if (!unknown.empty()) {
      problem += fmt::format("; {} unknown: {}", unknown.size(), some_of(unknown));
    }
    throw std::invalid_argument(problem);
  }
  check_tied_head(directory, by_name);
  return by_name;
}

/// Loads a part of a file into the page tables at once, instead of by one page fault for every few pages.
void fault_in(std::span<const std::byte> bytes) {
#ifdef MADV_POPULATE_READ
  const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto first = reinterpret_cast<std::uintptr_t>(bytes.data()) / page * page;
  const auto end = reinterpret_cast<std::uintptr_t>(bytes.data()) + bytes.size();
  // An older system refuses; the pages are then loaded by page faults.
  madvise(reinterpret_cast<void*>(first), end - first, MADV_POPULATE_READ);
#else
  static_cast<void>(bytes);
#endif
}

/// Returns a tensor over the file's own bytes, valid while the reader lives.
at::Tensor view_of(const std::string& name, const StoredTensor& stored) {
  return at::from_blob(const_cast<std::byte*>(stored.data.data()), stored.shape,
                       at::TensorOptions(scalar_type(stored.element_type(name))));
}

}  // namespace

std::int64_t weight_bytes(const ModelConfig& config, ElementType dtype) {
  return parameter_count(config) * static_cast<std::int64_t>(element_bytes(dtype));
}

struct Weights::Impl {
  SafetensorsReader reader;
  std::map<std::string, StoredTensor> stored;
  at::TensorOptions options;
  std::int64_t total_bytes;
  MemoryAtHand at_hand;
  std::shared_ptr<Arena> arena;  ///< Null unless the device is a CPU.
  std::mutex mutex{};
  std::map<std::string, at::Tensor> loaded{};
  std::map<std::string, at::Tensor> in_file{};
  std::int64_t loading_ns = 0;

  const StoredTensor& find(const std::string& name) const {
    const auto found = stored.find(name);
    if (found == stored.end()) {
      throw std::logic_error("the transformer asked for the weight '" + name + "', which weight_specs() does not list");
    }
    return found->second;
  }

  const at::Tensor& load(const std::string& name) {
    const std::lock_guard lock(mutex);
    if (const auto there = loaded.find(name); there != loaded.end()) {
      return there->second;
    }
    const c10::InferenceMode inference;
    const auto start = std::chrono::steady_clock::now();
    const StoredTensor& file = find(name);
    const at::Tensor source = view_of(name, file);
    at::Tensor tensor;
    if (arena) {
      const auto bytes = static_cast<std::size_t>(source.numel()) * options.dtype().itemsize();
      require_memory(static_cast<std::int64_t>(bytes), at_hand, name);
      fault_in(file.data);
      tensor = at::from_blob(arena->take(bytes), source.sizes(), [kept = arena](void*) {}, options);
      tensor.copy_(source);
    } else {
      tensor = source.to(options, false, /*copy=*/true);
    }
    loading_ns += std::chrono::nanoseconds(std::chrono::steady_clock::now() - start).count();
    return loaded.emplace(name, std::move(tensor)).first->second;
  }
};

Weights::Weights(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Weights::~Weights() = default;
Weights::Weights(Weights&&) noexcept = default;
Weights& Weights::operator=(Weights&&) noexcept = default;

const at::Tensor& Weights::at(const std::string& name) const { return impl_->load(name); }

const at::Tensor& Weights::source(const std::string& name) const {
  const StoredTensor& file = impl_->find(name);
  if (!impl_->arena || scalar_type(file.element_type(name)) != impl_->options.dtype().toScalarType()) {
    return impl_->load(name);
  }
  const std::lock_guard lock(impl_->mutex);
  return impl_->in_file.try_emplace(name, view_of(name, file)).first->second;
}

std::int64_t Weights::bytes() const { return impl_->total_bytes; }

std::int64_t Weights::loading_ns() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->loading_ns;
}

void Weights::check(const std::filesystem::path& directory, const ModelConfig& config) {
  const SafetensorsReader reader(directory);
  match(directory, reader.tensors(), weight_specs(config));
}

Weights Weights::load(const std::filesystem::path& directory, const ModelConfig& config, ElementType dtype,
                      const std::string& device_name, const LoadProgress& progress, const MemoryAtHand& at_hand) {
  const std::vector<WeightSpec> specs = weight_specs(config);
  SafetensorsReader reader(directory);
  auto stored = match(directory, reader.tensors(), specs);
  const at::Device device(device_name);
  const std::int64_t total = weight_bytes(config, dtype);
  auto impl = std::unique_ptr<Impl>(new Impl{.reader = std::move(reader),
                                             .stored = std::move(stored),
                                             .options = at::TensorOptions(scalar_type(dtype)).device(device),
                                             .total_bytes = total,
                                             .at_hand = at_hand,
                                             .arena = nullptr});
  if (device.is_cpu()) {
    impl->arena = std::make_shared<Arena>(static_cast<std::size_t>(total) + specs.size() * kAlignmentBytes);
  }
  if (progress || !device.is_cpu()) {
    std::int64_t done = 0;
    for (const WeightSpec& spec : specs) {
      done += static_cast<std::int64_t>(impl->load(spec.name).nbytes());
      if (progress) {
        progress(done, total);
      }
    }
  }
  return Weights(std::move(impl));
}

}  // namespace decodelab
