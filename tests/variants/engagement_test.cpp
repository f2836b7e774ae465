// Every variant's counters prove that it ran, and show it where its effect is taken away.
#include "bench/measure/engine_worker.h"
#include "tests/variants/arms.h"

#include <gtest/gtest.h>

namespace decodelab {
namespace {

using testing::small_config;
using testing::small_model;

CellRecord cell_of(const std::string& phase) {
  return {.phase = phase, .batch = 3, .length = 11, .dtype = "fp32", .device = "cpu", .threads = 1};
}

/// The probe of `label`, run by an engine that has `really` bound, greedily or with every row sampled.
Probe probe(const std::shared_ptr<const Model>& model, const std::string& label, const std::string& really,
            const std::string& phase, bool sampled = false) {
  const CellInput input{.sampling = {.sample = sampled, .top_k = sampled ? 5 : 0}};
  const auto worker = make_engine_worker(
      std::make_shared<const Engine>(model, bind_arm(parse_arm(really), reference_plan())), parse_arm(label), input);
  return worker->probe(cell_of(phase));
}

TEST(Engagement, EveryVariantIsProvedOnAndIsCaughtWhereItsEffectIsRemoved) {
  const auto model = small_model(small_config());
  for (const auto& [name, variant] : registered_variants()) {
    if (!variant.expects) {
      continue;  // the variant of new_variant_test.cpp, which has no effect
    }
    const std::string arm = "causal,+" + name;
    bool says_something = false;
    for (const bool sampled : {false, true}) {
      for (const std::string phase : {"prefill", "decode"}) {
        const std::string where = arm + " " + phase + (sampled ? " sampled" : "");
        const Probe on = probe(model, arm, arm, phase, sampled);
        EXPECT_NE(on.engaged, std::optional(false)) << where << ": " << on.missing;
        EXPECT_TRUE(on.unsteady.empty()) << where << ": " << on.unsteady.front();
        if (!on.engaged) {
          continue;
        }
        says_something = true;
        const Probe off = probe(model, arm, "causal", phase, sampled);
        EXPECT_EQ(off.engaged, std::optional(false)) << where;
        EXPECT_NE(off.missing.find(name + " did not run: "), std::string::npos) << off.missing;
      }
    }
    EXPECT_TRUE(says_something) << name;
  }
}

TEST(Engagement, ThePresetOfAllVariantsIsProvedInBothPhases) {
  const auto model = small_model(small_config());
  for (const std::string phase : {"prefill", "decode"}) {
    const Probe bigcode = probe(model, "bigcode", "bigcode", phase);
    EXPECT_EQ(bigcode.engaged, std::optional(true)) << bigcode.missing;
    EXPECT_EQ(probe(model, "causal", "causal", phase).engaged, std::nullopt) << "the reference has nothing to prove";
  }
}

}  // namespace
}  // namespace decodelab
