// The reference's outputs come back as they were, for the very same cell and program.
#include "bench/measure/kept_outputs.h"

#include <gtest/gtest.h>

#include "tests/temporary_folder.h"

namespace decodelab {
namespace {

using testing::TemporaryFolder;

const CellRecord kCell{
    .phase = Phase::decode, .batch = 2, .length = 16, .dtype = "fp32", .device = "cpu", .threads = 2, .fill = "random"};
const OutputTrace kTrace{.first = {3, 4},
                         .tokens = {{1, 2}, {5, 6}},
                         .logits = {{0.5f, 1, 2, 3}, {4, 5, 6, -7.25f}},
                         .batch = 2,
                         .vocabulary = 2};

TEST(KeptOutputs, ComeBackForTheSameCellStepsAndProgramAlone) {
  const TemporaryFolder folder;
  const KeptOutputs kept(KeptBytes(folder / "outputs"), "one build\n");
  EXPECT_FALSE(kept.find(kCell, "", 2));
  kept.keep(kCell, "", 2, kTrace);
  const auto found = kept.find(kCell, "", 2);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->first, kTrace.first);
  EXPECT_EQ(found->tokens, kTrace.tokens);
  EXPECT_EQ(found->logits, kTrace.logits);
  EXPECT_EQ(found->batch, 2);
  EXPECT_EQ(found->vocabulary, 2);
  EXPECT_FALSE(kept.find(kCell, "", 3));
  EXPECT_FALSE(kept.find(kCell, "@samples=2", 2)) << "of another request";
  EXPECT_FALSE(KeptOutputs(KeptBytes(folder / "outputs"), "another build\n").find(kCell, "", 2));
  for (const auto change :
       {+[](CellRecord& cell) { cell.phase = Phase::prefill; }, +[](CellRecord& cell) { cell.batch = 1; },
        +[](CellRecord& cell) { cell.length = 17; }, +[](CellRecord& cell) { cell.dtype = "bf16"; },
        +[](CellRecord& cell) { cell.device = "cuda:0"; }, +[](CellRecord& cell) { cell.threads = 1; },
        +[](CellRecord& cell) { cell.fill = "generated"; }}) {
    CellRecord other = kCell;
    change(other);
    EXPECT_FALSE(kept.find(other, "", 2));
  }
  CellRecord same = kCell;
  same.id = 99;
  same.steps = 64;
  EXPECT_TRUE(kept.find(same, "", 2)) << "what is timed of it does not matter";
}

TEST(ComputedBy, NamesTheProgramTheWeightsAndTheSeed) {
  const TemporaryFolder folder;
  folder.write("model.safetensors", "weights");
  const BuildRecord build{.commit = "abc", .compiler = "g++", .build_type = "", .libtorch = "2.11", .cuda = ""};
  const std::string key = computed_by(build, folder.path(), 1, folder / "cache");
  EXPECT_NE(key.find(std::filesystem::read_symlink("/proc/self/exe").string()), std::string::npos);
  EXPECT_EQ(key, computed_by(build, folder.path(), 1, folder / "cache"));
  EXPECT_NE(key, computed_by(build, folder.path(), 2, folder / "cache"));
  folder.write("model.safetensors", "weightz");
  EXPECT_NE(key, computed_by(build, folder.path(), 1, folder / "cache"));
}

}  // namespace
}  // namespace decodelab
