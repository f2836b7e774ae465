// Several completions of a prompt: how their rows begin.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "engine/prefix_store.h"

namespace decodelab {

/// Returns the seed of sample `index` of `samples` of a row with these parameters: its own where there is one sample,
/// else that of fork_seed(); none where it does not draw.
std::optional<std::uint64_t> sample_seed(const SamplingParameters& row, std::int64_t samples, std::int64_t index);

/// Returns what a prompt begins with of what the store holds. A store knows of the details of tokens their
/// log-probabilities alone; a prompt of which more is asked begins with nothing.
HeldPrefix prefix_for(PrefixStore& store, std::span<const std::int64_t> prompt, const DetailsRequest& details);

/// Returns a session that was fed `samples` rows of each prompt and has chosen nothing yet: row r is sample r % samples
/// of prompt r / samples, and gets the tokens that it would get alone under any plan with a generator for each row.
///
/// The plan's slot `fork` says whether each row prefills its prompt, or rows are forked from one prefill. Prompts begin
/// with what `prefixes` holds, and leave theirs there; null: they are fed whole. `options` are those of the prompts,
/// with a batch of as many. Throws what Session(), Session::prefill() and Session::fork() throw.
Session begin_samples(const Engine& engine, SessionOptions options, std::span<const std::vector<std::int64_t>> prompts,
                      std::int64_t samples, PrefixStore* prefixes = nullptr);

}  // namespace decodelab
