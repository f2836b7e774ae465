// A choice of all rows at once, as variants share it.
#pragma once

#include <memory>
#include <vector>

#include "engine/sampling/token_choice.h"
#include "variants/registry.h"
#include "variants/token_choice/batch_warpers.h"

namespace decodelab {

/// Chooses with one reduction and one read-back, in sampled rows after one pass of each warper.
std::unique_ptr<TokenChoice> make_vectorized_choice(const ChoiceOptions& options, KeepTypical keep_typical);

/// Returns the counters that prove that this choice ran.
std::vector<Expectation> expected_of_vectorized_choice(const CountedSteps& counted);

}  // namespace decodelab
