// Qualities as a table of their own, and beside the times.
#include "reports/page/tables/quality_table.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/table.h"
#include "reports/page/exports/json.h"
#include "reports/page/tables/result_tables.h"
#include "tests/reports/loss_run.h"

namespace decodelab {
namespace {

TEST(QualityTable, HasALineForEachArmAndAReasonForOneWithout) {
  const Table table = quality_table(summarize(testing::loss_run()));
  ASSERT_EQ(table.rows.size(), 4U);
  EXPECT_EQ(table.rows[1].fields,
            (std::vector<std::string>{"native,+int8-linear,-packed-linear", "2048", "24.582 ± 2.891",
                                      "x1.0020 ± 0.0010", "0.002 ± 0.0002", "0.024", "99.6 ± 0.8 %", "0.10 %"}));
  EXPECT_NE(to_text(table).find("causal: it shows no logits."), std::string::npos);
}

TEST(QualityTable, IsEmptyWhereNoQualityWasAskedFor) {
  EXPECT_TRUE(quality_table(summarize(testing::sample_run())).rows.empty());
}

TEST(QualityTable, PutsTheLossBesideTheTimeOfEachCell) {
  const std::string text = to_text(comparison_tables(summarize(testing::loss_run())).front());
  for (const char* part : {"KL divergence", "Perplexity", "Weights", "x1.0513 ± 0.0258", "0.05 ± 0.005"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part;
  }
  EXPECT_EQ(text.find("Detects"), std::string::npos);
}

TEST(QualityTable, IsInTheExportOfEachRow) {
  const auto json = nlohmann::json::parse(to_json(summarize(testing::loss_run())));
  EXPECT_EQ(json["rows"][1]["quality"]["kl_divergence"], 2e-3);
  EXPECT_EQ(json["rows"][1]["quality"]["tokens"], 2048);
  EXPECT_TRUE(json["rows"][4]["quality"].is_null()) << "it is not known";
}

}  // namespace
}  // namespace decodelab
