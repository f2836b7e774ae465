// Writes a safetensors file piece by piece, for checkpoints that do not fit into memory.
#include "engine/checkpoint/safetensors_writer.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <mutex>
#include <stdexcept>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "engine/checkpoint/safetensors.h"

namespace decodelab {
namespace {

constexpr std::uint64_t kDataAlignment = 64;                  // A cache line, and the widest vector load.
constexpr std::size_t kMaxWriteBytes = std::size_t{1} << 30;  // Linux writes at most 2 GiB - 4 KiB a call.

std::uint64_t declared_bytes(const TensorToDeclare& tensor, const std::string& file_name) {
  std::uint64_t count = element_bytes(tensor.type);
  bool fits = true;
  for (const std::int64_t dimension : tensor.shape) {
    fits = fits && dimension >= 0 && !__builtin_mul_overflow(count, static_cast<std::uint64_t>(dimension), &count);
  }
  if (!fits) {
    throw std::invalid_argument(
        fmt::format("{}: tensor {}: expected dimensions from 0 up and a size below 2^64 bytes, got [{}]", file_name,
                    in_quotes(tensor.name), fmt::join(tensor.shape, ", ")));
  }
  return count;
}

void write_all(int descriptor, std::span<const std::byte> data, std::uint64_t offset, const std::string& file_name) {
  while (!data.empty()) {
    const auto written =
        ::pwrite(descriptor, data.data(), std::min(data.size(), kMaxWriteBytes), static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR) {
      continue;
    }
    if (written <= 0) {
      throw std::runtime_error(
          fmt::format("{}: {} bytes cannot be written: {}; free some space or choose another place", file_name,
                      data.size(), std::strerror(errno)));
    }
    data = data.subspan(static_cast<std::size_t>(written));
    offset += static_cast<std::uint64_t>(written);
  }
}

}  // namespace

struct SafetensorsWriter::Impl {
  struct ByteRange {
    std::uint64_t begin = 0;
    std::uint64_t size = 0;
    std::uint64_t written = 0;
  };

  std::filesystem::path path;
  std::filesystem::path temporary;
  int descriptor = -1;
  bool committed = false;
  std::mutex mutex;  // Guards `written` of all places.
  std::map<std::string, ByteRange, std::less<>> places;

  ~Impl() {
    if (descriptor >= 0) {
      ::close(descriptor);
    }
    if (!committed && !temporary.empty()) {
      ::unlink(temporary.c_str());
    }
  }

  std::string header(std::span<const TensorToDeclare> tensors) {
    std::vector<const TensorToDeclare*> order;
    for (const TensorToDeclare& tensor : tensors) {
      order.push_back(&tensor);
    }
    std::ranges::stable_sort(order, std::greater<>(),
                             [](const TensorToDeclare* tensor) { return element_bytes(tensor->type); });

    nlohmann::ordered_json table;
    table["__metadata__"] = {{"format", "pt"}};
    std::uint64_t offset = 0;
    for (const TensorToDeclare* tensor : order) {
      const ByteRange place{.begin = offset, .size = declared_bytes(*tensor, path.string())};
      if (tensor->name == "__metadata__" || !places.emplace(tensor->name, place).second) {
        throw std::invalid_argument(fmt::format("{}: expected every tensor once, got {} twice or as a reserved name",
                                                path.string(), in_quotes(tensor->name)));
      }
      if (__builtin_add_overflow(offset, place.size, &offset)) {
        throw std::invalid_argument(fmt::format("{}: expected a file below 2^64 bytes", path.string()));
      }
      table.push_back({tensor->name,
                       {{"dtype", safetensors_name(tensor->type)},
                        {"shape", tensor->shape},
                        {"data_offsets", {place.begin, offset}}}});
    }
    std::string text;
    try {
      text = table.dump();
    } catch (const nlohmann::json::exception&) {
      throw std::invalid_argument(fmt::format("{}: expected tensor names in UTF-8", path.string()));
    }
    const std::uint64_t padded =
        (kLengthBytes + text.size() + kDataAlignment - 1) / kDataAlignment * kDataAlignment - kLengthBytes;
    text.resize(padded, ' ');
    return text;
  }

  void create(std::span<const TensorToDeclare> tensors) {
    const std::string text = header(tensors);
    std::uint64_t total = kLengthBytes + text.size();
    for (auto& [name, place] : places) {
      place.begin += kLengthBytes + text.size();
      total = std::max(total, place.begin + place.size);
    }
    std::string pattern = (path.parent_path() / ("." + path.filename().string() + ".tmp-XXXXXX")).string();
    descriptor = ::mkostemp(pattern.data(), O_CLOEXEC);
    if (descriptor < 0) {
      throw std::runtime_error(fmt::format("{}: cannot be created: {}", pattern, std::strerror(errno)));
    }
    temporary = pattern;
    ::fchmod(descriptor, 0644);  // mkostemp gives 0600; a checkpoint may be shared.
    if (::ftruncate(descriptor, static_cast<off_t>(total)) != 0) {
      throw std::runtime_error(
          fmt::format("{}: {} bytes cannot be set aside: {}", pattern, total, std::strerror(errno)));
    }
    std::array<std::byte, kLengthBytes> length;
    for (std::size_t i = 0; i < kLengthBytes; ++i) {
      length[i] = static_cast<std::byte>(text.size() >> (8 * i));
    }
    write_all(descriptor, length, 0, pattern);
    write_all(descriptor, std::as_bytes(std::span(text)), kLengthBytes, pattern);
  }

  ByteRange& place_of(std::string_view name) {
    const auto found = places.find(name);
    if (found == places.end()) {
      throw std::invalid_argument(fmt::format("{}: tensor {} was not declared", path.string(), in_quotes(name)));
    }
    return found->second;
  }
};

SafetensorsWriter::SafetensorsWriter(const std::filesystem::path& path, std::span<const TensorToDeclare> tensors)
    : impl_(std::make_unique<Impl>()) {
  impl_->path = path;
  impl_->create(tensors);
}

SafetensorsWriter::~SafetensorsWriter() = default;

void SafetensorsWriter::write(std::string_view name, std::span<const std::byte> data) {
  const std::uint64_t size = impl_->place_of(name).size;
  if (size != data.size()) {
    throw std::invalid_argument(fmt::format("{}: tensor {}: expected {} bytes, got {}", impl_->path.string(),
                                            in_quotes(name), size, data.size()));
  }
  write_part(name, 0, data);
}

void SafetensorsWriter::write_part(std::string_view name, std::int64_t offset_bytes, std::span<const std::byte> data) {
  Impl::ByteRange& place = impl_->place_of(name);
  const auto offset = static_cast<std::uint64_t>(offset_bytes);
  if (offset_bytes < 0 || offset > place.size || data.size() > place.size - offset) {
    throw std::invalid_argument(fmt::format("{}: tensor {}: expected a part of its {} bytes, got {} bytes at {}",
                                            impl_->path.string(), in_quotes(name), place.size, data.size(),
                                            offset_bytes));
  }
  write_all(impl_->descriptor, data, place.begin + offset, impl_->temporary.string());
  const std::lock_guard lock(impl_->mutex);
  if (data.size() > place.size - place.written) {
    throw std::invalid_argument(fmt::format("{}: tensor {}: expected each byte once, got {} of {} bytes and {} more",
                                            impl_->path.string(), in_quotes(name), place.written, place.size,
                                            data.size()));
  }
  place.written += data.size();
}

void SafetensorsWriter::commit() {
  for (const auto& [name, place] : impl_->places) {
    if (place.written != place.size) {
      throw std::invalid_argument(fmt::format("{}: tensor {}: expected {} bytes before commit, got {}",
                                              impl_->path.string(), in_quotes(name), place.size, place.written));
    }
  }
  // Without the flush a power cut after the rename leaves a file of the right size and full of zeros.
  if (::fdatasync(impl_->descriptor) != 0) {
    throw std::runtime_error(fmt::format("{}: cannot be flushed: {}", impl_->temporary.string(), std::strerror(errno)));
  }
  std::error_code error;
  std::filesystem::rename(impl_->temporary, impl_->path, error);
  if (error) {
    throw std::runtime_error(fmt::format("{}: cannot be put in place: {}", impl_->path.string(), error.message()));
  }
  impl_->committed = true;
}

void write_safetensors(const std::filesystem::path& path, std::span<const TensorToWrite> tensors) {
  std::vector<TensorToDeclare> declared;
  declared.reserve(tensors.size());
  for (const TensorToWrite& tensor : tensors) {
    declared.push_back({.name = tensor.name, .type = tensor.type, .shape = tensor.shape});
  }
  SafetensorsWriter writer(path, declared);
  for (const TensorToWrite& tensor : tensors) {
    writer.write(tensor.name, tensor.data);
  }
  writer.commit();
}

}  // namespace decodelab
