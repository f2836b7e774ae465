// The specs of a small fixed run, byte for byte: tests/data/figures holds what people looked at.
// tests/reports/figures_test.py compiles and draws them.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>

#include <gtest/gtest.h>

#include "reports/figures/figure.h"
#include "tests/reports/loss_run.h"
#include "tests/reports/rich_run.h"
#include "tests/temporary_folder.h"

namespace decodelab {
namespace {

const std::filesystem::path kGolden = std::filesystem::path(DECODELAB_TEST_DATA) / "figures";

// Every kind of figure, and little of each.
std::vector<Figure> golden_figures() {
  const RunData data = testing::rich_run(testing::small_rich_options());
  std::vector<Figure> figures = figures_of(summarize(data), data);
  const RunData batching = testing::batching_run();
  for (Figure& figure : figures_of(summarize(batching), batching)) {
    if (figure.name == "batching-load") {
      figures.push_back(std::move(figure));
    }
  }
  const RunData prefixes = testing::sample_run(testing::prefix_options());
  for (Figure& figure : figures_of(summarize(prefixes), prefixes)) {
    if (figure.name == "prefill-prefix") {
      figures.push_back(std::move(figure));
    }
  }
  const RunData told = testing::sample_run(testing::top_tokens_options());
  for (Figure& figure : figures_of(summarize(told), told)) {
    if (figure.name == "decode-top-tokens") {
      figures.push_back(std::move(figure));
    }
  }
  const RunData losses = testing::loss_run();
  for (Figure& figure : figures_of(summarize(losses), losses)) {
    if (figure.name == "decode-loss") {
      figures.push_back(std::move(figure));
    }
  }
  return figures;
}

// A line for each object: small, and a change shows in a diff.
std::string text_of(const Figure& figure) {
  std::string text = figure.spec.dump();
  for (std::size_t at = 0; (at = text.find("},{", at)) != std::string::npos; at += 4) {
    text.insert(at + 2, "\n");
  }
  return text + "\n";
}

TEST(GoldenFigures, AreByteForByteWhatPeopleLookedAt) {
  std::set<std::string> files;
  const bool accept = std::getenv("DECODELAB_ACCEPT_FIGURES") != nullptr;
  for (const Figure& figure : golden_figures()) {
    const std::filesystem::path file = kGolden / (figure.name + ".vl.json");
    files.insert(file.filename().string());
    if (accept) {
      std::filesystem::create_directories(kGolden);
      std::ofstream(file, std::ios::binary) << text_of(figure);
    }
    // EXPECT_EQ would print both files.
    EXPECT_TRUE(std::filesystem::exists(file) && testing::read_file(file) == text_of(figure))
        << file << " is not what the figure is now. If that is wanted, run this test with DECODELAB_ACCEPT_FIGURES=1, "
        << "draw the folder (tools/render_figures.py), look at every picture, and commit the specs.";
  }
  for (const auto& entry : std::filesystem::directory_iterator(kGolden)) {
    EXPECT_TRUE(files.contains(entry.path().filename().string())) << entry.path() << " belongs to no figure any more";
  }
  EXPECT_FALSE(accept) << "The specs were written, not compared. Run again without DECODELAB_ACCEPT_FIGURES.";
}

TEST(GoldenFigures, HaveEveryKind) {
  std::set<std::string> names;
  for (const Figure& figure : golden_figures()) {
    names.insert(figure.name.substr(figure.name.find('-') + 1));
  }
  EXPECT_EQ(names.size(), figure_kinds().size());
}

}  // namespace
}  // namespace decodelab
