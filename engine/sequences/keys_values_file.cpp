// Cuts layers into keys and values, and puts them together again.
#include "engine/sequences/keys_values_file.h"

#include <map>
#include <stdexcept>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "engine/checkpoint/file_map.h"
#include "engine/checkpoint/safetensors.h"
#include "engine/kernels/scalar_type.h"

namespace decodelab {
namespace {

/// Returns the tensor [B, L, width / 2] in the dtype and on the device of `file`.
at::Tensor read_one(const std::map<std::string, StoredTensor>& tensors, const std::string& name,
                    const std::string& file_name, const KeysValuesFile& file) {
  const auto found = tensors.find(name);
  if (found == tensors.end()) {
    throw std::invalid_argument(fmt::format("{}: expected the tensor '{}', and it is not among the {} tensors",
                                            file_name, name, tensors.size()));
  }
  const StoredTensor& stored = found->second;
  const std::vector<std::int64_t>& shape = stored.shape;
  if (shape.size() != 3 || shape[0] < 1 || shape[1] < 1 || shape[2] != file.width / 2) {
    throw std::invalid_argument(fmt::format("{}: '{}' is [{}]; expected [rows, tokens, {}], at least one of each",
                                            file_name, name, fmt::join(shape, ", "), file.width / 2));
  }
  at::Tensor host = at::empty(shape, scalar_type(stored.element_type(name)));
  std::memcpy(host.mutable_data_ptr(), stored.data.data(), stored.data.size());
  if (!host.isfinite().all().item<bool>()) {
    throw std::invalid_argument(
        fmt::format("{}: '{}' holds numbers that are not finite, which no attention survives", file_name, name));
  }
  return host.to(at::Device(file.device), scalar_type(file.dtype));
}

}  // namespace

void write_keys_values(const std::filesystem::path& path, const KeysValuesFile& file,
                       const std::vector<at::Tensor>& layers) {
  std::vector<at::Tensor> halves;
  std::vector<TensorToWrite> tensors;
  for (std::size_t layer = 0; layer < layers.size(); ++layer) {
    const at::Tensor host = layers[layer].cpu();
    const std::int64_t half = file.width / 2;
    for (const auto& [suffix, begin] : {std::pair{".keys", std::int64_t{0}}, std::pair{".values", half}}) {
      halves.push_back(host.narrow(2, begin, half).contiguous());
      tensors.push_back(
          {.name = file.names.at(layer) + suffix,
           .type = file.dtype,
           .shape = halves.back().sizes().vec(),
           .data = {static_cast<const std::byte*>(halves.back().const_data_ptr()), halves.back().nbytes()}});
    }
  }
  write_safetensors(path, tensors);
}

std::vector<at::Tensor> read_keys_values(const std::filesystem::path& path, const KeysValuesFile& file) {
  const std::string file_name = path.string();
  const FileMap map(path);
  const std::map<std::string, StoredTensor> tensors = parse_safetensors(map.bytes(), file_name);
  std::vector<at::Tensor> layers;
  for (const std::string& name : file.names) {
    const at::Tensor keys = read_one(tensors, name + ".keys", file_name, file);
    const at::Tensor values = read_one(tensors, name + ".values", file_name, file);
    if (keys.sizes() != values.sizes() || (!layers.empty() && keys.size(0) != layers.front().size(0))) {
      throw std::invalid_argument(
          fmt::format("{}: '{}' has keys of [{}] and values of [{}]; expected as many rows and tokens everywhere",
                      file_name, name, fmt::join(keys.sizes(), ", "), fmt::join(values.sizes(), ", ")));
    }
    layers.push_back(at::cat({keys, values}, 2));
  }
  return layers;
}

}  // namespace decodelab
