// Fills in what a variant that shares a model among ranks does not say of itself.
#include "variants/communicator/ranks_variant.h"

#include <string>
#include <utility>
#include <vector>

#include "engine/checkpoint/rank_part.h"

namespace decodelab {
namespace {

std::string reason_against_ranks_there(const RunsOn& where) {
  if (where.device != "cpu") {
    return "ranks exchange what they compute in the memory of the host: use --device cpu, or nccl-ranks";
  }
  return where.plan == nullptr ? "" : reason_against_ranks(where.config, where.plan->communicator.value().ranks);
}

/// Returns the sums over ranks that a pass through the layers of the decoder takes.
std::int64_t sums_of_pass(const ModelConfig& config) {
  const std::int64_t of_layer = config.parallel_residual ? 1 : config.encoder ? 3 : 2;
  return config.layers * of_layer;
}

std::vector<Expectation> expected_sums(const CountedSteps& counted, const Parameters&) {
  if (counted.phase != Phase::prefill && counted.phase != Phase::decode) {
    return {{"all_reduces", sums_of_pass(counted.config), true}};
  }
  const bool encodes = counted.config.encoder && counted.phase == Phase::prefill;
  const std::int64_t of_step = sums_of_pass(counted.config) + (encodes ? 2 * counted.config.encoder->layers : 0);
  return {{"all_reduces", counted.steps * of_step}};
}

/// Returns why the plan's sessions could not be followed by other ranks.
std::string ranks_conflict(const std::string& name, const EnginePlan& plan) {
  const std::string& growth = plan.kv_growth.variant();
  if (growth == "no-cache") {
    return name + " and no-cache: ranks share keys and values, and no-cache keeps none";
  }
  if (plan.step_runner.variant() == "cuda-graph") {
    return name + " and cuda-graph: the first rank's host tells the others of each step, which no graph does";
  }
  if (plan.linear.variant() == "stored-linear") {
    return name + " and stored-linear: a rank's part of a matrix is no whole number of the file's blocks";
  }
  return "";
}

}  // namespace

bool register_ranks_variant(Variant variant, const CommunicatorRule& rule) {
  const std::string name = variant.name;
  variant.parameters = {
      {.name = "ranks", .default_value = 2, .minimum = 2, .maximum = 64, .help = "ranks that share the model"}};
  variant.expects = expected_sums;
  if (!variant.unsupported) {
    variant.unsupported = reason_against_ranks_there;
  }
  variant.conflict = [name](const EnginePlan& plan) { return ranks_conflict(name, plan); };
  variant.apply = [name, rule](EnginePlan& plan, const Parameters& parameters) {
    CommunicatorRule bound = rule;
    bound.ranks = parameters.integer("ranks");
    plan.communicator.bind(name, bound);
  };
  return register_variant(std::move(variant));
}

}  // namespace decodelab
