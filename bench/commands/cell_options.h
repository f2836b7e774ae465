// The flags that say which cells are measured, the same for every command that measures.
#pragma once

#include <optional>
#include <string>

#include <CLI/CLI.hpp>

#include "bench/plan/sweep_plan.h"

namespace decodelab {

/// Lists as typed, until complete_cells() has read them.
struct CellOptions {
  std::string phases = "prefill,decode";
  std::string batches = "1";
  std::string lengths = "128";
  std::string affinity{};
  std::string scope = "step";
  std::string token_visible = "each";
  bool at_length = false;
  std::optional<double> slice_ms{};
  std::vector<std::string> drafts{};
  std::string prompt_file{};
  bool quality = false;
  std::string quality_text{};
  std::string quality_limit{};
  std::string request_rates = "inf";
  std::string goodput{};
};

/// Adds --model, --phase, --batch, --length, --dtype, --device, --threads, --affinity, --no-pin, --blocks, --seed,
/// --max-tokens, --samples, --request-rate, --goodput, --prompts, --quality, --quality-text, --quality-limit, --draft,
/// --fill, --scope, --at-length, --token-visible, --slice, --worker-timeout, --name, and those of sampling. Both must
/// live as long as the command.
void add_cell_options(CLI::App& command, CellOptions& options, SweepRequest& request);

/// Reads the lists, binds this process and those that it starts to the cores, finds the device and the number of
/// threads, reads the prompts, and notes the command line. Throws std::invalid_argument that names the flag,
/// AbsentDevice for a valid name of a device that is not there.
void complete_cells(const CellOptions& options, SweepRequest& request);

}  // namespace decodelab
