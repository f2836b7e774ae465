// `decodelab generate --prompts`: requests that join a batch as others end.
#pragma once

#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "bench/commands/commands.h"
#include "bench/commands/generate_options.h"
#include "bench/plan/prompt_file.h"
#include "engine/batching.h"
#include "engine/checkpoint/model_text.h"

namespace decodelab {

/// Completes the requests of the lines, each with its own settings, and writes each as it ends: with `-o jsonl` an
/// object a line with its `index`, with `-o text` in the order of the lines; with `-o json` all at the end, in
/// `document`. A line that cannot run gets an error in its place, the others complete, and the result is
/// ExitCode::usage.
ExitCode generate_batch(const GenerateOptions& options, const Engine& engine, const ModelText& text,
                        const std::vector<PromptLine>& lines, const BatchingOptions& batching,
                        nlohmann::ordered_json document);

}  // namespace decodelab
