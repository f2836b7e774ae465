// The arms that stand for every registered variant: alone on the reference, with default and with extreme parameters.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "bench/plan/arm.h"
#include "engine/engine.h"
#include "engine/generation.h"
#include "engine/ranks/rank_memory.h"
#include "engine/sequences/proposer.h"
#include "tests/engine/test_model.h"

namespace decodelab::testing {

/// The smallest arm of every exact variant, and again with each parameter at its minimum and at a large value.
inline std::vector<std::string> arms_of_every_variant() {
  std::vector<std::string> arms;
  for (const auto& [name, variant] : registered_variants()) {
    if (!variant.fidelity.exact()) {
      continue;
    }
    arms.push_back(smallest_arm(variant));
    for (const ParameterSpec& parameter : variant.parameters) {
      if (parameter.default_word) {
        continue;  // What it may name differs from one variant to the next.
      }
      for (const std::int64_t value : {parameter.minimum, std::min<std::int64_t>(parameter.maximum, 37)}) {
        arms.push_back(smallest_arm(variant, ":" + parameter.name + "=" + std::to_string(value)));
      }
    }
  }
  return arms;
}

/// Each lossy variant alone, and in place of native's exact products.
inline std::vector<std::string> lossy_arms() {
  std::vector<std::string> arms;
  for (const auto& [name, variant] : registered_variants()) {
    if (!variant.fidelity.exact()) {
      arms.push_back(smallest_arm(variant));
      arms.push_back("native,-packed-linear,+" + name);
    }
  }
  return arms;
}

/// A rank of a process of its own, in a thread: it knows of the memory only what a process knows.
inline RankLauncher ranks_in_threads(const std::string& arm, const std::shared_ptr<const Model>& model) {
  class Rank final : public RankElsewhere {
   public:
    explicit Rank(std::thread thread) : thread_(std::move(thread)) {}
    ~Rank() override { thread_.join(); }
    void look() override {}

   private:
    std::thread thread_;
  };
  return [arm, model](const RankStart& start) -> std::unique_ptr<RankElsewhere> {
    return std::make_unique<Rank>(
        std::thread([arm, model, start, memory = std::make_shared<RankMemory>(start.memory_descriptor, start.rank)] {
          try {
            Engine::run_rank(start.first_layers > 0 ? model->first_layers(start.first_layers) : model,
                             bind_arm(parse_arm(arm), reference_plan()), *memory);
          } catch (const std::exception&) {  // The first rank knows it.
          }
        }));
  };
}

/// Where the arm wants a draft, the model guesses for itself.
inline Engine engine_for(const std::string& arm, const std::shared_ptr<const Model>& model) {
  Draft itself(model);
  itself.apart = [model](std::int64_t rows, std::int64_t max_tokens, std::int64_t most) {
    // A process of its own has an engine of its own.
    static std::map<const Model*, std::shared_ptr<const Engine>> engines;
    std::shared_ptr<const Engine>& engine = engines[model.get()];
    if (engine == nullptr) {
      engine = std::make_shared<const Engine>(model, reference_plan());
    }
    const std::string guesses = "causal,+draft-model:draft=self:tokens=" + std::to_string(most);
    return bind_arm(parse_arm(guesses), reference_plan())
        .proposer.value()
        .make({.rows = rows,
               .max_tokens = max_tokens,
               .draft = engine.get(),
               .sampling = std::vector<SamplingParameters>(static_cast<std::size_t>(rows))});
  };
  return Engine(model, bind_arm(parse_arm(arm), reference_plan()), {{"itself", itself}}, ranks_in_threads(arm, model));
}

/// Logits of `steps` steps after the ragged prompts, each step fed `forced` where there are tokens.
inline std::vector<std::vector<float>> forced_logits(const Engine& engine, const std::vector<Completion>& forced,
                                                     std::int64_t steps) {
  Session session(engine, {.batch_size = 4, .max_tokens = 40, .details = {}});
  session.prefill(ragged_prompts());
  std::vector<std::vector<float>> logits{session.last_logits()};
  for (std::int64_t step = 0; step < steps; ++step) {
    std::vector<std::int64_t> tokens;
    for (const Completion& completion : forced) {
      tokens.push_back(completion.token_ids[static_cast<std::size_t>(step)]);
    }
    session.force_tokens(tokens);
    session.decode();
    logits.push_back(session.last_logits());
  }
  return logits;
}

}  // namespace decodelab::testing
