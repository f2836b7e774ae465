// The list of variants, filled by one register_variant() statement per file.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/phase.h"
#include "engine/checkpoint/model_config.h"
#include "engine/checkpoint/safetensors.h"
#include "engine/plan.h"
#include "engine/sampling/token_details.h"

namespace decodelab {

/// A number, or a word, that an arm may set after a colon: `kv-grow:tokens=16`, `draft-model:draft=small`.
struct ParameterSpec {
  std::string name;
  std::int64_t default_value = 0;
  std::int64_t minimum = 1;
  std::int64_t maximum = 0;
  std::string help;  ///< A noun phrase with the unit.
  /// What it is where no arm sets it, if it is a word; else it is a number, and the three above say which.
  std::optional<std::string> default_word{};
};

/// Describes where a variant is to run.
struct RunsOn {
  const ModelConfig& config;
  ElementType dtype;
  std::string device;
  /// The models that may guess, by name; null: there are none.
  const std::map<std::string, ModelConfig>* drafts = nullptr;
  /// The arm's own plan: what else is bound. Filled in by unsupported_reason().
  const EnginePlan* plan = nullptr;
};

/// Describes the counted steps, from which a variant derives the counters that it expects.
struct CountedSteps {
  const ModelConfig& config;
  const EnginePlan& plan;  ///< What else is bound.
  ElementType dtype;
  Phase phase;
  std::string device;
  std::int64_t batch_size = 0;  ///< Rows of the same length.
  std::int64_t length = 0;      ///< Prompt tokens, or keys held before the first decode step.
  std::int64_t steps = 0;
  bool sampled = false;       ///< Every row draws its tokens at random; else every row is greedy.
  double typical_p = 1;       ///< Of the sampled rows.
  bool chosen = true;         ///< Tokens were chosen; else the steps computed logits only.
  std::int64_t samples = 1;   ///< Rows of each prompt; `batch_size` counts prompts.
  std::int64_t requests = 0;  ///< Phase batching: requests of each step, at `batch_size` rows of a batch.
  bool at_once = false;       ///< Phase batching: all requests of a step come at its beginning.
  bool masked = false;        ///< A pattern says which tokens may come in each row.
  DetailsRequest details{};   ///< That each row asks for.
  std::int64_t tokens = 0;    ///< Phase continue: of each row in a step.
  /// Tokens at the beginning of each prompt that a prefix store holds; empty: there is no store.
  std::optional<std::int64_t> stored_tokens{};
};

/// Names a counter (StepCounters lists the names) and the value, summed over the counted steps, that it has if the
/// variant ran. Without a value the variant itself raises the counter by an unknown number, so that what other variants
/// of the arm expect of that counter does not hold.
struct Expectation {
  std::string counter;
  std::optional<std::int64_t> value;
  bool or_more = false;  ///< The value is the least that the counter has.
};

/// How near the outputs of a variant's steps are to the reference's.
struct Fidelity {
  /// 0: exact, with the tokens of the reference in fp32, and its logits within rounding. Else lossy: it computes
  /// something else on purpose, such as products by rounded weights, and this is the most that a logit may be off by,
  /// of the largest of its row, without being wrong.
  double logit_bound = 0;
  /// What is added to the reference that it is held to, as in an arm: `+rounded-linear:of=int4-linear` for products by
  /// rounded weights, whose kernels then have a bound of their own, and not that of the rounding. Empty: the reference.
  std::string held_to{};

  bool exact() const { return logit_bound == 0; }
};

/// Describes one optimization.
struct Variant {
  std::string name;
  std::string summary;  ///< One sentence.
  std::string source;   ///< Where the idea comes from.
  std::vector<ParameterSpec> parameters;
  /// Names of the variants that this one needs; where alternatives would do, one choice of them.
  std::vector<std::string> needs;
  /// Returns the counters that prove that the variant ran, with values that the reference would not have; none where
  /// the variant has nothing to do.
  std::function<std::vector<Expectation>(const CountedSteps&, const Parameters&)> expects;
  /// Returns why the variant cannot run there, in one sentence; empty if it can. Without a function it can run
  /// anywhere.
  std::function<std::string(const RunsOn&)> unsupported;
  /// Returns why the variant cannot be combined with what else the arm has bound, wherever it runs: one sentence that
  /// names both; empty if it can. Without a function it can be combined with anything.
  std::function<std::string(const EnginePlan&)> conflict;
  /// Binds the variant's slots.
  std::function<void(EnginePlan&, const Parameters&)> apply;
  Fidelity fidelity = {};
};

/// Adds a variant to the list and returns true, so that a namespace-scope constant can call it. Throws std::logic_error
/// for a second variant of the same name, for one without apply, and for a name that is not kebab-case.
bool register_variant(Variant variant);

/// Returns all variants, by name.
const std::map<std::string, Variant>& registered_variants();

/// Returns the smallest arm that has a variant, as one shell word: `causal,+name`, with what the variant needs;
/// `parameters` follow the name.
std::string smallest_arm(const Variant& variant, const std::string& parameters = "");

/// Returns the slots that a variant binds with its default parameters.
std::vector<std::string> slots_bound_by(const Variant& variant);

/// Returns `variant`'s parameters: the given ones checked against their limits, the others at their defaults. Throws
/// std::invalid_argument for an unknown name, a value outside of its limits, and a word for a number.
Parameters complete_parameters(const Variant& variant, const ParameterValues& given);

}  // namespace decodelab
