// Copied keys and values, in memory and as bytes.
#include <cstring>
#include <stdexcept>

#include <fmt/format.h>

#include "engine/checkpoint/kept_bytes.h"
#include "engine/engine.h"
#include "engine/engine_impl.h"
#include "engine/kernels/scalar_type.h"
#include "engine/sequences/keys_values_file.h"
#include "engine/tensor.h"

namespace decodelab {

FilledCache::FilledCache() : impl_(std::make_unique<Impl>()) {}
FilledCache::~FilledCache() = default;
FilledCache::FilledCache(FilledCache&&) noexcept = default;
FilledCache& FilledCache::operator=(FilledCache&&) noexcept = default;

std::int64_t FilledCache::bytes() const {
  std::int64_t total = impl_->pages.bytes();
  for (const at::Tensor& layer : impl_->layers) {
    total += static_cast<std::int64_t>(layer.nbytes());
  }
  return total;
}

FilledCache FilledCache::first(std::int64_t tokens) const {
  const c10::InferenceMode inference;
  FilledCache part;
  for (const at::Tensor& layer : impl_->layers) {
    part.impl_->layers.push_back(layer.narrow(1, 0, tokens));
  }
  part.impl_->pages = impl_->pages.part(0, tokens);
  return part;
}

FilledCache FilledCache::copy(std::int64_t begin, std::int64_t end) const {
  const c10::InferenceMode inference;
  FilledCache part;
  for (const at::Tensor& layer : impl_->layers) {
    part.impl_->layers.push_back(layer.narrow(1, begin, end - begin).clone());
  }
  part.impl_->pages = impl_->pages.part(begin, end);
  return part;
}

std::vector<std::byte> FilledCache::to_bytes() const {
  if (impl_->of_other_ranks) {
    throw std::logic_error("to_bytes() needs all keys and values, and other ranks hold some of these");
  }
  BytesWriter writer;
  for (const at::Tensor& layer : impl_->layers) {
    const at::Tensor host = layer.cpu().contiguous();
    writer.numbers(host.sizes());
    writer.bytes({static_cast<const std::byte*>(host.const_data_ptr()), host.nbytes()});
  }
  return writer.written();
}

FilledCache FilledCache::from_bytes(std::span<const std::byte> bytes, const Engine& engine) {
  const c10::InferenceMode inference;
  const ModelConfig& config = engine.model().config();
  const auto options = at::TensorOptions(scalar_type(engine.model().dtype()));
  FilledCache filled;
  try {
    BytesReader reader(bytes);
    while (!reader.at_end()) {
      const std::vector<std::int64_t> shape = reader.numbers();
      const std::span<const std::byte> data = reader.bytes();
      if (shape.size() != 3 || shape[0] < 1 || shape[1] < 1 || shape[2] != config.kv_width()) {
        throw std::out_of_range("another shape");
      }
      at::Tensor layer = at::empty(shape, options);
      if (layer.nbytes() != data.size()) {
        throw std::out_of_range("another dtype");
      }
      std::memcpy(layer.mutable_data_ptr(), data.data(), data.size());
      filled.impl_->layers.push_back(layer.to(at::Device(engine.model().device())));
    }
  } catch (const std::out_of_range&) {
    throw std::invalid_argument("these bytes are no filled cache of this model");
  }
  if (std::ssize(filled.impl_->layers) != (config.encoder ? 2 : 1) * config.layers) {
    throw std::invalid_argument("these bytes are a filled cache of another number of layers");
  }
  return filled;
}

namespace {

KeysValuesFile file_of(const Engine& engine) {
  const ModelConfig& config = engine.model().config();
  KeysValuesFile file{
      .names = {}, .width = config.kv_width(), .dtype = engine.model().dtype(), .device = engine.model().device()};
  for (const char* const kind : {"layers", "encoded"}) {
    for (std::int64_t layer = 0; layer < config.layers && (kind[0] == 'l' || config.encoder); ++layer) {
      file.names.push_back(fmt::format("{}.{}", kind, layer));
    }
  }
  return file;
}

}  // namespace

void FilledCache::to_file(const std::filesystem::path& file, const Engine& engine) const {
  const c10::InferenceMode inference;
  write_keys_values(file, file_of(engine), impl_->layers);
}

FilledCache FilledCache::from_file(const std::filesystem::path& file, const Engine& engine, std::int64_t batch_size) {
  const c10::InferenceMode inference;
  FilledCache filled;
  filled.impl_->layers = read_keys_values(file, file_of(engine));
  for (at::Tensor& layer : filled.impl_->layers) {
    if (layer.size(0) != 1 && layer.size(0) != batch_size) {
      throw std::invalid_argument(
          fmt::format("{}: holds {} rows; expected 1, for all, or {}", file.string(), layer.size(0), batch_size));
    }
    layer = layer.expand({batch_size, -1, -1});
  }
  return filled;
}

}  // namespace decodelab
