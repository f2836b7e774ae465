// Keeps models made from a seed on disk, so that each is made once per machine.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string_view>

#include "engine/checkpoint/safetensors.h"

namespace decodelab {

/// Returns $DECODELAB_CACHE, else $XDG_CACHE_HOME/decodelab, else ~/.cache/decodelab; the directory may not exist yet.
///
/// Throws std::invalid_argument when none of DECODELAB_CACHE, XDG_CACHE_HOME and HOME is set.
std::filesystem::path default_cache_directory();

/// Throws std::runtime_error with the numbers when the file system of `directory`, which must exist, has less than
/// `bytes` free.
void require_free_bytes(const std::filesystem::path& directory, std::uintmax_t bytes);

/// Called on the caller's thread with the bytes of a model's data that are written so far; an exception that it throws
/// ends the work and reaches the caller.
using MaterializeProgress = std::function<void(std::int64_t done_bytes, std::int64_t total_bytes)>;

/// Returns the checkpoint directory that `name` (synthetic:tiny, ...), a type and a seed stand for: config.json and
/// model.safetensors.
///
/// The directory is `cache_directory`/synthetic-tiny-bf16-seed0-v1 and is made if it does not exist yet, in a temporary
/// directory that is renamed at the end: several processes may ask for the same one at once. Two threads fill it and
/// use less than 50 MB of memory. Throws std::invalid_argument for an unknown name, std::runtime_error when the disk
/// has too little room or the directory exists but is damaged. `progress` may be empty.
std::filesystem::path materialize_synthetic(std::string_view name, ElementType type, std::uint64_t seed,
                                            const std::filesystem::path& cache_directory,
                                            const MaterializeProgress& progress);

}  // namespace decodelab
