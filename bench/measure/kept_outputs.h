// The reference's outputs of cells, kept in the cache folder: a run of the same build on the same weights needs no
// reference.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "bench/measure/verification.h"
#include "engine/checkpoint/kept_bytes.h"
#include "reports/store/record.h"

namespace decodelab {

/// Returns a key that names everything that the results of an engine of this program on a checkpoint depend on: the
/// program's file, the build, the machine, the content of the weights, and the seed of prompts and random keys. Throws
/// std::invalid_argument where there are no weights.
std::string computed_by(const BuildRecord& build, const std::filesystem::path& checkpoint, std::int64_t seed,
                        const std::filesystem::path& cache_directory);

class KeptOutputs {
 public:
  /// `key` is that of computed_by().
  KeptOutputs(KeptBytes bytes, std::string key) : bytes_(std::move(bytes)), key_(std::move(key)) {}

  /// Returns the kept tokens and logits of `steps` steps of the cell under a request, as it stands in the labels of
  /// arms; nothing where they are absent or damaged.
  std::optional<OutputTrace> find(const CellRecord& cell, const std::string& request, std::int64_t steps) const;
  void keep(const CellRecord& cell, const std::string& request, std::int64_t steps, const OutputTrace& trace) const;

 private:
  std::string key_of(const CellRecord& cell, const std::string& request, std::int64_t steps) const;

  KeptBytes bytes_;
  std::string key_;
};

}  // namespace decodelab
