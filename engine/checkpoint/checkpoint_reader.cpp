// Tells the kinds of checkpoints apart.
#include "engine/checkpoint/checkpoint_reader.h"

#include <utility>

#include "engine/checkpoint/gguf_model.h"

namespace decodelab {

CheckpointReader::CheckpointReader(const std::filesystem::path& path, const ModelConfig& config)
    : reader_([&]() -> std::variant<SafetensorsReader, Gguf> {
        if (!std::filesystem::is_regular_file(path)) {
          return SafetensorsReader(path);
        }
        GgufReader reader(path);
        auto tensors = gguf_tensors(reader.file(), config);
        return Gguf{.reader = std::move(reader), .tensors = std::move(tensors)};
      }()) {}

const std::map<std::string, StoredTensor>& CheckpointReader::tensors() const {
  if (const auto* gguf = std::get_if<Gguf>(&reader_)) {
    return gguf->tensors;
  }
  return std::get<SafetensorsReader>(reader_).tensors();
}

}  // namespace decodelab
