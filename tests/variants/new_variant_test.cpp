// A new variant is one file and no edit elsewhere: this file is one, and finds itself everywhere.
#include <gtest/gtest.h>

#include "bench/commands/commands.h"
#include "engine/layers/lm_head_rows.h"
#include "engine/sampling/token_details.h"
#include "tests/variants/arms.h"

namespace decodelab {
namespace {

class SomeRows final : public LmHeadRows {
 public:
  explicit SomeRows(std::int64_t* asked) : asked_(asked) {}
  bool all_positions(const DetailsRequest& requested) const override {
    ++*asked_;
    return requested.prompt.any();
  }

 private:
  std::int64_t* asked_;
};

std::int64_t times_asked = 0;

const bool registered = register_variant({
    .name = "variant-of-this-test",
    .summary = "A variant that exists only in this file.",
    .source = "tests/variants/new_variant_test.cpp",
    .parameters = {{.name = "n", .default_value = 3, .minimum = 1, .maximum = 9, .help = "a number without effect"}},
    .expects = {},
    .unsupported = {},
    .apply =
        [](EnginePlan& plan, const Parameters&) {
          plan.lm_head_rows.bind("variant-of-this-test", [] { return std::make_unique<SomeRows>(&times_asked); });
        },
});

TEST(ANewVariant, AppearsInTheListOfVariantsAndOfSlots) {
  ASSERT_TRUE(registered);
  CLI::App app;
  ExitCode exit_code = ExitCode::internal;
  add_list_command(app, exit_code);
  ::testing::internal::CaptureStdout();
  app.parse("list", false);
  const std::string printed = ::testing::internal::GetCapturedStdout();
  EXPECT_EQ(exit_code, ExitCode::ok);
  EXPECT_NE(printed.find(
                "  variant-of-this-test\n      A variant that exists only in this file.\n      slots: lm_head_rows\n"),
            std::string::npos)
      << printed;
  EXPECT_NE(printed.find(":n=n  a number without effect (default 3)"), std::string::npos) << printed;
  EXPECT_NE(printed.find("last-token-lm-head, variant-of-this-test"), std::string::npos) << printed;
}

TEST(ANewVariant, IsAmongTheArmsOfTheEveryVariantTest) {
  const std::vector<std::string> arms = testing::arms_of_every_variant();
  EXPECT_NE(std::find(arms.begin(), arms.end(), "causal,+variant-of-this-test"), arms.end());
  EXPECT_NE(std::find(arms.begin(), arms.end(), "causal,+variant-of-this-test:n=9"), arms.end());
}

TEST(ANewVariant, RunsWhenAnArmNamesIt) {
  const auto model = testing::small_model(testing::small_config());
  const std::int64_t before = times_asked;
  generate(testing::engine_for("causal,+variant-of-this-test:n=5", model),
           {.prompts = {{1, 2, 3}}, .max_tokens = 1, .details = {}});
  EXPECT_GT(times_asked, before);
}

TEST(ANewVariant, ConflictsWithAnotherOnItsSlot) {
  EXPECT_THROW(parse_arm("bigcode,+variant-of-this-test"), std::invalid_argument);
  EXPECT_EQ(parse_arm("bigcode,-last-token-lm-head,+variant-of-this-test:n=3").label,
            "bigcode,+variant-of-this-test,-last-token-lm-head");
}

}  // namespace
}  // namespace decodelab
