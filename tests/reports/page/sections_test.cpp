// The sections of a page: figures where they belong, the ledger before everything in Trust, traces with links that stay
// on the disk.
#include <algorithm>

#include <gtest/gtest.h>

#include "reports/page/exports/packed.h"
#include "reports/page/sections/section.h"
#include "tests/reports/contains.h"
#include "tests/reports/rich_run.h"

namespace decodelab {
namespace {

using testing::contains;
using testing::rich_run;

std::string section_of(const RunData& data, const std::string& id, Detail detail = Detail::full) {
  RunReport run{.data = &data, .summary = summarize(data), .figures = {}, .prefix = ""};
  run.figures = figures_of(run.summary, data);
  const auto section = std::ranges::find_if(sections(), [&](const Section& known) { return known.id == id; });
  if (section == sections().end()) {
    throw std::out_of_range("no section " + id);
  }
  return section->html({.run = run, .drawings = {}, .detail = detail});
}

TEST(Sections, EveryFigureStandsInExactlyOne) {
  const RunData data = rich_run();
  std::string all;
  for (const Section& section : sections()) {
    all += section_of(data, section.id);
  }
  for (const Figure& figure : figures_of(summarize(data), data)) {
    const std::string tag = "<figure id=\"" + figure.name + "\">";
    EXPECT_NE(all.find(tag), std::string::npos) << figure.name;
    EXPECT_EQ(all.find(tag), all.rfind(tag)) << figure.name;
  }
}

TEST(Sections, TrustOpensWithTheLedgerAndSaysWhatTheWeightsAre) {
  const std::string html = section_of(rich_run(), "trust");
  const std::size_t ledger = html.find("Planned, measured and excluded cells");
  EXPECT_LT(ledger, html.find("<figure"));
  EXPECT_LT(ledger, html.find("Random weights, timing only"));
  EXPECT_TRUE(contains(html, {"Blocks that other processes disturbed", "yes: without such blocks too few would be left",
                              "9.0 %", "3 oom", "In-run null"}));
}

TEST(Sections, TrustSaysWhichBlocksDoNotCount) {
  RunData data = rich_run();
  data.blocks.front().other_cpu_share = 0.5;
  EXPECT_TRUE(contains(section_of(data, "trust"), {"no, void for all arms", "50.0 %"}));
}

TEST(Sections, TrustNamesOtherEnginesAndWhatTheyWereSetTo) {
  RunData data = rich_run();
  EXPECT_FALSE(contains(section_of(data, "trust"), {"Other engines"}));
  data.arms[5].command = "llama-worker --model <x>";
  data.arms[5].engine = "llama.cpp";
  data.arms[5].settings = "{\"flash_attn\":true}";
  EXPECT_TRUE(contains(section_of(data, "trust"), {"Other engines", "llama.cpp", "{&quot;flash_attn&quot;:true}",
                                                   "not told", "llama-worker --model &lt;x&gt;"}));
}

TEST(Sections, TrustSaysHowNearTheOutputsOfAnArmCameAtWorst) {
  RunData data = rich_run();
  EXPECT_FALSE(contains(section_of(data, "trust"), {"Outputs beside the reference"}));
  std::vector<Agreement> seen{{.logit_error = 0.0125, .kl_divergence = 3e-5, .top_1_agreement = 1},
                              {.logit_error = 0.004, .kl_divergence = 8e-5, .top_1_agreement = 0.875}};
  for (CellArmRecord& row : data.cell_arms) {
    if (row.arm_id == data.arms[1].id && !seen.empty()) {
      row.agreement = seen.back();
      seen.pop_back();
    }
  }
  EXPECT_TRUE(contains(section_of(data, "trust"), {"Outputs beside the reference", ">2<", "0.013", "8e-05", "87.5 %"}));
}

TEST(Sections, ARunWithoutTracesSaysHowToComeByThem) {
  RunData data = rich_run();
  data.traces.clear();
  EXPECT_TRUE(contains(section_of(data, "breakdown"), {"No arm of this run was traced", "decodelab trace --run 1"}));
  EXPECT_EQ(section_of(data, "traces"), "");
}

TEST(Sections, TracesHaveTheirFileTheirCommandAndTheirAccount) {
  RunData data = rich_run();
  data.traces[1].file = "javascript:alert(1)//evil.org/<b>";
  const std::string html = section_of(data, "traces");
  EXPECT_TRUE(contains(html, {"href=\"traces/decode-1.json.gz\"", "decodelab trace --run 1 --arm causal",
                              "Attribution of traced steps", "verdict <b>warn</b>: traced steps take 6 % longer",
                              "href=\"javascript%3Aalert%281%29/evil.org/%3Cb%3E\"", "residual", "sync"}));
  EXPECT_EQ(html.find("<b>evil"), std::string::npos);
  EXPECT_EQ(html.find("href=\"javascript:"), std::string::npos);
}

TEST(Sections, AblationIsLeftOutWhereThereIsNone) {
  testing::SampleOptions options;
  options.arms = {{"causal"}, {"bigcode", 0.7}};
  EXPECT_EQ(section_of(testing::sample_run(options), "ablation"), "");
  EXPECT_NE(section_of(rich_run(), "ablation"), "");
}

TEST(Packed, HoldsNothingThatEndsAnElementAndIsTheSameEveryTime) {
  const std::string text = "</script><script>alert(1)</script>" + std::string(5000, 'x');
  const std::string once = packed(text);
  EXPECT_EQ(once, packed(text));
  EXPECT_EQ(once.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/="),
            std::string::npos);
  EXPECT_TRUE(once.starts_with("H4sI"));  // gzip
  EXPECT_EQ(once.size() % 4, 0U);
  EXPECT_LT(once.size(), 200U);
}

}  // namespace
}  // namespace decodelab
