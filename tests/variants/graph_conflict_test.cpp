// Recorded steps say in one sentence what they cannot stand beside.
#include "variants/step_runner/graph_conflict.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "engine/plan.h"

namespace decodelab {
namespace {

/// A plan with these variants bound, to nothing.
EnginePlan plan_with(const std::string& forward, const std::string& growth = "", const std::string& attention = "",
                     const std::string& padding = "") {
  EnginePlan plan;
  const auto bind = [](auto& slot, const std::string& variant) {
    if (!variant.empty()) {
      slot.bind(variant, {});
    }
  };
  bind(plan.workspace, forward);
  bind(plan.kv_growth, growth);
  bind(plan.decode_attention, attention);
  bind(plan.key_padding, padding);
  return plan;
}

TEST(GraphConflict, AcceptsWhatStaysWhereItIs) {
  for (const char* growth : {"kv-static", "kv-preallocated"}) {
    for (const char* attention : {"", "split-kv-decode"}) {
      EXPECT_EQ(graph_conflict("cuda-graph", GraphScope::whole_step, plan_with("workspace-forward", growth, attention)),
                "");
    }
  }
  EXPECT_EQ(graph_conflict("cuda-graph-partial", GraphScope::around_attention,
                           plan_with("workspace-forward", "kv-grow", "flash-decode", "padded-keys")),
            "")
      << "attention and cache are outside of the graphs";
}

TEST(GraphConflict, NamesBothSidesInOneSentence) {
  struct Case {
    EnginePlan plan;
    GraphScope scope;
    std::vector<std::string> words;
  };
  const std::vector<Case> cases{
      {plan_with("", "kv-static"), GraphScope::whole_step, {"reference's forward", "add workspace-forward"}},
      {plan_with("lean-forward", "kv-static"), GraphScope::whole_step, {"lean-forward", "add workspace-forward"}},
      {plan_with("lean-forward"), GraphScope::around_attention, {"lean-forward", "add workspace-forward"}},
      {plan_with("workspace-forward"), GraphScope::whole_step, {"concatenated cache", "add kv-static"}},
      {plan_with("workspace-forward", "kv-grow"), GraphScope::whole_step, {"kv-grow", "add kv-static"}},
      {plan_with("workspace-forward", "kv-static", "flash-decode"),
       GraphScope::whole_step,
       {"flash-decode", "depend on the key length"}},
      {plan_with("workspace-forward", "kv-static", "cudnn-decode"),
       GraphScope::whole_step,
       {"cudnn-decode", "depend on the key length"}},
      {plan_with("workspace-forward", "kv-static", "", "padded-keys"),
       GraphScope::whole_step,
       {"padded-keys", "no effect"}},
  };
  for (const Case& one : cases) {
    const std::string reason = graph_conflict("the-graph", one.scope, one.plan);
    EXPECT_EQ(reason.find("the-graph "), 0u) << reason;
    EXPECT_EQ(reason.find('.'), std::string::npos) << "more than a sentence: " << reason;
    for (const std::string& word : one.words) {
      EXPECT_NE(reason.find(word), std::string::npos) << word << " in: " << reason;
    }
  }
}

}  // namespace
}  // namespace decodelab
