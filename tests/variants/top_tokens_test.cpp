// Every way of computing details against the reference, over logits that are hard to order.
#include "engine/sampling/top_tokens.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "engine/checkpoint/token_bytes.h"
#include "engine/tensor.h"
#include "tests/variants/arms.h"

namespace decodelab {
namespace {

using testing::engine_for;
using testing::ragged_prompts;
using testing::small_config;
using testing::small_model;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

struct Way {
  std::string name;
  std::unique_ptr<TopTokens> top_tokens;
};

/// All ways that run on a CPU, the reference first.
std::vector<Way> every_way() {
  std::vector<Way> ways;
  ways.push_back({.name = "reference", .top_tokens = make_row_details()});
  for (const auto& [name, variant] : registered_variants()) {
    if (slots_bound_by(variant) == std::vector<std::string>{"top_tokens"}) {
      const EnginePlan plan = bind_arm(parse_arm("causal,+" + name), reference_plan());
      ways.push_back({.name = name, .top_tokens = plan.top_tokens.factory()()});
    }
  }
  return ways;
}

/// Rows that are hard to order, beside random ones, [N, V] in fp32.
at::Tensor hard_logits(std::int64_t vocabulary) {
  at::manual_seed(3);
  at::Tensor logits = at::randn({9, vocabulary}) * 5;
  logits[1].fill_(2.25);
  logits[2] = at::arange(vocabulary, at::kFloat) / 16;
  logits[3] = at::arange(vocabulary, at::kFloat).flip(0) / 16;
  logits[4] = at::arange(vocabulary, at::kFloat).div(7, "floor");
  logits[5].fill_(-kInfinity);
  logits[5][vocabulary / 2] = 1;
  logits[5][vocabulary - 1] = 1;
  logits[6][vocabulary / 3] = std::numeric_limits<float>::quiet_NaN();
  logits[7].fill_(0);
  logits[7].slice(0, 0, vocabulary, 3).mul_(-1.0);
  return logits;
}

/// Requests that differ from row to row: n of 0, 1, 5, V and more, ties kept and cut.
std::vector<TokenRequest> mixed_requests(std::int64_t vocabulary) {
  const TokenRequest all{.log_prob = true, .rank = true, .top = 5, .ids = {0, vocabulary - 1}};
  TokenRequest cut = all;
  cut.ties = Ties::cut;
  return {all, cut, {.top = 1}, {.rank = true, .top = vocabulary}, cut, all, all, {.top = vocabulary + 3}, {}};
}

std::vector<TokenDetails> details_of(const Way& way, const at::Tensor& logits, const at::Tensor& ids,
                                     const std::vector<TokenRequest>& requests) {
  std::vector<const TokenRequest*> wanted;
  for (const TokenRequest& request : requests) {
    wanted.push_back(&request);
  }
  return way.top_tokens->start({.logits = logits, .ids = ids, .wanted = wanted})();
}

bool close(float a, float b) {
  return a == b || std::abs(a - b) <= 1e-6 * std::max(1.0, static_cast<double>(std::abs(b)));
}

void expect_same(const TokenDetails& got, const TokenDetails& expected) {
  EXPECT_EQ(got.refused, expected.refused);
  EXPECT_TRUE(close(got.log_prob, expected.log_prob)) << got.log_prob << " " << expected.log_prob;
  EXPECT_EQ(got.rank, expected.rank);
  EXPECT_EQ(got.tied, expected.tied);
  EXPECT_EQ(got.truncated, expected.truncated);
  ASSERT_EQ(got.top.size(), expected.top.size());
  for (std::size_t place = 0; place < got.top.size(); ++place) {
    EXPECT_EQ(got.top[place].id, expected.top[place].id) << place;
    EXPECT_TRUE(close(got.top[place].log_prob, expected.top[place].log_prob)) << place;
  }
  ASSERT_EQ(got.log_probs_of_ids.size(), expected.log_probs_of_ids.size());
  for (std::size_t id = 0; id < got.log_probs_of_ids.size(); ++id) {
    EXPECT_TRUE(close(got.log_probs_of_ids[id], expected.log_probs_of_ids[id])) << id;
  }
}

/// The definition, from a stable sort and sums in fp64.
TokenDetails defined_by_a_sort(const at::Tensor& row, std::int64_t id, const TokenRequest& wanted) {
  const at::Tensor values = row.to(at::kDouble).contiguous();
  const std::vector<double> logits(values.const_data_ptr<double>(), values.const_data_ptr<double>() + values.numel());
  TokenDetails details;
  details.refused = wanted.any() && std::ranges::any_of(logits, [](double of) { return std::isnan(of); });
  if (!wanted.any() || details.refused) {
    return details;
  }
  const double largest = *std::ranges::max_element(logits);
  double sum = 0;
  for (const double logit : logits) {
    sum += std::exp(logit - largest);
  }
  const auto log_prob = [&](std::size_t of) { return static_cast<float>(logits[of] - largest - std::log(sum)); };
  const auto own = static_cast<std::size_t>(id);
  details.log_prob = wanted.log_prob ? log_prob(own) : 0;
  details.rank = wanted.rank ? 1 + std::ranges::count_if(logits, [&](double of) { return of > logits[own]; }) : 0;
  for (const std::int64_t of : wanted.ids) {
    details.log_probs_of_ids.push_back(log_prob(static_cast<std::size_t>(of)));
  }
  std::vector<std::size_t> order;
  for (std::size_t of = 0; of < logits.size() && wanted.top > 0; ++of) {
    if (std::isfinite(logits[of])) {
      order.push_back(of);
    }
  }
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return logits[a] > logits[b]; });
  std::size_t count = std::min(order.size(), static_cast<std::size_t>(wanted.top));
  details.tied = count > 0 && count < order.size() && logits[order[count]] == logits[order[count - 1]];
  while (details.tied && wanted.ties == Ties::keep && count < order.size() &&
         logits[order[count]] == logits[order[count - 1]]) {
    ++count;
  }
  details.truncated = count > static_cast<std::size_t>(4 * wanted.top);
  order.resize(std::min(count, static_cast<std::size_t>(4 * wanted.top)));
  for (const std::size_t of : order) {
    details.top.push_back({.id = static_cast<std::int64_t>(of), .log_prob = log_prob(of)});
  }
  return details;
}

TEST(TopTokens, AreThoseOfAStableSortInEveryWayAndType) {
  for (const Way& way : every_way()) {
    for (const at::ScalarType type : {at::kFloat, at::kBFloat16, at::kHalf}) {
      for (const std::int64_t vocabulary : {11, 64, 257, 5003}) {
        const at::Tensor logits = hard_logits(vocabulary).to(type);
        at::Tensor ids = at::randint(vocabulary, {logits.size(0), 1}, at::kLong);
        ids[5] = vocabulary - 1;
        const std::vector<TokenRequest> requests = mixed_requests(vocabulary);
        const std::vector<TokenDetails> got = details_of(way, logits, ids, requests);
        ASSERT_EQ(got.size(), requests.size());
        for (std::size_t row = 0; row < got.size(); ++row) {
          SCOPED_TRACE(way.name + " " + c10::toString(type) + " " + std::to_string(vocabulary) + " row " +
                       std::to_string(row));
          const auto index = static_cast<std::int64_t>(row);
          expect_same(got[row], defined_by_a_sort(logits[index], ids[index].item<std::int64_t>(), requests[row]));
        }
      }
    }
  }
}

TEST(TopTokens, OfARowDoNotDependOnWhatStandsBesideIt) {
  const std::int64_t vocabulary = 300;
  const at::Tensor logits = hard_logits(vocabulary);
  const at::Tensor ids = at::zeros({logits.size(0), 1}, at::kLong);
  const std::vector<TokenRequest> requests = mixed_requests(vocabulary);
  for (const Way& way : every_way()) {
    const std::vector<TokenDetails> together = details_of(way, logits, ids, requests);
    for (std::size_t row = 0; row < requests.size(); ++row) {
      SCOPED_TRACE(way.name + " row " + std::to_string(row));
      const auto index = static_cast<std::int64_t>(row);
      const TokenDetails alone =
          details_of(way, logits.narrow(0, index, 1), ids.narrow(0, index, 1), {requests[row]}).front();
      EXPECT_EQ(together[row].log_prob, alone.log_prob);
      EXPECT_EQ(together[row].rank, alone.rank);
      EXPECT_EQ(together[row].top, alone.top);
      EXPECT_EQ(together[row].refused, alone.refused);
    }
  }
}

/// text-generation-inference counts the rows that nonzero() finds something in, so that a row of NaN moves the counts
/// of those behind it. This is that algorithm, and not ours.
TEST(TopTokens, OfTheSourceMoveBetweenRowsWhereOneHoldsNaN) {
  at::Tensor logits = at::tensor({5.0f, 4.0f, 3.0f, 2.0f, 5.0f, 4.0f, 4.0f, 4.0f, 5.0f, 4.0f, 3.0f, 2.0f}).view({3, 4});
  const auto counts_of_source = [&] {
    const at::Tensor nth = std::get<0>(at::topk(logits, 2, 1)).select(1, 1).unsqueeze(1);
    const at::Tensor found = (logits >= nth).nonzero();
    return std::get<2>(at::unique_consecutive(found.select(1, 0), false, true));
  };
  EXPECT_TRUE(at::equal(counts_of_source(), at::tensor({2, 4, 2}, at::kLong)));
  logits[0].fill_(std::numeric_limits<float>::quiet_NaN());
  EXPECT_TRUE(at::equal(counts_of_source(), at::tensor({4, 2}, at::kLong)))
      << "row 1's count now stands in row 0's place";
  const std::vector<TokenRequest> requests(3, {.top = 2});
  for (const Way& way : every_way()) {
    const std::vector<TokenDetails> got = details_of(way, logits, at::zeros({3, 1}, at::kLong), requests);
    EXPECT_TRUE(got[0].refused) << way.name;
    EXPECT_EQ(got[1].top.size(), 4U) << way.name;
    EXPECT_EQ(got[2].top.size(), 2U) << way.name;
  }
}

std::vector<Completion> complete(const std::string& arm, const std::vector<DetailsRequest>& details,
                                 const std::vector<SamplingParameters>& sampling = {}) {
  return generate(engine_for(arm, small_model(small_config())),
                  {.prompts = ragged_prompts(), .max_tokens = 6, .details = details, .sampling = sampling});
}

TEST(Details, MayDifferFromRowToRow) {
  std::vector<DetailsRequest> details(ragged_prompts().size());
  details[0].generated = {.log_prob = true, .top = 3};
  details[2].prompt = {.rank = true, .ids = {7}};
  for (const std::string arm : {"causal", "native", "bigcode,-last-token-lm-head,+chunked-lm-head:tokens=3"}) {
    const std::vector<Completion> got = complete(arm, details);
    ASSERT_EQ(got[0].details.size(), got[0].token_ids.size()) << arm;
    EXPECT_EQ(got[0].details.front().top.size(), 3U) << arm;
    EXPECT_EQ(got[0].details.front().top.front().id, got[0].token_ids.front()) << arm;
    EXPECT_TRUE(got[0].prompt_details.empty()) << arm;
    EXPECT_TRUE(got[2].details.empty()) << arm;
    ASSERT_EQ(got[2].prompt_details.size(), ragged_prompts()[2].size() - 1) << arm;
    EXPECT_EQ(got[2].prompt_details.front().log_probs_of_ids.size(), 1U) << arm;
    EXPECT_TRUE(got[1].details.empty() && got[1].prompt_details.empty()) << arm;
  }
}

TEST(Details, OfPromptsAreTheSameInPieces) {
  const TokenRequest all{.log_prob = true, .rank = true, .top = 4, .ids = {1, 2}};
  const std::vector<Completion> whole = complete("causal,+last-token-lm-head", {{.prompt = all}});
  for (const int tokens : {1, 2, 5, 64}) {
    const std::vector<Completion> pieces =
        complete("causal,+chunked-lm-head:tokens=" + std::to_string(tokens), {{.prompt = all}});
    for (std::size_t row = 0; row < whole.size(); ++row) {
      ASSERT_EQ(pieces[row].prompt_details.size(), whole[row].prompt_details.size());
      EXPECT_EQ(pieces[row].token_ids, whole[row].token_ids);
      for (std::size_t token = 0; token < whole[row].prompt_details.size(); ++token) {
        EXPECT_EQ(pieces[row].prompt_details[token].rank, whole[row].prompt_details[token].rank) << tokens;
        EXPECT_EQ(pieces[row].prompt_details[token].top.size(), whole[row].prompt_details[token].top.size()) << tokens;
        EXPECT_NEAR(pieces[row].prompt_details[token].log_prob, whole[row].prompt_details[token].log_prob, 1e-4);
      }
    }
  }
}

TEST(Details, OfProcessedLogitsAreThoseThatTokensAreDrawnFrom) {
  const SamplingParameters warped{.sample = true, .temperature = 0.7, .top_k = 5, .seed = 11};
  const DetailsRequest request{.generated = {.log_prob = true, .rank = true, .top = 9}, .processed = true};
  for (const std::string arm : {"causal", "native"}) {
    for (const Completion& completion : complete(arm, {request}, {warped})) {
      for (const TokenDetails& token : completion.details) {
        EXPECT_LE(token.top.size(), 5U) << arm << ": top-k drops all others";
        EXPECT_LE(token.rank, 5) << arm;
        double sum = 0;
        for (const TopToken& top : token.top) {
          sum += std::exp(top.log_prob);
        }
        EXPECT_NEAR(sum, 1, 1e-5) << arm;
      }
    }
  }
}

/// A tokenizer of the model's tokens, and of fewer than it has.
std::shared_ptr<const TokenBytes> some_bytes() {
  auto text = std::make_shared<ModelText>();
  text->tokenizer = Tokenizer::load(std::filesystem::path(DECODELAB_TEST_DATA) / "tokenizer" / "gpt2.json");
  return std::make_shared<const TokenBytes>(text, "texts");
}

TEST(Details, HaveTheSameTextsInEveryWayAndOnlyWhereTheyAreWanted) {
  const std::shared_ptr<const TokenBytes> bytes = some_bytes();
  std::vector<DetailsRequest> details(ragged_prompts().size(), {.generated = {.top = 3}, .text = true});
  details[1].text = false;
  details[2].prompt.top = 2;
  for (const std::string way : {"", ",+row-batch-text", ",+batch-text", ",+table-text"}) {
    const std::vector<Completion> got =
        generate(engine_for("causal" + way, small_model(small_config())),
                 {.prompts = ragged_prompts(), .max_tokens = 4, .details = details, .texts = bytes});
    for (std::size_t row = 0; row < got.size(); ++row) {
      ASSERT_EQ(got[row].details.size(), 4U) << way;
      for (std::size_t step = 0; step < 4; ++step) {
        const TokenDetails& token = got[row].details[step];
        const auto expected = [&](std::int64_t id) { return row == 1 ? std::string() : bytes->of({&id, 1}).front(); };
        EXPECT_EQ(token.text, expected(got[row].token_ids[step])) << way << " row " << row;
        for (const TopToken& top : token.top) {
          EXPECT_EQ(top.text, expected(top.id)) << way << " row " << row;
        }
      }
    }
    ASSERT_FALSE(got[2].prompt_details.empty());
    for (const TopToken& top : got[2].prompt_details.front().top) {
      EXPECT_EQ(top.text, bytes->of({&top.id, 1}).front()) << way;
    }
  }
}

TEST(Details, AreRefusedForIdsThatTheVocabularyDoesNotHave) {
  EXPECT_THROW(complete("causal", {{.generated = {.ids = {97}}}}), std::invalid_argument);
  EXPECT_THROW(complete("causal", {{.prompt = {.top = -1}}}), std::invalid_argument);
  EXPECT_THROW(complete("causal", {{}, {}}), std::invalid_argument);
}

}  // namespace
}  // namespace decodelab
