// Keeps models made from a seed on disk, so that each is made once per machine.
#include "engine/checkpoint/synthetic_cache.h"

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <fstream>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/text.h"
#include "engine/checkpoint/element_conversion.h"
#include "engine/checkpoint/model_config.h"
#include "engine/checkpoint/safetensors_writer.h"
#include "engine/checkpoint/synthetic.h"

namespace decodelab {
namespace {

constexpr std::int64_t kChunkElements = std::int64_t{1}
                                        << 20;  // 4 MB of fp32 per thread: fit into the second-level cache, or nearly.
constexpr int kThreads = 2;                     // One fills while the other writes; more would wait for the disk.
constexpr std::uintmax_t kSpareBytes = std::uintmax_t{64}
                                       << 20;  // Left free on the disk for the header, config.json and other files.
constexpr int kLayoutVersion = 1;              // Version of the generator and the files; part of the directory name.

const char* short_name(ElementType type) {
  switch (type) {
    case ElementType::float32: return "fp32";
    case ElementType::float16: return "fp16";
    case ElementType::bfloat16: break;
  }
  return "bf16";
}

// A directory that is removed unless it was renamed.
class TemporaryDirectory {
 public:
  TemporaryDirectory(const std::filesystem::path& parent, const std::string& name) {
    std::string pattern = (parent / ("." + name + ".tmp-XXXXXX")).string();
    if (::mkdtemp(pattern.data()) == nullptr) {
      throw std::runtime_error(fmt::format("{}: cannot be created: {}; set DECODELAB_CACHE to another place", pattern,
                                           std::strerror(errno)));
    }
    path_ = pattern;
  }
  ~TemporaryDirectory() {
    std::error_code ignored;
    if (!path_.empty()) {
      std::filesystem::remove_all(path_, ignored);
    }
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  const std::filesystem::path& path() const { return path_; }

  // Returns false when another process put a directory there first.
  bool rename_to(const std::filesystem::path& target) {
    std::error_code error;
    std::filesystem::permissions(path_, std::filesystem::perms(0755),
                                 error);  // mkdtemp gives 0700; a cache may be shared.
    std::filesystem::rename(path_, target, error);
    if (!error) {
      path_.clear();
      return true;
    }
    if (std::filesystem::is_directory(target)) {
      return false;
    }
    throw std::runtime_error(fmt::format("{}: cannot be put in place: {}", target.string(), error.message()));
  }

 private:
  std::filesystem::path path_;
};

// A run of elements of one weight.
struct Chunk {
  const WeightSpec* weight;
  std::int64_t first;
  std::int64_t count;
};

std::vector<Chunk> chunks_of(const std::vector<WeightSpec>& weights) {
  std::vector<Chunk> chunks;
  for (const WeightSpec& weight : weights) {
    std::int64_t elements = 1;
    for (const std::int64_t dimension : weight.shape) {
      elements *= dimension;
    }
    for (std::int64_t first = 0; first < elements; first += kChunkElements) {
      chunks.push_back({.weight = &weight, .first = first, .count = std::min(kChunkElements, elements - first)});
    }
  }
  return chunks;
}

// Hands the chunks of one file to several threads, and collects what came of them.
class ChunkQueue {
 public:
  ChunkQueue(std::vector<Chunk> chunks, int threads) : chunks_(std::move(chunks)), running_(threads) {}

  const Chunk* take() {
    const std::lock_guard lock(mutex_);
    return failure_ == nullptr && next_ < chunks_.size() ? &chunks_[next_++] : nullptr;
  }
  void add_done(std::int64_t bytes) {
    const std::lock_guard lock(mutex_);
    done_bytes_ += bytes;
    changed_.notify_one();
  }
  // Every thread calls this once, with the exception that ended it or none.
  void leave(std::exception_ptr failure) {
    const std::lock_guard lock(mutex_);
    if (failure_ == nullptr) {
      failure_ = std::move(failure);
    }
    --running_;
    changed_.notify_one();
  }
  // Waits until more than `reported` bytes are done or all threads have left; returns the bytes done now.
  std::int64_t wait_beyond(std::int64_t reported, bool& finished) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return done_bytes_ > reported || running_ == 0; });
    finished = running_ == 0;
    return done_bytes_;
  }
  void rethrow() const {
    if (failure_ != nullptr) {
      std::rethrow_exception(failure_);
    }
  }

 private:
  std::vector<Chunk> chunks_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t next_ = 0;
  std::int64_t done_bytes_ = 0;
  int running_;
  std::exception_ptr failure_;
};

void fill_chunks(const std::stop_token& stop, ChunkQueue& queue, SafetensorsWriter& writer, ElementType type,
                 std::uint64_t seed) {
  std::exception_ptr failure;
  try {
    std::vector<float> values(kChunkElements);
    std::vector<std::byte> bytes(kChunkElements * element_bytes(type));
    const auto width = static_cast<std::int64_t>(element_bytes(type));
    for (const Chunk* chunk = queue.take(); chunk != nullptr && !stop.stop_requested(); chunk = queue.take()) {
      const auto count = static_cast<std::size_t>(chunk->count);
      const auto [mean, half_width] = synthetic_distribution(*chunk->weight);
      const auto part = std::span(bytes).first(count * element_bytes(type));
      fill_synthetic(std::span(values).first(count), seed, chunk->weight->name, chunk->first, mean, half_width);
      convert_elements(std::span(values).first(count), type, part);
      writer.write_part(chunk->weight->name, chunk->first * width, part);
      queue.add_done(chunk->count * width);
    }
  } catch (...) {
    failure = std::current_exception();
  }
  queue.leave(failure);
}

void write_weights(const std::filesystem::path& file, const ModelConfig& config, ElementType type, std::uint64_t seed,
                   const MaterializeProgress& progress) {
  const std::vector<WeightSpec> weights = weight_specs(config);
  const std::int64_t total_bytes = parameter_count(config) * static_cast<std::int64_t>(element_bytes(type));
  std::vector<TensorToDeclare> tensors;
  for (const WeightSpec& weight : weights) {
    tensors.push_back({.name = weight.name, .type = type, .shape = weight.shape});
  }
  SafetensorsWriter writer(file, tensors);
  ChunkQueue queue(chunks_of(weights), kThreads);
  {
    std::vector<std::jthread> threads;  // Their destructors stop and join them, also when `progress` throws.
    for (int i = 0; i < kThreads; ++i) {
      threads.emplace_back([&](const std::stop_token& stop) { fill_chunks(stop, queue, writer, type, seed); });
    }
    std::int64_t done_bytes = 0;
    for (bool finished = false; !finished;) {
      done_bytes = queue.wait_beyond(done_bytes, finished);
      if (progress) {
        progress(done_bytes, total_bytes);
      }
    }
  }
  queue.rethrow();
  writer.commit();
}

void write_config(const std::filesystem::path& file, const ModelConfig& config) {
  std::ofstream stream(file, std::ios::binary);
  stream << config_json(config);
  if (!stream.flush()) {
    throw std::runtime_error(fmt::format("{}: cannot be written", file.string()));
  }
}

// Checks that the cache holds the right shapes in a file of the right length. The values are not read.
void check_cached(const std::filesystem::path& directory, const ModelConfig& config, ElementType type) {
  try {
    load_model_config(directory);
    const SafetensorsReader reader(directory);
    for (const WeightSpec& weight : weight_specs(config)) {
      const auto found = reader.tensors().find(weight.name);
      if (found == reader.tensors().end() || found->second.shape != weight.shape ||
          found->second.dtype != safetensors_name(type)) {
        throw std::invalid_argument(
            fmt::format("tensor {} is missing or has another shape or type", in_quotes(weight.name)));
      }
    }
  } catch (const std::invalid_argument& error) {
    throw std::runtime_error(fmt::format("{}: the cached model is damaged ({}); delete the directory and try again",
                                         directory.string(), error.what()));
  }
}

}  // namespace

std::filesystem::path default_cache_directory() {
  const auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return std::filesystem::path(value == nullptr ? "" : value);
  };
  if (const auto cache = variable("DECODELAB_CACHE"); !cache.empty()) {
    return cache;
  }
  if (const auto cache = variable("XDG_CACHE_HOME");
      cache.is_absolute()) {  // The XDG specification asks to ignore relative ones.
    return cache / "decodelab";
  }
  if (const auto home = variable("HOME"); !home.empty()) {
    return home / ".cache" / "decodelab";
  }
  throw std::invalid_argument("expected a place for cached models, got none: set DECODELAB_CACHE to a directory");
}

void require_free_bytes(const std::filesystem::path& directory, std::uintmax_t bytes) {
  std::error_code error;
  const auto space = std::filesystem::space(directory, error);
  if (error) {
    throw std::runtime_error(
        fmt::format("{}: its free space is not to be had: {}", directory.string(), error.message()));
  }
  if (space.available < bytes) {
    throw std::runtime_error(
        fmt::format("{}: expected {} bytes free, got {}; free {} bytes or set DECODELAB_CACHE to another disk",
                    directory.string(), bytes, space.available, bytes - space.available));
  }
}

std::filesystem::path materialize_synthetic(std::string_view name, ElementType type, std::uint64_t seed,
                                            const std::filesystem::path& cache_directory,
                                            const MaterializeProgress& progress) {
  const auto config = synthetic_config(name);
  if (!config.has_value()) {
    throw std::invalid_argument(
        fmt::format("expected a synthetic model ({}), got {}", fmt::join(synthetic_names(), ", "), in_quotes(name)));
  }
  std::string directory_name = fmt::format("{}-{}-seed{}-v{}", name, short_name(type), seed, kLayoutVersion);
  std::ranges::replace(directory_name, ':', '-');
  const std::filesystem::path directory = cache_directory / directory_name;
  if (!std::filesystem::exists(directory)) {
    std::error_code error;
    std::filesystem::create_directories(cache_directory, error);
    if (error) {
      throw std::runtime_error(fmt::format("{}: cannot be created: {}; set DECODELAB_CACHE to another place",
                                           cache_directory.string(), error.message()));
    }
    require_free_bytes(cache_directory,
                       static_cast<std::uintmax_t>(parameter_count(*config)) * element_bytes(type) + kSpareBytes);
    TemporaryDirectory temporary(cache_directory, directory_name);
    write_weights(temporary.path() / "model.safetensors", *config, type, seed, progress);
    write_config(temporary.path() / "config.json", *config);
    if (temporary.rename_to(directory)) {
      return directory;
    }
  }
  check_cached(directory, *config, type);
  return directory;
}

}  // namespace decodelab
