// Opens a checkpoint directory: one safetensors file, or the shards that its index names.
#include <set>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "base/json_text.h"
#include "base/text.h"
#include "engine/checkpoint/file_map.h"
#include "engine/checkpoint/safetensors.h"

namespace decodelab {
namespace {

constexpr std::uintmax_t kMaxIndexBytes = 100'000'000;  // As for a header; a real one has a few hundred kilobytes.
constexpr std::string_view kSingleFile = "model.safetensors";
constexpr std::string_view kIndexFile = "model.safetensors.index.json";

bool plain_file_name(std::string_view name) {
  return !name.empty() && name != "." && name.find("..") == std::string_view::npos &&
         name.find('/') == std::string_view::npos && name.find('\\') == std::string_view::npos &&
         name.find('\0') == std::string_view::npos;
}

// Says what is there instead: users pass checkpoints of older or other formats.
[[noreturn]] void refuse_directory(const std::filesystem::path& directory) {
  std::error_code error;
  if (!std::filesystem::is_directory(directory, error)) {
    throw std::invalid_argument(fmt::format("{}: expected a directory with config.json and {}, got {}",
                                            directory.string(), kSingleFile,
                                            std::filesystem::exists(directory, error) ? "a file" : "nothing there"));
  }
  std::string other;
  for (const auto& file : std::filesystem::directory_iterator(directory, error)) {
    const std::string name = file.path().filename().string();
    const std::string extension = file.path().extension().string();
    if (extension == ".gguf" || extension == ".bin" || extension == ".pt" || extension == ".pth") {
      other = name;
    }
  }
  throw std::invalid_argument(
      fmt::format("{}: expected {} or {}, got {}; convert the model once with transformers: "
                  "AutoModelForCausalLM.from_pretrained(...).save_pretrained(..., safe_serialization=True)",
                  directory.string(), kSingleFile, kIndexFile, other.empty() ? "neither" : "only " + in_quotes(other)));
}

}  // namespace

std::map<std::string, std::string> parse_safetensors_index(std::string_view text, const std::string& file_name) {
  const nlohmann::json index = parse_json_object(text, file_name);
  const auto weight_map = index.find("weight_map");
  if (weight_map == index.end() || !weight_map->is_object() || weight_map->empty()) {
    throw std::invalid_argument(
        fmt::format("{}: expected 'weight_map', an object from tensor names to file names, got {}", file_name,
                    weight_map == index.end() ? "none" : shown(*weight_map)));
  }
  std::map<std::string, std::string> files;
  for (const auto& [tensor, file] : weight_map->items()) {
    if (!file.is_string() || !plain_file_name(file.get_ref<const std::string&>())) {
      throw std::invalid_argument(
          fmt::format("{}: tensor {}: expected the name of a file beside the index, without '/' and '..', got {}",
                      file_name, in_quotes(tensor), shown(file)));
    }
    files.emplace(tensor, file.get<std::string>());
  }
  return files;
}

struct SafetensorsReader::Impl {
  std::vector<FileMap> maps;
  std::map<std::string, StoredTensor> tensors;
  std::map<std::string, std::string> file_of;  // The file of each tensor, for messages.

  void add(const std::filesystem::path& file) {
    FileMap map(file);
    for (auto& [name, tensor] : parse_safetensors(map.bytes(), file.string())) {
      const auto [known, added] = file_of.emplace(name, file.filename().string());
      if (!added) {
        throw std::invalid_argument(fmt::format("{}: tensor {} is in {} too; expected it in one shard", file.string(),
                                                in_quotes(name), in_quotes(known->second)));
      }
      tensors.emplace(name, std::move(tensor));
    }
    maps.push_back(std::move(map));
  }

  void add_shards(const std::filesystem::path& directory, const std::filesystem::path& index) {
    const auto files = parse_safetensors_index(read_text_file(index, kMaxIndexBytes), index.string());
    std::set<std::string> shards;
    for (const auto& [tensor, file] : files) {
      shards.insert(file);
    }
    for (const std::string& shard : shards) {
      std::error_code error;
      if (!std::filesystem::exists(directory / shard, error)) {
        throw std::invalid_argument(
            fmt::format("{}: expected the shard {} beside it, got none; the download is not complete", index.string(),
                        in_quotes(shard)));
      }
      add(directory / shard);
    }
    for (const auto& [tensor, file] : files) {
      const auto found = file_of.find(tensor);
      if (found == file_of.end() || found->second != file) {
        throw std::invalid_argument(
            fmt::format("{}: expected tensor {} in {}, got {}", index.string(), in_quotes(tensor), in_quotes(file),
                        found == file_of.end() ? "it nowhere" : "it in " + in_quotes(found->second)));
      }
    }
  }
};

SafetensorsReader::SafetensorsReader(const std::filesystem::path& directory) : impl_(std::make_unique<Impl>()) {
  std::error_code error;
  if (std::filesystem::exists(directory / kSingleFile, error)) {
    impl_->add(directory / kSingleFile);
  } else if (std::filesystem::exists(directory / kIndexFile, error)) {
    impl_->add_shards(directory, directory / kIndexFile);
  } else {
    refuse_directory(directory);
  }
}

SafetensorsReader::~SafetensorsReader() = default;
SafetensorsReader::SafetensorsReader(SafetensorsReader&&) noexcept = default;
SafetensorsReader& SafetensorsReader::operator=(SafetensorsReader&&) noexcept = default;

const std::map<std::string, StoredTensor>& SafetensorsReader::tensors() const { return impl_->tensors; }

}  // namespace decodelab
