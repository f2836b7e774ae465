// Our own attention over the cache, for decode steps and for passes that verify guesses.
#pragma once

#include <memory>
#include <string>

#include "engine/layers/attention.h"
#include "variants/registry.h"

namespace decodelab {

/// Makes attention of few tokens a row, each with the bits that it has alone. `variant` is named in errors.
std::unique_ptr<Attention> make_split_kv_attention(const AttentionShape& shape, const std::string& variant);

/// Returns why it cannot run, in one sentence; empty if it can.
std::string split_kv_unsupported(const RunsOn& where);

}  // namespace decodelab
