// Every cache holds what was appended, whatever the lengths, and zero behind it.
#include "engine/layers/kv_cache.h"

#include <gtest/gtest.h>

#include "engine/layers/kv_pages.h"
#include "engine/layers/step_rows.h"
#include "engine/layers/step_tensors.h"
#include "engine/tensor.h"

namespace decodelab {
namespace {

constexpr std::int64_t kLayers = 2;
constexpr std::int64_t kRows = 3;
constexpr std::int64_t kWidth = 6;
constexpr std::int64_t kMaxTokens = 40;

KvCacheOptions options() {
  return {.layers = kLayers,
          .batch_size = kRows,
          .width = kWidth,
          .max_tokens = kMaxTokens,
          .dtype = ElementType::float32,
          .device = "cpu"};
}

using MakeCache = std::unique_ptr<KvCache> (*)(const KvCacheOptions&);

struct NamedCache {
  std::string name;
  MakeCache maker;
  KvLayout layout = KvLayout::split;
  KeyMultiple key_multiple = 1;

  std::unique_ptr<KvCache> make() const {
    KvCacheOptions made_for = options();
    made_for.layout = layout;
    made_for.key_multiple = key_multiple;
    return maker(made_for);
  }
};

std::unique_ptr<KvCache> growing(const KvCacheOptions& options) {
  return make_growing_cache(options, [](std::int64_t needed) { return (needed + 7) / 8 * 8; });
}
std::unique_ptr<KvCache> preallocated(const KvCacheOptions& options) {
  return make_preallocated_cache(options, kMaxTokens);
}

std::vector<NamedCache> every_cache() {
  std::vector<NamedCache> caches;
  for (const auto& [name, maker] : {std::pair<std::string, MakeCache>("concatenated", make_concatenated_cache),
                                    {"growing", growing},
                                    {"preallocated", preallocated},
                                    {"paged", make_paged_cache}}) {
    for (const KvLayout layout : {KvLayout::split, KvLayout::merged}) {
      for (const KeyMultiple multiple : {1, 5, 16}) {
        caches.push_back({name + (layout == KvLayout::merged ? "_merged_" : "_split_") + std::to_string(multiple),
                          maker, layout, multiple});
      }
    }
  }
  return caches;
}

class KvCacheTest : public ::testing::TestWithParam<NamedCache> {};

/// Appends random tokens to `cache` and to plain lists, and compares.
class Mirror {
 public:
  explicit Mirror(KvCache& cache) : cache_(cache), held_(static_cast<std::size_t>(kLayers)) {
    for (auto& layer : held_) {
      layer.resize(static_cast<std::size_t>(kRows));
    }
  }

  void append(const std::vector<std::int64_t>& added) {
    // Rows of different lengths come padded and packed in turn.
    const PrefillLayout layout = appends_++ % 2 == 0 ? PrefillLayout::padded : PrefillLayout::packed;
    const StepRows rows(cache_.lengths(), added, kMaxTokens, at::kCPU, layout);
    for (std::int64_t layer = 0; layer < kLayers; ++layer) {
      const at::Tensor tokens = at::rand({rows.batch_size(), rows.tokens(), kWidth});
      const KeysValues got = cache_.append(layer, rows.packed(tokens), rows);
      ASSERT_EQ(got.keys.size(1), cache_.shown_keys(rows));
      ASSERT_GE(got.keys.size(1), rows.keys()) << "keys beyond these are hidden by rows.visible()";
      for (std::int64_t row = 0; row < rows.batch_size(); ++row) {
        Row& list = held_[static_cast<std::size_t>(layer)][static_cast<std::size_t>(row)];
        for (std::int64_t token = 0; token < added[static_cast<std::size_t>(row)]; ++token) {
          list.push_back(tokens[row][token]);
        }
        const auto length = static_cast<std::int64_t>(list.size());
        const at::Tensor expected = list.empty() ? at::empty({0, kWidth}) : at::stack(list);
        const at::Tensor joined = at::cat({got.keys[row], got.values[row]}, 1);
        EXPECT_TRUE(at::equal(joined.narrow(0, 0, length), expected)) << "layer " << layer << " row " << row;
        const std::int64_t tail = joined.size(0) - length;
        EXPECT_TRUE(joined.narrow(0, length, tail).isfinite().all().item<bool>())
            << "tail of layer " << layer << " row " << row;
      }
    }
    cache_.advance(rows);
  }

  void truncate(std::int64_t row, std::int64_t length) {
    cache_.truncate(row, length);
    for (auto& layer : held_) {
      layer[static_cast<std::size_t>(row)].resize(static_cast<std::size_t>(length));
    }
  }

  void filter(const std::vector<std::int64_t>& kept) {
    cache_.select(kept);
    for (auto& layer : held_) {
      std::vector<Row> rows;
      for (const std::int64_t row : kept) {
        rows.push_back(layer[static_cast<std::size_t>(row)]);
      }
      layer = std::move(rows);
    }
  }

  void concatenate(Mirror& other) {
    cache_.append(other.cache_);
    for (std::size_t layer = 0; layer < held_.size(); ++layer) {
      held_[layer].insert(held_[layer].end(), other.held_[layer].begin(), other.held_[layer].end());
    }
  }

 private:
  using Row = std::vector<at::Tensor>;

  KvCache& cache_;
  int appends_ = 0;
  std::vector<std::vector<Row>> held_;  ///< By layer, then by row.
};

TEST_P(KvCacheTest, SaysHowManySlotsItTakesBeforeItTakesThem) {
  KvCacheOptions no_rows = options();
  no_rows.batch_size = 0;
  no_rows.layout = GetParam().layout;
  no_rows.key_multiple = GetParam().key_multiple;
  const std::unique_ptr<KvCache> rule = GetParam().maker(no_rows);
  EXPECT_EQ(rule->bytes(), 0);
  const std::unique_ptr<KvCache> cache = GetParam().make();
  Mirror(*cache).append({10, 10, 10});
  EXPECT_EQ(cache->bytes(), kLayers * kRows * kWidth * rule->slots_of(10) * static_cast<std::int64_t>(sizeof(float)));
}

TEST_P(KvCacheTest, HoldsUniformRows) {
  const auto cache = GetParam().make();
  Mirror mirror(*cache);
  mirror.append({5, 5, 5});
  for (int step = 0; step < 12; ++step) {
    mirror.append({1, 1, 1});
  }
  EXPECT_EQ(cache->lengths(), (std::vector<std::int64_t>{17, 17, 17}));
}

TEST_P(KvCacheTest, HoldsRaggedRowsWithFiniteTails) {
  const auto cache = GetParam().make();
  Mirror mirror(*cache);
  mirror.append({5, 1, 9});
  for (int step = 0; step < 10; ++step) {
    mirror.append({1, 1, 1});
  }
  mirror.append({2, 4, 1});
  EXPECT_EQ(cache->lengths(), (std::vector<std::int64_t>{17, 15, 20}));
}

TEST_P(KvCacheTest, ForgetsTruncatedTokensAndWritesOverThem) {
  const auto cache = GetParam().make();
  Mirror mirror(*cache);
  mirror.append({6, 6, 6});
  mirror.append({3, 3, 3});
  mirror.truncate(0, 4);
  mirror.truncate(1, 8);
  mirror.truncate(2, 7);
  mirror.append({1, 1, 1});
  for (std::int64_t row = 0; row < kRows; ++row) {
    mirror.truncate(row, 5);
  }
  mirror.append({1, 1, 1});
  EXPECT_EQ(cache->lengths(), (std::vector<std::int64_t>{6, 6, 6}));
}

TEST_P(KvCacheTest, TruncatesWithoutTouchingMemoryUntilItIsShrunk) {
  const auto cache = GetParam().make();
  Mirror mirror(*cache);
  mirror.append({20, 20, 20});
  const std::int64_t bytes = cache->bytes();
  const std::vector<const void*> addresses = cache->addresses();
  for (std::int64_t row = 0; row < kRows; ++row) {
    mirror.truncate(row, 2 + row);
  }
  EXPECT_EQ(cache->bytes(), bytes);
  EXPECT_EQ(cache->addresses(), addresses);
  cache->shrink();
  EXPECT_LE(cache->bytes(), kLayers * kRows * kWidth * std::max<std::int64_t>(cache->slots_of(4), 4) *
                                static_cast<std::int64_t>(sizeof(float)));
  mirror.append({1, 1, 1});
  EXPECT_EQ(cache->lengths(), (std::vector<std::int64_t>{3, 4, 5}));
}

TEST_P(KvCacheTest, LeavesARowAsItIsThatAddsNothing) {
  const auto cache = GetParam().make();
  Mirror mirror(*cache);
  mirror.append({3, 0, 2});
  mirror.append({0, 4, 1});
  mirror.append({1, 0, 0});
  EXPECT_EQ(cache->lengths(), (std::vector<std::int64_t>{4, 4, 3}));
}

TEST_P(KvCacheTest, RefusesMoreTokensThanItWasMadeFor) {
  const auto cache = GetParam().make();
  const StepRows rows(cache->lengths(), {kMaxTokens + 1, 1, 1}, kMaxTokens + 1, at::kCPU);
  EXPECT_THROW(cache->append(0, at::zeros({kRows, kMaxTokens + 1, kWidth}), rows), std::length_error);
}

TEST_P(KvCacheTest, RefusesToTruncateToMoreThanItHolds) {
  const auto cache = GetParam().make();
  Mirror mirror(*cache);
  mirror.append({2, 2, 2});
  EXPECT_THROW(cache->truncate(1, 3), std::invalid_argument);
  EXPECT_THROW(cache->truncate(1, -1), std::invalid_argument);
}

TEST_P(KvCacheTest, KeepsTheRowsThatAFilterNamesInTheirNewOrder) {
  const auto cache = GetParam().make();
  Mirror mirror(*cache);
  mirror.append({5, 9, 2});
  mirror.append({1, 1, 1});
  mirror.filter({2, 0});
  EXPECT_EQ(cache->lengths(), (std::vector<std::int64_t>{3, 6}));
  for (int step = 0; step < 9; ++step) {
    mirror.append({1, 1});
  }
  mirror.filter({1});
  mirror.append({1});
  EXPECT_THROW(cache->select({1}), std::invalid_argument);
  EXPECT_THROW(cache->select({}), std::invalid_argument);
}

TEST_P(KvCacheTest, TakesTheRowsOfAnotherCacheUnderItsOwn) {
  const auto cache = GetParam().make();
  const auto other = GetParam().make();
  Mirror mirror(*cache);
  Mirror arriving(*other);
  mirror.append({5, 5, 5});
  mirror.append({1, 1, 1});
  arriving.append({11, 2, 1});
  mirror.concatenate(arriving);
  EXPECT_EQ(cache->lengths(), (std::vector<std::int64_t>{6, 6, 6, 11, 2, 1}));
  EXPECT_TRUE(other->lengths().empty());
  for (int step = 0; step < 9; ++step) {
    mirror.append({1, 1, 1, 1, 1, 1});
  }
  mirror.filter({5, 3, 0});
  mirror.append({1, 1, 1});
}

TEST_P(KvCacheTest, TakesRowsThatHoldNothingYetAndRowsUnderSuch) {
  for (const bool fresh_arrives : {true, false}) {
    const auto cache = GetParam().make();
    const auto other = GetParam().make();
    Mirror mirror(*cache);
    Mirror arriving(*other);
    (fresh_arrives ? mirror : arriving).append({5, 1, 3});
    mirror.concatenate(arriving);
    EXPECT_EQ(cache->lengths(), fresh_arrives ? (std::vector<std::int64_t>{5, 1, 3, 0, 0, 0})
                                              : (std::vector<std::int64_t>{0, 0, 0, 5, 1, 3}));
    mirror.append({1, 1, 1, 1, 1, 1});
    mirror.filter({3, 2});
    mirror.append({1, 1});
  }
}

TEST_P(KvCacheTest, RefusesTheRowsOfACacheOfAnotherShape) {
  const auto cache = GetParam().make();
  KvCacheOptions wider = cache->options();
  wider.width += 2;
  const auto other = GetParam().maker(wider);
  EXPECT_THROW(cache->append(*other), std::invalid_argument);
}

INSTANTIATE_TEST_SUITE_P(All, KvCacheTest, ::testing::ValuesIn(every_cache()),
                         [](const auto& one) { return one.param.name; });

TEST(GrowingCache, AllocatesOnlyWhenItsRuleSays) {
  const auto cache = growing(options());
  Mirror mirror(*cache);
  mirror.append({5, 5, 5});
  const std::int64_t at_first = cache->bytes();
  EXPECT_EQ(at_first, kLayers * kRows * 8 * kWidth * 4);
  mirror.append({3, 3, 3});
  EXPECT_EQ(cache->bytes(), at_first);
  mirror.append({1, 1, 1});
  EXPECT_EQ(cache->bytes(), 2 * at_first);
}

TEST(GrowingCache, ShowsADecodeStepAMultipleOfItsKeysAndAPrefillItsOwn) {
  KvCacheOptions padded = options();
  padded.key_multiple = 8;
  const auto cache = growing(padded);
  const StepRows prompt(cache->lengths(), {5, 5, 5}, kMaxTokens, at::kCPU);
  EXPECT_EQ(cache->append(0, at::rand({kRows, 5, kWidth}), prompt).keys.size(1), 5);
  cache->advance(prompt);
  const StepRows step(cache->lengths(), {1, 1, 1}, kMaxTokens, at::kCPU);
  const KeysValues got = cache->append(0, at::rand({kRows, 1, kWidth}), step);
  EXPECT_EQ(got.keys.size(1), 8);
  EXPECT_TRUE(got.keys.is_contiguous() && got.values.is_contiguous()) << "or batched products copy it";
  EXPECT_EQ(step.visible(8).sum().item<std::int64_t>(), 6);
}

TEST(GrowingCache, KeepsTheRoomThatArrivingRowsWereMadeFor) {
  const auto made_for = [](std::int64_t tokens) {
    KvCacheOptions one = options();
    one.max_tokens = tokens;
    return make_preallocated_cache(one, tokens);
  };
  const auto cache = made_for(10);
  const auto other = made_for(30);
  Mirror mirror(*cache);
  Mirror arriving(*other);
  mirror.append({2, 2, 2});
  arriving.append({2, 2, 2});
  mirror.concatenate(arriving);
  EXPECT_EQ(cache->options().max_tokens, 30);
  mirror.filter({0, 5});
  EXPECT_EQ(cache->bytes(), kLayers * 2 * 30 * kWidth * 4) << "or each step would allocate from 10 tokens on";
}

constexpr std::int64_t kPageBytes = kPageTokens * kWidth * 4;

/// A cache of one layer whose rows hold `tokens` tokens each.
std::unique_ptr<KvCache> paged(std::int64_t rows, std::int64_t tokens) {
  KvCacheOptions one = options();
  one.layers = 1;
  one.batch_size = rows;
  one.max_tokens = one.positions = 2 * kPageTokens;
  auto cache = make_paged_cache(one);
  const StepRows step(cache->lengths(), std::vector<std::int64_t>(static_cast<std::size_t>(rows), tokens),
                      one.positions, at::kCPU);
  cache->append(0, at::rand({rows, tokens, kWidth}), step);
  cache->advance(step);
  return cache;
}

TEST(PagedCache, SharesThePagesOfAForkAndCopiesOnlyTheOneThatIsWritten) {
  const auto cache = paged(1, kPageTokens + 3);
  EXPECT_EQ(cache->bytes(), 2 * kPageBytes);
  const at::Tensor prompt = cache->copy_of(0);
  cache->select({0, 0, 0});
  EXPECT_EQ(cache->bytes(), 2 * kPageBytes) << "nothing is copied";
  const StepRows step(cache->lengths(), {1, 1, 1}, 2 * kPageTokens, at::kCPU);
  const at::Tensor tokens = at::rand({3, 1, kWidth});
  const KeysValues got = cache->append(0, tokens, step, true);
  cache->advance(step);
  EXPECT_EQ(cache->bytes(), (1 + 3) * kPageBytes) << "each writes into a last page of its own";
  ASSERT_NE(got.pages, nullptr);
  EXPECT_EQ(got.pages->of_a_row, 2);
  EXPECT_EQ(got.pages->at[0], got.pages->at[2]);
  EXPECT_NE(got.pages->at[1], got.pages->at[3]);
  for (std::int64_t row = 0; row < 3; ++row) {
    const at::Tensor all = cache->copy_of(0, row, 0, kPageTokens + 4)[0];
    EXPECT_TRUE(at::equal(all.narrow(0, 0, kPageTokens + 3), prompt[0]));
    EXPECT_TRUE(at::equal(all[kPageTokens + 3], tokens[row][0]));
  }
  cache->select({1});
  EXPECT_EQ(cache->bytes(), 2 * kPageBytes) << "a fork outlives the others, and theirs are freed";
}

TEST(PagedCache, MovesNoPageOfRowsThatJoinOrLeave) {
  const auto cache = paged(2, 5);
  const auto other = paged(1, 7);
  std::vector<const void*> expected = cache->addresses();
  expected.push_back(other->addresses().front());
  cache->append(*other);
  EXPECT_EQ(cache->addresses(), expected);
  cache->select({2, 0});
  EXPECT_EQ(cache->addresses(), (std::vector<const void*>{expected[2], expected[0]}));
}

TEST(PagedCache, WritesOverWhatATruncatedForkHeldWithoutTouchingItsParent) {
  const auto cache = paged(1, 10);
  const at::Tensor prompt = cache->copy_of(0);
  cache->select({0, 0});
  cache->truncate(1, 4);
  const StepRows step(cache->lengths(), {0, 1}, 2 * kPageTokens, at::kCPU);
  cache->append(0, at::rand({2, 1, kWidth}), step, true);
  cache->advance(step);
  EXPECT_TRUE(at::equal(cache->copy_of(0, 0, 0, 10), prompt));
  EXPECT_TRUE(at::equal(cache->copy_of(0, 1, 0, 4)[0], prompt[0].narrow(0, 0, 4)));
}

TEST(ConcatenatedCache, HoldsNoSlotMoreThanItsTokens) {
  const auto cache = make_concatenated_cache(options());
  Mirror mirror(*cache);
  mirror.append({5, 5, 5});
  mirror.append({1, 1, 1});
  EXPECT_EQ(cache->bytes(), kLayers * kRows * 6 * kWidth * 4);
}

}  // namespace
}  // namespace decodelab
