// Restricted decoding: every way of making masks gives the bits of the reference, and sessions keep to them whatever
// happens to their rows.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include <gtest/gtest.h>

#include "engine/masks/token_mask.h"
#include "tests/variants/arms.h"
#include "variants/presets.h"

namespace decodelab {
namespace {

using testing::engine_for;
using testing::small_model;

using MaskRows = std::vector<std::vector<std::int64_t>>;

/// Texts of 97 ids: letters, pairs and longer runs of a, b and c, parts of a character of several bytes; 0 ends.
std::vector<std::string> texts_of_ids() {
  std::vector<std::string> texts{""};
  for (const char* const text :
       {"a", "b", "c", "é", "\xC3", "\xA9", "😀", "\xF0\x9F", "\x98\x80", "1", "23", " ", "\n", "."}) {
    texts.emplace_back(text);
  }
  for (std::size_t number = 0; texts.size() < 97; ++number) {
    std::string text;
    for (std::size_t rest = number + 3; rest > 0; rest /= 3) {
      text += "abc"[rest % 3];
    }
    texts.push_back(text);
  }
  return texts;
}

std::shared_ptr<const MaskVocabulary> small_vocabulary() {
  static const auto vocabulary = std::make_shared<const MaskVocabulary>(texts_of_ids(), std::vector<std::int64_t>{0});
  return vocabulary;
}

std::vector<std::string> mask_variants() {
  std::vector<std::string> names;
  for (const auto& [name, variant] : registered_variants()) {
    if (slots_bound_by(variant) == std::vector<std::string>{"token_mask"}) {
      names.push_back(name);
    }
  }
  return names;
}

std::shared_ptr<TokenMask> mask_of(const std::string& variant, const TokenMaskOptions& options) {
  return bind_arm(parse_arm("causal,+" + variant), reference_plan()).token_mask.factory()(options);
}

/// Patterns, texts and vocabularies at random, from few letters so that they meet.
class RandomMasks {
 public:
  std::string pattern(int depth = 2) {
    static const std::vector<std::string> kAtoms{"a",  "b",   "c",   "é",   ".",   "[ab]", "[^a]",
                                                 "😀", "\\d", "\\s", "\\w", "\\.", "ab",   "[a-cé]"};
    if (depth == 0) {
      return kAtoms[below(kAtoms.size())];
    }
    switch (below(6)) {
      case 0: return pattern(depth - 1) + pattern(depth - 1);
      case 1: return "(" + pattern(depth - 1) + "|" + pattern(depth - 1) + ")";
      case 2: return "(" + pattern(depth - 1) + ")*";
      case 3:
        return "(" + pattern(depth - 1) + "){" + std::to_string(below(3)) + "," + std::to_string(3 + below(9)) + "}";
      case 4: return "(" + pattern(depth - 1) + ")?" + pattern(depth - 1);
      default: return pattern(depth - 1);
    }
  }

  std::vector<std::string> tokens() {
    static const std::string kBytes = "aabbccab1. \xC3\xA9\xF0\x9F\x98\x80";
    std::vector<std::string> tokens;
    for (std::size_t id = 0; id < 20 + below(60); ++id) {
      std::string token;
      for (std::size_t byte = below(5); byte > 0; --byte) {
        token += kBytes[below(kBytes.size())];
      }
      tokens.push_back(token);
    }
    return tokens;
  }

  std::size_t below(std::size_t bound) { return std::uniform_int_distribution<std::size_t>(0, bound - 1)(random_); }

 private:
  std::mt19937 random_{11};
};

TEST(TokenMasks, OfEveryVariantAreThoseOfTheReferenceForRandomPatternsTextsAndVocabularies) {
  RandomMasks random;
  std::int64_t compared = 0;
  std::int64_t neither_all_nor_none = 0;
  std::int64_t spent = 0;
  while (compared < 10'000) {
    const auto vocabulary = std::make_shared<const MaskVocabulary>(random.tokens(), std::vector<std::int64_t>{});
    const TokenMaskOptions options{.pattern = random.pattern(), .vocabulary = vocabulary};
    const auto reference = make_scan_masks(options);
    std::vector<std::shared_ptr<TokenMask>> others;
    std::vector<TokenMask::State> states;
    for (const std::string& name : mask_variants()) {
      others.push_back(mask_of(name, options));
      states.push_back(others.back()->start());
    }
    const auto width = std::ssize(vocabulary->bytes()) + 7;
    MaskBits expected(width);
    MaskBits got(width);
    TokenMask::State state = reference->start();
    for (int step = 0; step < 8 && state != nullptr; ++step) {
      reference->find_allowed(*state, expected);
      for (std::size_t variant = 0; variant < others.size(); ++variant) {
        if (others[variant] == nullptr) {
          continue;
        }
        try {
          others[variant]->find_allowed(*states[variant], got);
        } catch (const std::invalid_argument&) {
          ASSERT_EQ(mask_variants()[variant], "index-masks") << "no other one may give up";
          others[variant].reset();
          ++spent;
          continue;
        }
        ASSERT_EQ(got, expected) << mask_variants()[variant] << " for " << options.pattern << ", step " << step;
        ASSERT_EQ(states[variant]->accepting(), state->accepting());
      }
      ++compared;
      neither_all_nor_none +=
          expected.none() ||
                  expected.count() ==
                      std::ranges::count_if(vocabulary->bytes(), [](const std::string& text) { return !text.empty(); })
              ? 0
              : 1;
      if (expected.none()) {
        break;
      }
      std::int64_t id = 0;
      do {
        id = static_cast<std::int64_t>(random.below(static_cast<std::size_t>(width)));
      } while (!expected.allows(id));
      state = reference->after(state, id);
      for (std::size_t variant = 0; variant < others.size(); ++variant) {
        if (others[variant] != nullptr) {
          states[variant] = others[variant]->after(states[variant], id);
          ASSERT_NE(states[variant], nullptr);
        }
      }
    }
  }
  EXPECT_GE(mask_variants().size(), 3U);
  EXPECT_LT(spent, compared / 100) << "an index is made for nearly all patterns";
  EXPECT_GT(neither_all_nor_none, compared / 3) << "the cases tell masks apart";
}

TEST(TokenMasks, AnIndexThatWouldBeTooLargeSaysSoAndOthersGoOn) {
  std::vector<std::string> tokens(40);
  tokens[0] = "a";
  tokens[1] = "b";
  const TokenMaskOptions options{
      .pattern = "(a|b)*a(a|b){14}",
      .vocabulary = std::make_shared<const MaskVocabulary>(tokens, std::vector<std::int64_t>{})};
  MaskBits bits(std::ssize(tokens));
  const auto index = mask_of("index-masks", options);
  try {
    index->find_allowed(*index->start(), bits);
    FAIL() << "an index of 2^14 states was made";
  } catch (const std::invalid_argument& error) {
    EXPECT_NE(std::string(error.what()).find("use cached-trie-masks"), std::string::npos) << error.what();
  }
  const auto cached = mask_of("cached-trie-masks", options);
  auto state = cached->start();
  for (int step = 0; step < 100; ++step) {
    cached->find_allowed(*state, bits);
    ASSERT_EQ(bits.count(), 2);
    state = cached->after(state, step % 3 == 0 ? 0 : 1);
  }
}

SessionOptions restricted(std::vector<TokenRules> rules, std::vector<SamplingParameters> sampling = {},
                          std::int64_t batch_size = 3) {
  return {.batch_size = batch_size,
          .max_tokens = 40,
          .details = {},
          .sampling = std::move(sampling),
          .rules = std::move(rules),
          .vocabulary = small_vocabulary()};
}

const std::vector<TokenRules> kThreeRules{{.regex = "(abc|c)+"}, {}, {.regex = "[a-c]{3,9}é*", .min_tokens = 2}};

MaskRows restricted_steps(Session& session, int steps) {
  MaskRows all;
  for (int step = 0; step < steps; ++step) {
    all.push_back(session.decode().token_ids);
  }
  return all;
}

TEST(RestrictedSession, GivesTheTokensOfTheReferenceUnderEveryPresetAndWayOfMakingMasks) {
  for (const ModelConfig& config : {testing::small_config(), testing::small_llama_config()}) {
    const auto model = small_model(config);
    std::vector<std::string> arms;
    for (const std::string& name : mask_variants()) {
      arms.push_back("bigcode,+" + name);
    }
    for (const Preset& preset : presets()) {
      arms.emplace_back(preset.name);
    }
    const MaskRows prompts{{1, 2, 3}, {4}, {5, 6}};
    MaskRows expected;
    for (const std::string& arm : arms) {
      if (!unsupported_reason(parse_arm(arm), {.config = config, .dtype = ElementType::float32, .device = "cpu"})
               .empty()) {
        continue;
      }
      const Engine causal = engine_for("causal", model);
      const Engine engine = engine_for(arm, model);
      if (expected.empty()) {
        Session session(causal, restricted(kThreeRules));
        expected.push_back(session.prefill(prompts).token_ids);
        for (const auto& step : restricted_steps(session, 12)) {
          expected.push_back(step);
        }
      }
      Session session(engine, restricted(kThreeRules));
      MaskRows got{session.prefill(prompts).token_ids};
      for (const auto& step : restricted_steps(session, 12)) {
        got.push_back(step);
      }
      EXPECT_EQ(got, expected) << arm;
    }
    // What came before the end matches; without rules the row says something else.
    std::string said;
    for (const auto& step : expected) {
      if (step[0] == 0) {
        break;
      }
      said += texts_of_ids()[static_cast<std::size_t>(step[0])];
    }
    EXPECT_EQ(said.find_first_not_of("abc"), std::string::npos) << said;
  }
}

TEST(RestrictedSession, KeepsItsRulesWhereRowsLeaveForkJoinAndAreCut) {
  const auto model = small_model(testing::small_llama_config());
  const Engine engine = engine_for("native", model);
  const std::vector<SamplingParameters> drawn{{.sample = true, .seed = 5}};
  const TokenRules rule{.regex = "(abc|c|ba)+"};
  const auto alone = [&](std::uint64_t seed) {
    Session session(engine, restricted({rule}, {{.sample = true, .seed = seed}}, 1));
    MaskRows steps{session.prefill(MaskRows{{1, 2, 3}}).token_ids};
    for (const auto& step : restricted_steps(session, 6)) {
      steps.push_back(step);
    }
    return steps;
  };
  Session session(engine, restricted({{}, rule, {.forbid_eos = true}}, drawn));
  session.extend(MaskRows{{9}, {1, 2, 3}, {8, 8}});
  session.fork(std::vector<std::int64_t>{1, 0, 1}, std::vector<std::uint64_t>{21, 22, 23});
  std::vector<std::vector<std::int64_t>> first{session.choose().token_ids};
  first.push_back(session.decode().token_ids);
  session.filter(std::vector<std::int64_t>{2, 0});
  Session other(engine, restricted({}, drawn, 1));
  other.prefill(MaskRows{{7}});
  session.concatenate(std::move(other));
  std::vector<std::vector<std::int64_t>> rest;
  for (int step = 0; step < 5; ++step) {
    rest.push_back(session.decode().token_ids);
  }
  for (const auto& [row, seed] : std::vector<std::pair<std::size_t, std::uint64_t>>{{0, 23}, {1, 21}}) {
    const MaskRows expected = alone(seed);
    const std::size_t before = row == 0 ? 2 : 0;
    EXPECT_EQ(first[0][before], expected[0][0]);
    EXPECT_EQ(first[1][before], expected[1][0]);
    for (std::size_t step = 0; step < rest.size(); ++step) {
      EXPECT_EQ(rest[step][row], expected[step + 2][0]) << "row " << row << ", step " << step;
    }
  }
  // Cut back to the prompt and two tokens, and told the third: it goes on from there.
  const std::int64_t held = session.lengths()[0];
  session.truncate(0, held - 3);
  std::vector<std::int64_t> forced = rest.back();
  forced[0] = rest[1][0];
  session.force_tokens(forced);
  const StepResult step = session.decode();
  ASSERT_FALSE(step.exhausted.empty());
  EXPECT_FALSE(step.exhausted[0]);
}

TEST(RestrictedSession, SaysWhichRowsHaveNoTokenLeftAndKeepsTheOthers) {
  const auto model = small_model(testing::small_config());
  const Engine engine = engine_for("native", model);
  GenerationRequest request{.prompts = {{1}, {2}, {3}},
                            .max_tokens = 6,
                            .eos_token_ids = {0},
                            .details = {},
                            .rules = {{.regex = "ab", .forbid_eos = true}, {.allowed_ids = {2, 3}}, {.regex = "q.*"}},
                            .vocabulary = small_vocabulary()};
  const std::vector<Completion> completions = generate(engine, request);
  EXPECT_EQ(completions[0].finish_reason, "dead-end");
  std::string said;
  for (const std::int64_t id : completions[0].token_ids) {
    said += texts_of_ids()[static_cast<std::size_t>(id)];
  }
  EXPECT_EQ(said, "ab");
  EXPECT_EQ(completions[1].finish_reason, "length");
  EXPECT_TRUE(std::ranges::all_of(completions[1].token_ids, [](std::int64_t id) { return id == 2 || id == 3; }));
  EXPECT_EQ(completions[2].finish_reason, "dead-end");
  EXPECT_TRUE(completions[2].token_ids.empty());
  request.rules = {{.regex = "ab"}};
  for (const Completion& completion : generate(engine, request)) {
    EXPECT_EQ(completion.finish_reason, "eos");
  }
  request.rules = {{.regex = "a\\b"}};
  EXPECT_THROW(generate(engine, request), std::invalid_argument);
  request.rules = {{.regex = "a"}, {}};
  EXPECT_THROW(generate(engine, request), std::invalid_argument) << "two rules for three rows";
  request.rules = {{.regex = "a"}};
  request.vocabulary = nullptr;
  EXPECT_THROW(generate(engine, request), std::invalid_argument) << "no bytes of tokens";
}

TEST(RestrictedSession, SamplesInProportionToWhatIsAllowed) {
  const auto model = small_model(testing::small_llama_config());
  const Engine engine = engine_for("native", model);
  constexpr std::int64_t kRows = 64;
  constexpr int kDraws = 60;
  const std::vector<std::int64_t> ids{1, 2, 3, 9, 10, 12};
  std::map<std::int64_t, double> seen;
  std::vector<float> logits;
  for (int draw = 0; draw < kDraws; ++draw) {
    std::vector<SamplingParameters> sampling;
    for (std::int64_t row = 0; row < kRows; ++row) {
      sampling.push_back({.sample = true, .temperature = 2, .seed = static_cast<std::uint64_t>(draw * kRows + row)});
    }
    Session session(engine, restricted({{.allowed_ids = ids}}, sampling, kRows));
    for (const std::int64_t id : session.prefill(MaskRows(kRows, {5, 6, 7})).token_ids) {
      seen[id] += 1;
    }
    logits = session.last_logits();
  }
  double total = 0;
  for (const std::int64_t id : ids) {
    total += std::exp(logits[static_cast<std::size_t>(id)] / 2.0);
  }
  double chi_square = 0;
  double counted = 0;
  for (const std::int64_t id : ids) {
    const double expected = kRows * kDraws * std::exp(logits[static_cast<std::size_t>(id)] / 2.0) / total;
    ASSERT_GT(expected, 5) << "of id " << id;
    chi_square += (seen[id] - expected) * (seen[id] - expected) / expected;
    counted += seen[id];
  }
  EXPECT_EQ(counted, kRows * kDraws) << "nothing else came";
  EXPECT_LT(chi_square, 20.5) << "of 5 degrees of freedom: one run in a thousand";
}

}  // namespace
}  // namespace decodelab
