// The list of variants, filled by one register_variant() statement a file.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/checkpoint/model_config.h"
#include "engine/checkpoint/safetensors.h"
#include "engine/plan.h"

namespace decodelab {

/// A number that an arm may set after a colon: `kv-grow:tokens=16`.
struct ParameterSpec {
  std::string name;
  std::int64_t default_value = 0;
  std::int64_t minimum = 1;
  std::int64_t maximum = 0;
  std::string help;  ///< A noun phrase with the unit.
};

/// What a variant is asked to run on.
struct RunsOn {
  const ModelConfig& config;
  ElementType dtype;
  std::string device;
  /// What else is bound. Of an arm's own plan; unsupported_reason() fills it in.
  const EnginePlan* plan = nullptr;
};

/// What was counted, as a variant sees it when it says what must have been counted.
struct CountedSteps {
  const ModelConfig& config;
  const EnginePlan& plan;  ///< What else is bound.
  ElementType dtype;
  std::string phase;  ///< prefill or decode.
  std::string device;
  std::int64_t batch_size = 0;  ///< Rows of the same length.
  std::int64_t length = 0;      ///< Prompt tokens, or keys held before the first decode step.
  std::int64_t steps = 0;
  bool sampled = false;  ///< Every row draws its tokens at random; else every row is greedy.
  bool chosen = true;    ///< Tokens were chosen; else logits are all that the steps gave.
};

/// A counter (StepCounters lists the names) and the value that it has if the variant ran, summed over the counted
/// steps. Without a value the variant counts there itself, an unknown number: what others of the arm expect of that
/// counter does not hold.
struct Expectation {
  std::string counter;
  std::optional<std::int64_t> value;
};

/// One optimization.
struct Variant {
  std::string name;
  std::string summary;  ///< One sentence.
  std::string source;   ///< Where the idea comes from.
  std::vector<ParameterSpec> parameters;
  /// Variants that it cannot stand without; one choice of them, where there are several.
  std::vector<std::string> needs;
  /// The counters that prove that the variant ran, and that the reference would not have; none where it has nothing to
  /// do.
  std::function<std::vector<Expectation>(const CountedSteps&, const Parameters&)> expects;
  /// Why the variant cannot run there, in one sentence; empty: it can. No function: it can anywhere.
  std::function<std::string(const RunsOn&)> unsupported;
  /// Why the variant cannot stand beside what else the arm has bound, wherever it runs: one sentence that names both;
  /// empty: it can. No function: it can beside anything.
  std::function<std::string(const EnginePlan&)> conflict;
  /// Binds the variant's slots.
  std::function<void(EnginePlan&, const Parameters&)> apply;
};

/// Adds a variant to the list and returns true, so that a namespace-scope constant can call it. Throws std::logic_error
/// for a second variant of the same name, for one without apply, and for a name that is not kebab-case.
bool register_variant(Variant variant);

/// All variants, by name.
const std::map<std::string, Variant>& registered_variants();

/// The smallest arm that has a variant, as one shell word: `causal,+name`, with what the variant needs; `parameters`
/// come after the name.
std::string smallest_arm(const Variant& variant, const std::string& parameters = "");

/// The slots that a variant binds with its default parameters.
std::vector<std::string> slots_bound_by(const Variant& variant);

/// `variant`'s parameters: the given ones checked against their limits, the others at their defaults.
/// Throws std::invalid_argument for an unknown name or a value outside of its limits.
Parameters complete_parameters(const Variant& variant, const std::map<std::string, std::int64_t>& given);

}  // namespace decodelab
