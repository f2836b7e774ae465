// Matches a checkpoint's tensors with what the configuration asks for, and copies them where the model will read them.
#include "engine/checkpoint/weights.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <numeric>
#include <set>
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
#include "engine/checkpoint/checkpoint_reader.h"
#include "engine/checkpoint/family.h"
#include "engine/kernels/scalar_type.h"
#include "engine/tensor.h"

namespace decodelab {
namespace {

constexpr std::size_t kHugePageBytes = std::size_t{2} << 20;
/// Every tensor starts on a cache line.
constexpr std::size_t kAlignmentBytes = 64;
/// Rows of blocks that are worth another thread to decode.
constexpr std::int64_t kRowsOfATask = 16;
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

std::string some_of(const std::vector<std::string>& names) {
  const std::size_t shown = std::min(names.size(), kNamesInAnError);
  std::string text =
      fmt::format("{}", fmt::join(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(shown), ", "));
  return shown < names.size() ? fmt::format("{} and {} more", text, names.size() - shown) : text;
}

constexpr const char* kHead = "lm_head.weight";

/// A file of a model whose head is tied to the embedding may have the head too, if it is the same.
void check_tied_head(const std::filesystem::path& directory, const StoredTensor& head, const StoredTensor& embedding) {
  if (head.shape != embedding.shape || head.dtype != embedding.dtype ||
      !std::ranges::equal(head.data, embedding.data)) {
    throw std::invalid_argument(fmt::format(
        "{}: {} differs from the token embedding, but config.json ties them; save the checkpoint tied, or set "
        "tie_word_embeddings to false where the family takes it",
        directory.string(), kHead));
  }
}

/// Returns the stored tensors by the names that weight_specs() uses.
std::map<std::string, StoredTensor> full_names(const std::filesystem::path& directory,
                                               const std::map<std::string, StoredTensor>& stored, const Family& family,
                                               const std::set<std::string>& wanted) {
  std::map<std::string, StoredTensor> by_name;
  for (const auto& [name, tensor] : stored) {
    if (family.ignores(name)) {
      continue;
    }
    const std::string prefixed = std::string(family.prefix) + name;
    const bool lacks_prefix = !wanted.contains(name) && wanted.contains(prefixed);
    if (!by_name.emplace(lacks_prefix ? prefixed : name, tensor).second) {
      throw std::invalid_argument(fmt::format("{}: the tensor '{}' is there twice, with the prefix '{}' and without",
                                              directory.string(), name, family.prefix));
    }
  }
  return by_name;
}

/// Returns the stored tensors by full name: every tensor that the model needs, with its shape and a dtype that can be
/// read.
std::map<std::string, StoredTensor> match(const std::filesystem::path& directory,
                                          const std::map<std::string, StoredTensor>& stored,
                                          const ModelConfig& config) {
  const std::vector<WeightSpec> specs = weight_specs(config);
  std::set<std::string> wanted;
  for (const WeightSpec& spec : specs) {
    wanted.insert(spec.name);
  }
  std::map<std::string, StoredTensor> by_name = full_names(directory, stored, family_of(config.family), wanted);
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
    } else if (!found->second.blocks) {
      found->second.element_type(spec.name);
    }
  }
  for (const auto& [name, tensor] : by_name) {
    if (name != kHead && !wanted.contains(name)) {
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
  if (const auto head = by_name.find(kHead); head != by_name.end() && !wanted.contains(kHead)) {
    check_tied_head(directory, head->second, by_name.at(specs.front().name));
  }
  return by_name;
}

/// Loads a part of a file into the page tables at once, instead of by one page fault for every few pages.
void fault_in(std::span<const std::byte> bytes) {
#ifdef MADV_POPULATE_READ
  const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  const std::size_t into_page = reinterpret_cast<std::uintptr_t>(bytes.data()) % page;
  // An older system refuses; the pages are then loaded by page faults.
  madvise(const_cast<std::byte*>(bytes.data()) - into_page, bytes.size() + into_page, MADV_POPULATE_READ);
#else
  static_cast<void>(bytes);
#endif
}

/// Returns the values of rows [first, last) in fp32, one row after the other.
at::Tensor values_of(const StoredBlocks& blocks, std::int64_t first, std::int64_t last) {
  const std::int64_t columns = blocks.columns();
  const at::Tensor values = at::empty({last - first, columns}, at::kFloat);
  float* const to = values.mutable_data_ptr<float>();
  at::parallel_for(first, last, kRowsOfATask, [&](std::int64_t begin, std::int64_t end) {
    blocks.dequantize_rows(begin, end,
                           {to + (begin - first) * columns, static_cast<std::size_t>((end - begin) * columns)});
  });
  return values;
}

/// Returns a tensor over the file's own bytes, valid while the reader lives, or one of decoded values.
at::Tensor view_of(const std::string& name, const StoredTensor& stored) {
  if (stored.blocks) {
    return values_of(*stored.blocks, 0, stored.blocks->rows()).view(stored.shape);
  }
  return at::from_blob(const_cast<std::byte*>(stored.data.data()), stored.shape,
                       at::TensorOptions(scalar_type(stored.element_type(name))));
}

/// Writes stored tensors into a weight of the shape of `role`, converted to its dtype.
void write_weight(const at::Tensor& weight, const RoleSpec& role, const std::vector<at::Tensor>& stored) {
  switch (role.transform) {
    case Transform::none: weight.copy_(stored.front()); return;
    case Transform::transposed: weight.copy_(stored.front().t()); return;
    case Transform::concatenated:
    case Transform::transposed_concatenated: {
      std::int64_t row = 0;
      for (const at::Tensor& part : stored) {
        const at::Tensor rows = role.transform == Transform::concatenated ? part : part.t();
        weight.narrow(0, row, rows.size(0)).copy_(rows);
        row += rows.size(0);
      }
      return;
    }
    case Transform::split_heads: {
      const std::vector<std::int64_t> by_head{role.split_heads, 3, weight.size(0) / (3 * role.split_heads)};
      weight.unflatten(0, {by_head[1], by_head[0], by_head[2]})
          .copy_(stored.front().unflatten(0, by_head).transpose(0, 1));
      return;
    }
  }
}

std::map<std::string, RoleSpec> roles_by_name(const ModelConfig& config) {
  std::map<std::string, RoleSpec> roles;
  for (const RoleSpec& role : weight_roles(config)) {
    roles.emplace(role.role, role);
  }
  return roles;
}

}  // namespace

std::int64_t weight_bytes(const ModelConfig& config, ElementType dtype) {
  return parameter_count(config) * static_cast<std::int64_t>(element_bytes(dtype));
}

struct Weights::Impl {
  std::shared_ptr<const CheckpointReader> reader;  ///< Of the whole model, and of the parts that ranks hold of it.
  std::map<std::string, StoredTensor> stored;
  std::map<std::string, RoleSpec> roles;
  std::map<std::string, WeightCut> cuts;  ///< Of roles of which this is a part.
  at::TensorOptions options;
  std::int64_t total_bytes;
  MemoryAtHand at_hand;
  std::shared_ptr<Arena> arena;  ///< Null unless the device is a CPU.
  std::mutex mutex{};
  std::map<std::string, at::Tensor> loaded{};
  std::int64_t loading_ns = 0;

  const RoleSpec& find(const std::string& role) const {
    const auto found = roles.find(role);
    if (found == roles.end()) {
      throw std::logic_error("the transformer asked for the weight '" + role + "', which weight_roles() does not list");
    }
    return found->second;
  }

  /// Returns views of what the file has for a role.
  std::vector<at::Tensor> views(const RoleSpec& role) const {
    std::vector<at::Tensor> views;
    for (const WeightSpec& spec : role.stored) {
      views.push_back(view_of(spec.name, stored.at(spec.name)));
    }
    return views;
  }

  const at::Tensor& load(const std::string& name) {
    const std::lock_guard lock(mutex);
    if (const auto there = loaded.find(name); there != loaded.end()) {
      return there->second;
    }
    const c10::InferenceMode inference;
    const auto start = std::chrono::steady_clock::now();
    const RoleSpec& role = find(name);
    for (const WeightSpec& spec : role.stored) {
      fault_in(stored.at(spec.name).data);
    }
    at::Tensor tensor;
    if (arena) {
      const std::vector<std::int64_t> shape = shape_of(role);
      const std::size_t bytes = elements(shape) * options.dtype().itemsize();
      require_memory(static_cast<std::int64_t>(bytes), at_hand, name);
      tensor = at::from_blob(arena->take(bytes), shape, [kept = arena](void*) {}, options);
      if (cuts.contains(name)) {
        tensor.copy_(part_of(role));
      } else {
        write_weight(tensor, role, views(role));
      }
    } else {
      tensor = (cuts.contains(name) ? part_of(role) : made(role)).to(options.device());
    }
    loading_ns += std::chrono::nanoseconds(std::chrono::steady_clock::now() - start).count();
    return loaded.emplace(name, std::move(tensor)).first->second;
  }

  /// Returns a weight in ordinary memory of the host.
  at::Tensor made(const RoleSpec& role) const {
    const at::Tensor tensor = at::empty(role.shape, options.device(at::kCPU));
    write_weight(tensor, role, views(role));
    return tensor;
  }

  /// Returns whether a file has a weight as the engine wants it.
  bool as_stored(const RoleSpec& role) const {
    const StoredTensor& first = stored.at(role.stored.front().name);
    return role.transform == Transform::none && !first.blocks &&
           scalar_type(first.element_type(role.role)) == options.dtype().toScalarType();
  }

  /// Returns the part of a weight that is held here, in memory of its own or of the file.
  at::Tensor part_of(const RoleSpec& role) const {
    const at::Tensor whole = as_stored(role) ? view_of(role.role, stored.at(role.stored.front().name)) : made(role);
    const WeightCut& cut = cuts.at(role.role);
    std::vector<at::Tensor> parts;
    for (const IndexRange& range : cut.ranges) {
      parts.push_back(whole.narrow(cut.axis, range.first, range.count));
    }
    return parts.size() == 1 ? parts.front().contiguous() : at::cat(parts, cut.axis);
  }

  /// Returns the shape of what is held here of a weight.
  std::vector<std::int64_t> shape_of(const RoleSpec& role) const {
    std::vector<std::int64_t> shape = role.shape;
    if (const auto cut = cuts.find(role.role); cut != cuts.end()) {
      shape[static_cast<std::size_t>(cut->second.axis)] = cut->second.count();
    }
    return shape;
  }

  static std::size_t elements(const std::vector<std::int64_t>& shape) {
    return std::accumulate(shape.begin(), shape.end(), std::size_t{1},
                           [](std::size_t count, std::int64_t size) { return count * static_cast<std::size_t>(size); });
  }
};

Weights::Weights(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Weights::~Weights() = default;
Weights::Weights(Weights&&) noexcept = default;
Weights& Weights::operator=(Weights&&) noexcept = default;

const at::Tensor& Weights::at(const std::string& name) const { return impl_->load(name); }

at::Tensor Weights::read(const std::string& name) const {
  const RoleSpec& role = impl_->find(name);
  {
    const std::lock_guard lock(impl_->mutex);
    if (const auto there = impl_->loaded.find(name); there != impl_->loaded.end()) {
      return there->second;
    }
  }
  if (!impl_->arena) {
    return impl_->load(name);
  }
  const c10::InferenceMode inference;
  if (impl_->cuts.contains(name)) {
    return impl_->part_of(role);
  }
  return impl_->as_stored(role) ? view_of(name, impl_->stored.at(role.stored.front().name)) : impl_->made(role);
}

std::vector<StoredBlocks> Weights::blocks(const std::string& name) const {
  const RoleSpec& role = impl_->find(name);
  if (impl_->cuts.contains(name) || (role.transform != Transform::none && role.transform != Transform::concatenated)) {
    return {};
  }
  std::vector<StoredBlocks> parts;
  for (const WeightSpec& spec : role.stored) {
    const StoredTensor& stored = impl_->stored.at(spec.name);
    if (stored.shape.size() != 2 || !stored.blocks) {
      return {};
    }
    parts.push_back(*stored.blocks);
  }
  return parts;
}

void Weights::read_rows(const std::string& name, const at::Tensor& ids, const at::Tensor& rows) const {
  const RoleSpec& role = impl_->find(name);
  const StoredTensor& stored = impl_->stored.at(role.stored.front().name);
  if (role.transform != Transform::none) {
    throw std::logic_error("rows of '" + name + "' do not lie in the file as they are wanted");
  }
  if (!stored.blocks) {
    rows.copy_(at::index_select(view_of(name, stored), 0, ids));
    return;
  }
  const StoredBlocks& blocks = *stored.blocks;
  const at::Tensor values = at::empty(rows.sizes(), at::kFloat);
  const auto width = static_cast<std::size_t>(blocks.columns());
  const auto* const wanted = ids.const_data_ptr<std::int64_t>();
  float* const to = values.mutable_data_ptr<float>();
  at::parallel_for(0, ids.numel(), kRowsOfATask, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t place = first; place < last; ++place) {
      blocks.dequantize_rows(wanted[place], wanted[place] + 1, {to + static_cast<std::size_t>(place) * width, width});
    }
  });
  rows.copy_(values);
}

bool Weights::has(const std::string& name) const { return impl_->roles.contains(name); }
std::vector<std::int64_t> Weights::shape(const std::string& name) const { return impl_->shape_of(impl_->find(name)); }
ElementType Weights::dtype() const { return element_type(impl_->options.dtype().toScalarType()); }

std::int64_t Weights::bytes() const { return impl_->total_bytes; }

std::int64_t Weights::loading_ns() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->loading_ns;
}

void Weights::check(const std::filesystem::path& directory, const ModelConfig& config) {
  const CheckpointReader reader(directory, config);
  match(directory, reader.tensors(), config);
}

Weights Weights::part(const ModelConfig& config, const RankPart& part) const {
  if (const std::string reason = reason_against_ranks(config, part.ranks); !reason.empty()) {
    throw std::invalid_argument(reason);
  }
  // NOLINTNEXTLINE(modernize-make-unique): as in load().
  auto impl = std::unique_ptr<Impl>(new Impl{.reader = impl_->reader,
                                             .stored = impl_->stored,
                                             .roles = roles_by_name(config),
                                             .cuts = {},
                                             .options = impl_->options,
                                             .total_bytes = 0,
                                             .at_hand = impl_->at_hand,
                                             .arena = nullptr});
  if (config.tied_head) {
    RoleSpec head = impl->find("embedding.weight");
    head.role = "head.weight";
    impl->roles.emplace(head.role, head);
  }
  std::erase_if(impl->roles, [&](const auto& named) {
    const auto cut = weight_cut(config, named.first, part);
    return cut && cut->ranges.empty();
  });
  for (const auto& [name, role] : impl->roles) {
    if (auto cut = weight_cut(config, name, part)) {
      impl->cuts.emplace(name, std::move(*cut));
    }
    impl->total_bytes +=
        static_cast<std::int64_t>(Impl::elements(impl->shape_of(role)) * impl->options.dtype().itemsize());
  }
  if (impl_->arena) {
    impl->arena =
        std::make_shared<Arena>(static_cast<std::size_t>(impl->total_bytes) + impl->roles.size() * kAlignmentBytes);
  }
  return Weights(std::move(impl));
}

Weights Weights::open(const std::filesystem::path& directory, const ModelConfig& config, ElementType dtype,
                      const std::string& device_name, const MemoryAtHand& at_hand) {
  const auto reader = std::make_shared<const CheckpointReader>(directory, config);
  auto stored = match(directory, reader->tensors(), config);
  const at::Device device(device_name);
  const std::int64_t total = weight_bytes(config, dtype);
  // NOLINTNEXTLINE(modernize-make-unique): an aggregate with a mutex can neither be moved nor made by make_unique().
  auto impl = std::unique_ptr<Impl>(new Impl{.reader = reader,
                                             .stored = std::move(stored),
                                             .roles = roles_by_name(config),
                                             .cuts = {},
                                             .options = at::TensorOptions(scalar_type(dtype)).device(device),
                                             .total_bytes = total,
                                             .at_hand = at_hand,
                                             .arena = nullptr});
  if (device.is_cpu()) {
    impl->arena = std::make_shared<Arena>(static_cast<std::size_t>(total) + impl->roles.size() * kAlignmentBytes);
  }
  return Weights(std::move(impl));
}

Weights Weights::load(const std::filesystem::path& directory, const ModelConfig& config, ElementType dtype,
                      const std::string& device, const LoadProgress& progress, const MemoryAtHand& at_hand) {
  Weights weights = open(directory, config, dtype, device, at_hand);
  if (progress || !at::Device(device).is_cpu()) {
    std::int64_t done = 0;
    for (const RoleSpec& role : weight_roles(config)) {
      done += static_cast<std::int64_t>(weights.at(role.role).nbytes());
      if (progress) {
        progress(done, weights.bytes());
      }
    }
  }
  return weights;
}

}  // namespace decodelab
