// What the examples share: an engine on the checkpoint of the command line, or on a small model of random weights.
#pragma once

#include <cstdint>
#include <iostream>
#include <vector>

#include "engine/checkpoint/synthetic_cache.h"
#include "engine/engine.h"
#include "variants/presets.h"

/// Token ids of each row.
using Rows = std::vector<std::vector<std::int64_t>>;

inline decodelab::Engine example_engine(int count, char** arguments) {
  using namespace decodelab;
  const auto directory =
      count > 1 ? std::filesystem::path(arguments[1])
                : materialize_synthetic("synthetic:tiny", ElementType::float32, 0, default_cache_directory(), {});
  return {Model::load(directory, ElementType::float32, "cpu"), preset_plan("native")};
}

inline void print(const std::vector<std::int64_t>& token_ids) {
  for (const std::int64_t id : token_ids) {
    std::cout << id << ' ';
  }
  std::cout << '\n';
}
