// Runs that have little to show: a figure says so or is left out, and all that is left draws.
#include <fstream>
#include <functional>
#include <sstream>

#include <gtest/gtest.h>

#include "reports/figures/figure.h"
#include "reports/figures/render.h"
#include "reports/figures/vega_bundle.h"
#include "reports/page/report.h"
#include "tests/reports/contains.h"
#include "tests/reports/rich_run.h"
#include "tests/temporary_folder.h"

namespace decodelab {
namespace {

using testing::contains;
using testing::read_file;
using testing::rich_run;
using testing::SampleOptions;
using testing::TemporaryFolder;

SampleOptions little() {
  SampleOptions options;
  options.phases = {Phase::decode};
  options.batches = {4};
  options.lengths = {512};
  options.arms = {{"causal"}, {"bigcode", 0.7}};
  options.with_failures = false;
  return options;
}

struct PoorRun {
  const char* name;
  std::function<RunData()> make;
};

std::vector<PoorRun> poor_runs() {
  return {
      {"one cell", [] { return testing::sample_run(little()); }},
      {"one launch",
       [] {
         SampleOptions options = little();
         options.launches = 1;
         return testing::sample_run(options);
       }},
      {"one sample",
       [] {
         SampleOptions options = little();
         options.launches = 1;
         options.blocks = 1;
         options.steps = 1;
         return testing::sample_run(options);
       }},
      {"one arm",
       [] {
         SampleOptions options = little();
         options.arms = {{"causal"}};
         return testing::sample_run(options);
       }},
      {"clock that stood still",
       [] {
         RunData data = testing::sample_run(little());
         for (BlockRecord& block : data.blocks) {
           for (VisitRecord& visit : block.visits) {
             std::ranges::fill(visit.samples_ns, 0);
           }
         }
         return data;
       }},
      {"no numbers where there could be some",
       [] {
         RunData data = rich_run(testing::small_rich_options());
         for (BlockRecord& block : data.blocks) {
           block.other_cpu_share = std::nan("");
         }
         for (TraceRecord& trace : data.traces) {
           trace.perturbation = trace.perturbation_low = std::nan("");
         }
         return data;
       }},
      {"every arm but one failed",
       [] {
         RunData data = testing::sample_run(
             {.phases = {Phase::decode}, .batches = {1, 4}, .lengths = {64, 512}, .with_failures = false});
         for (CellArmRecord& row : data.cell_arms) {
           if (row.arm_id == 2) {
             continue;
           }
           row.status = row.arm_id == 1 ? RowStatus::oom : RowStatus::failed;
           row.reason = "it fell over";
           row.peak_bytes.reset();
         }
         for (BlockRecord& block : data.blocks) {
           std::erase_if(block.visits, [](const VisitRecord& visit) { return visit.arm_id != 2; });
         }
         return data;
       }},
      {"rows on one side only",
       [] {
         RunData data = testing::sample_run(
             {.phases = {Phase::decode}, .batches = {1, 4}, .lengths = {64, 512}, .with_failures = false});
         for (BlockRecord& block : data.blocks) {
           std::erase_if(block.visits, [&](const VisitRecord& visit) { return visit.arm_id == 1 + block.cell_id % 2; });
         }
         for (CellArmRecord& row : data.cell_arms) {
           if (row.arm_id == 1 + row.cell_id % 2) {
             row = {.cell_id = row.cell_id, .arm_id = row.arm_id};
           }
         }
         return data;
       }},
      {"broken traces",
       [] {
         RunData data = rich_run(testing::small_rich_options());
         data.traces[0].verdict = "broken";
         data.traces[1].steps = 0;
         data.traces[2].shares.clear();
         return data;
       }},
      {"hostile labels",
       [] {
         SampleOptions options = little();
         options.arms = {{"causal"}, {"</script>\"'\\` ]] ${x}\n", 0.7}, {std::string(10'000, 'x'), 0.6}};
         return testing::sample_run(options);
       }},
  };
}

TEST(PoorRuns, HaveFiguresThatDrawWithoutAWordOfWhatIsMissing) {
  if (vega_bundle().empty()) {
    GTEST_SKIP() << "This build found no vl-convert-python, so there is nothing to draw with.";
  }
  const TemporaryFolder folder;
  std::size_t count = 0;
  for (std::size_t i = 0; const PoorRun& run : poor_runs()) {
    const RunData data = run.make();
    for (const Figure& figure : figures_of(summarize(data), data)) {
      folder.write(std::to_string(i) + "-" + figure.name + ".vl.json",
                   figure.spec.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
      ++count;
    }
    ++i;
  }
  std::ostringstream warnings;
  EXPECT_TRUE(render_figures(folder.path(), /*png=*/true, warnings)) << warnings.str();
  std::size_t drawn = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
    if (entry.path().extension() != ".svg") {
      continue;
    }
    ++drawn;
    const std::string svg = read_file(entry.path());
    for (const char* word : {"NaN", "Infinity", "undefined", ">null<"}) {
      EXPECT_EQ(svg.find(word), std::string::npos) << entry.path() << " draws " << word;
    }
  }
  EXPECT_EQ(drawn, count);
  EXPECT_GT(count, 40U);
}

TEST(PoorRuns, AnEmptyRunHasNoFigure) {
  RunData data = rich_run();
  data.blocks.clear();
  for (CellArmRecord& row : data.cell_arms) {
    row = {.cell_id = row.cell_id, .arm_id = row.arm_id};
  }
  EXPECT_TRUE(figures_of(summarize(data), data).empty());
}

TEST(PoorRuns, ASingleLaunchIsHatchedAndHasNoInterval) {
  SampleOptions options = little();
  options.launches = 1;
  const RunData data = testing::sample_run(options);
  for (const Figure& figure : figures_of(summarize(data), data)) {
    if (figure.name != "decode-speedup") {
      continue;
    }
    const auto& cell = figure.spec["datasets"]["cells"][0];
    EXPECT_EQ(cell["unsure"], true);
    EXPECT_FALSE(cell.contains("low"));
    EXPECT_TRUE(contains(figure.data.rows.at(0).fields.at(3), {"this process only"}));
    return;
  }
  FAIL() << "there is no heat map";
}

TEST(PoorRuns, FailedRowsAreCrossesWithTheirReason) {
  const RunData data = rich_run();
  for (const Figure& figure : figures_of(summarize(data), data)) {
    if (figure.name != "prefill-memory") {
      continue;
    }
    const auto& oom = figure.spec["datasets"]["oom"];
    ASSERT_EQ(oom.size(), 2U);  // the first length of batch 4 and of batch 16
    EXPECT_EQ(oom[0]["reason"], "needs 71.2 GiB, 60.1 GiB are available");
    EXPECT_EQ(oom[1]["length"], 1024);  // of 1024 and 4093
    return;
  }
  FAIL() << "there is no figure of memory";
}

}  // namespace
}  // namespace decodelab
