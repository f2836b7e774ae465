// What is printed fits a terminal, and says what the account says.
#include "profiles/trace/text.h"

#include <sstream>

#include <gtest/gtest.h>

#include "base/table.h"
#include "profiles/trace/checks/check.h"
#include "profiles/trace/words.h"
#include "tests/profiles/trace/checked.h"

namespace decodelab {
namespace {

::testing::AssertionResult fits(const std::string& text) {
  std::istringstream lines(text);
  std::string line;
  while (std::getline(lines, line)) {
    if (line.size() > kTableWidth) {
      return ::testing::AssertionFailure() << line.size() << " columns: " << line;
    }
    if (!line.empty() && line.back() == ' ') {
      return ::testing::AssertionFailure() << "ends with a space: " << line;
    }
  }
  if (text.empty() || text.back() != '\n') {
    return ::testing::AssertionFailure() << "does not end a line: " << text;
  }
  return ::testing::AssertionSuccess();
}

::testing::AssertionResult has(const std::string& text, const std::string& part) {
  if (text.find(part) != std::string::npos) {
    return ::testing::AssertionSuccess();
  }
  return ::testing::AssertionFailure() << "'" << part << "' is not in:\n" << text;
}

std::string text_of(const TraceEvents& events) {
  const Trace trace = seal(events);
  const TraceQuality quality = verify(trace);
  return trace_text(trace, quality, attribute(trace, quality));
}

TEST(Table, GivesWayInTheFirstColumnOnly) {
  Table table = names_and_numbers({"name", "ns"});
  table.add({std::string(200, 'x'), "1,234"});
  const std::string text = to_text(table);
  EXPECT_TRUE(fits(text));
  EXPECT_TRUE(has(text, "xxx...  1,234\n"));
}

TEST(Text, GroupsDigitsAndKeepsSigns) {
  EXPECT_EQ(grouped(0), "0");
  EXPECT_EQ(grouped(-999), "-999");
  EXPECT_EQ(grouped(-1000), "-1,000");
  EXPECT_EQ(grouped(1234567), "1,234,567");
  EXPECT_EQ(amount_text(99.95), "100.0");
  EXPECT_EQ(amount_text(123456.7), "123,457");
}

TEST(Text, NamesCannotSteerATerminal) {
  EXPECT_EQ(printable("a\x1b[2J\nb\xc2\x9b"), "a?[2J?b\xc2?");
  EXPECT_EQ(printable("caf\xc3\xa9"), "caf\xc3\xa9");
}

TEST(Text, OfADeviceHasVerdictStagesGapsKernelsAndOperators) {
  TraceEvents events = synthetic_trace({.layers = 3, .kernels_per_layer = 6}).events;
  events.session.perturbation = {.ratio = 1.012, .low = 1.008, .high = 1.016, .pairs = 20};
  const std::string text = text_of(events);
  EXPECT_TRUE(fits(text));
  EXPECT_TRUE(text.starts_with("A step takes ")) << text;
  EXPECT_TRUE(has(text, "\nverdict ok\n"));
  for (const char* part : {"bound by", "attention", "dispatch", "launch-latency", "qkv_kernel_1", "in no stage",
                           "tracing: steps take 1.012 times as long (1.008 to 1.016, 95 %, 20 pairs)"}) {
    EXPECT_TRUE(has(text, part));
  }
}

TEST(Text, OfACpuHasOperatorsAndNoWordOnDevices) {
  const std::string text = text_of(synthetic_trace({.cpu_only = true}, TraceTier::kernels).events);
  EXPECT_TRUE(fits(text));
  EXPECT_TRUE(has(text, "aten::empty"));
  EXPECT_TRUE(has(text, "in no stage"));
  EXPECT_TRUE(has(text, "its slow-down was not measured"));
  EXPECT_EQ(text.find("gap"), std::string::npos);
  EXPECT_EQ(text.find("device"), std::string::npos);
}

TEST(Text, OfRanksHasALineForEachOfTheOthers) {
  TraceEvents events = synthetic_trace({.cpu_only = true}, TraceTier::kernels).events;
  constexpr std::int64_t kRank = 777;
  events.session.threads = {{.process = 99, .thread = kRank, .name = "rank 1"}};
  for (const Step& step : events.steps) {
    const std::int64_t quarter_ns = (step.end_ns - step.start_ns) / 4;
    const auto add = [&](SpanKind kind, Stage stage, std::int64_t first, std::int64_t last) {
      events.spans.push_back({.start_ns = step.start_ns + first * quarter_ns,
                              .end_ns = step.start_ns + last * quarter_ns,
                              .thread = kRank,
                              .step = step.index,
                              .name = events.strings.id("rank's"),
                              .kind = kind,
                              .stage = stage,
                              .process = 99});
    };
    add(SpanKind::layer, Stage::other, 0, 3);
    add(SpanKind::stage, Stage::mlp, 0, 2);
    add(SpanKind::stage, Stage::all_reduce, 2, 3);
  }
  const std::string text = text_of(events);
  EXPECT_TRUE(fits(text));
  EXPECT_TRUE(has(text, "exchanges and waits"));
  const std::size_t line = text.find("rank 1 ");
  ASSERT_NE(line, std::string::npos) << text;
  const std::string of_rank = text.substr(line, text.find('\n', line) - line);
  EXPECT_TRUE(has(of_rank, "50.0 %"));
  EXPECT_TRUE(has(of_rank, "25.0 %"));
}

TEST(Text, OfABrokenTraceIsTheReasonAndNoNumbers) {
  TraceEvents events = synthetic_trace({}).events;
  events.session.dropped_records = 3;
  const std::string text = text_of(events);
  EXPECT_EQ(text,
            "The trace cannot be believed.\n"
            "verdict broken: I1: 3 records dropped by the collectors: trace fewer steps, or allow more events\n"
            "no numbers are printed from a trace that cannot be accounted for\n");
}

TEST(Text, OfAContaminatedTraceSaysNothingOfTheHost) {
  TraceEvents events = synthetic_trace({}).events;
  events.session.perturbation = {.ratio = 1.4, .low = 1.3, .high = 1.5, .pairs = 20};
  const std::string text = text_of(events);
  EXPECT_TRUE(fits(text));
  EXPECT_TRUE(has(text, "verdict contaminated: I13"));
  EXPECT_EQ(text.find("host ns"), std::string::npos);
  EXPECT_EQ(text.find("operator"), std::string::npos);
}

TEST(Text, ExplainsEveryCheck) {
  const std::string text = explain_text(verify(seal(synthetic_trace({.cpu_only = true}).events)));
  EXPECT_TRUE(fits(text));
  for (const CheckDefinition& check : check_table()) {
    EXPECT_TRUE(has(text, std::string(check.id) + " ")) << check.id;
  }
  EXPECT_TRUE(has(text, "I4   not-applicable no operation starts before its launch: needs rows of a device"));
}

TEST(Text, OfADifferenceHasItsSumAndItsNames) {
  const Trace a = seal(synthetic_trace({.layers = 3}).events);
  const Trace b = seal(synthetic_trace({.layers = 3, .graph = true, .seed = 2}).events);
  const TraceDifference moved = difference(a, attribute(a, verify(a)), b, attribute(b, verify(b)));
  const std::string text = difference_text(moved, "reference.sqlite", "cuda-graph.sqlite");
  EXPECT_TRUE(fits(text));
  EXPECT_TRUE(text.starts_with("A step of cuda-graph.sqlite takes ")) << text;
  for (const char* part : {"reference.sqlite", "gap: dispatch", "sum", "launches"}) {
    EXPECT_TRUE(has(text, part));
  }
  const std::string refused = difference_text({.refusal = "they differ in everything"}, "a", "b");
  EXPECT_EQ(refused, "a and b cannot be compared.\nA a\nB b\nno difference: they differ in everything\n");
}

}  // namespace
}  // namespace decodelab
