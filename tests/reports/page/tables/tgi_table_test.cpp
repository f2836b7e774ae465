// The tables of text-generation-benchmark: exactly its columns and rows, with the numbers of the run.
#include "reports/page/tables/tgi_table.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/reports/contains.h"
#include "tests/reports/sample_run.h"

namespace decodelab {
namespace {

using testing::contains;
using testing::sample_run;
using testing::SampleOptions;

SampleOptions options() {
  SampleOptions options;
  options.phases = {Phase::prefill, Phase::decode, Phase::generate};
  options.batches = {1, 4};
  options.lengths = {64, 128};
  options.arms = {{"causal"}, {"bigcode", 0.7}, {kRooflineRead, 0.3}};
  options.launches = 10;
  options.with_failures = false;
  return options;
}

std::vector<std::string> names(const Table& table) {
  std::vector<std::string> names;
  for (const TableColumn& column : table.columns) {
    names.push_back(column.name);
  }
  return names;
}

std::vector<std::string> first_two(const Table& table) {
  std::vector<std::string> fields;
  for (const TableRow& row : table.rows) {
    fields.push_back(row.fields.at(0) + "|" + row.fields.at(1));
  }
  return fields;
}

TEST(TgiTable, HasTheColumnsAndRowsOfTextGenerationBenchmark) {
  const auto tables = tgi_tables(summarize(sample_run(options())));
  ASSERT_EQ(tables.size(), 8U) << "two arms, two lengths, latency and throughput; no roofline";
  EXPECT_EQ(names(tables[0]),
            (std::vector<std::string>{"Step", "Batch Size", "Average", "Lowest", "Highest", "p50", "p90", "p99"}));
  EXPECT_EQ(first_two(tables[0]),
            (std::vector<std::string>{"Prefill|1", "|4", "Decode (token)|1", "|4", "Decode (total)|1", "|4"}));
  EXPECT_EQ(names(tables[1]), (std::vector<std::string>{"Step", "Batch Size", "Average", "Lowest", "Highest"}));
  EXPECT_EQ(first_two(tables[1]), (std::vector<std::string>{"Prefill|1", "|4", "Decode|1", "|4"}));
  EXPECT_TRUE(contains(tables[0].title, {"Latency of causal, sequence length 64", "bf16, cpu, 8 threads"}));
}

TEST(TgiTable, ShowsMillisecondsAndTokensASecond) {
  const RunSummary summary = summarize(sample_run(options()));
  const SummaryRow* decode = nullptr;
  for (const SummaryRow& row : summary.rows) {
    if (row.cell.phase == Phase::decode && row.cell.batch == 4 && row.cell.length == 64 && row.arm.label == "causal") {
      decode = &row;
    }
  }
  ASSERT_NE(decode, nullptr);
  const auto tables = tgi_tables(summary, "causal");
  ASSERT_EQ(tables.size(), 4U);
  const auto ms = [](const std::optional<std::int64_t>& ns) {
    return fmt::format("{:.2f} ms", static_cast<double>(*ns) / 1e6);
  };
  EXPECT_EQ(tables[0].rows[3].cell_id, decode->cell.id);
  EXPECT_EQ(tables[0].rows[3].fields,
            (std::vector<std::string>{"", "4", ms(decode->mean_ns), ms(decode->min_ns), ms(decode->max_ns),
                                      ms(decode->median_ns), ms(decode->p90_ns), ""}));
  const auto rate = [](const std::optional<std::int64_t>& ns) {
    return fmt::format("{:.2f} tokens/secs", 4e9 / static_cast<double>(*ns));
  };
  EXPECT_EQ(tables[1].rows[3].fields,
            (std::vector<std::string>{"", "4", rate(decode->mean_ns), rate(decode->max_ns), rate(decode->min_ns)}));
  EXPECT_TRUE(contains(to_markdown(tables[0]), {"| Step ", "| Prefill ", "p99 (662 steps", "prefill included"}));
}

TEST(TgiTable, KeepsThreeDigitsOfTheStepsOfASmallModel) {
  RunData data = sample_run(options());
  for (BlockRecord& block : data.blocks) {
    for (VisitRecord& visit : block.visits) {
      for (std::int64_t& ns : visit.samples_ns) {
        ns = 1'234;
      }
    }
  }
  EXPECT_EQ(tgi_tables(summarize(data)).front().rows[0].fields[2], "0.00123 ms");
}

TEST(TgiTable, SaysWhatBecameOfRowsWithoutTimes) {
  RunData data = sample_run(options());
  for (CellArmRecord& row : data.cell_arms) {
    if (row.arm_id == 1 && row.cell_id == 1) {
      row.status = RowStatus::oom;
      row.reason = "needs 71 GiB";
    }
  }
  const auto tables = tgi_tables(summarize(data), "causal");
  EXPECT_EQ(first_two(tables[0]).front(), "Prefill|4");
  EXPECT_TRUE(contains(to_text(tables[0]), {"b1 pp64: oom: needs 71 GiB"}));
}

}  // namespace
}  // namespace decodelab
