// Decode attention on the CPU's device, against a softmax in double precision, over caches with strides and slots that
// nobody wrote.
#include "engine/kernels/attention/decode_attention.cuh"

#include <algorithm>

#include "tests/cuda_on_cpu/kernel_test.h"

namespace decodelab::cuda_on_cpu {
namespace {

using DecodeAttention = KernelTest;

struct Case {
  std::int64_t kv_heads;
  std::int64_t shared_heads;
  std::int64_t head_dim;
  std::vector<std::int64_t> held;  ///< Of each row.
  std::int64_t processors = 1;
  bool one_length = false;   ///< One number serves all rows.
  std::size_t skew = 0;      ///< Elements that the cache begins behind a multiple of 16 bytes.
  std::int64_t padding = 8;  ///< Elements between the values of one token and the keys of the next.
  std::int64_t window = 0;   ///< Keys that a query sees; 0: all.
  std::int64_t queries = 1;  ///< Of each row, each of which sees one key more than the one before.
};

/// Queries, keys and values as a fused projection and a merged cache hold them. What a row does not see is left
/// unwritten.
template <typename Element>
class Step final {
 public:
  explicit Step(const Case& it)
      : it_(it),
        width_(it.kv_heads * it.head_dim),
        rows_(static_cast<std::int64_t>(it.held.size())),
        queries_(rows_ * it.queries),
        shown_(*std::max_element(it.held.begin(), it.held.end()) + it.queries),
        most_seen_(it.window > 0 ? std::min(it.window, shown_) : shown_),
        query_stride_(width_ * it.shared_heads + 2 * width_),
        token_stride_(2 * width_ + it.padding),
        row_stride_((shown_ + 3) * token_stride_),
        launch_(decode_launch(rows_, it.kv_heads, it.shared_heads, it.head_dim, most_seen_, it.processors)),
        query_("query", queries_ * query_stride_),
        cache_("cache", rows_ * row_stride_, it.skew * sizeof(Element)),
        held_("held", held_before_queries(it)),
        partials_("partials",
                  device_partial_floats(queries_, it.kv_heads, it.shared_heads, it.head_dim, launch_.splits)),
        out_("out", queries_ * width_ * it.shared_heads) {
    Numbers numbers;
    for (std::int64_t query = 0; query < queries_; ++query) {
      for (std::int64_t at = 0; at < width_ * it.shared_heads; ++at) {
        query_.set(query * query_stride_ + at, numbers.next<Element>(2.0f));
      }
    }
    for (std::int64_t row = 0; row < rows_; ++row) {
      const std::int64_t last = row * it.queries + it.queries - 1;
      for (std::int64_t token = first_of(row * it.queries); token <= held_of(last); ++token) {
        for (std::int64_t at = 0; at < 2 * width_; ++at) {
          cache_.set(row * row_stride_ + token * token_stride_ + at, numbers.next<Element>());
        }
      }
    }
  }

  /// Has each block take so many of the queries of a row; 0: as many as it has room for.
  void take_at_once(std::int64_t queries) {
    launch_ = verify_launch(launch_, it_.shared_heads, it_.head_dim, queries == 0 ? it_.queries : queries);
  }
  std::int64_t taken_at_once() const { return launch_.queries; }
  std::vector<double> result() const {
    std::vector<double> numbers;
    for (std::int64_t at = 0; at < out_.size(); ++at) {
      numbers.push_back(out_.number(at));
    }
    return numbers;
  }

  void run() const {
    launch_decode_attention({.element = OfElement<Element>::kType,
                             .batch_size = queries_,
                             .kv_heads = it_.kv_heads,
                             .shared_heads = it_.shared_heads,
                             .head_dim = it_.head_dim,
                             .scale = scale(),
                             .query = query_.data(),
                             .query_stride = query_stride_,
                             .keys = cache_.data(),
                             .values = cache_.data() + width_,
                             .row_stride = row_stride_,
                             .token_stride = token_stride_,
                             .held = held_.data(),
                             .held_stride = it_.one_length ? 0 : 1,
                             .launch = launch_,
                             .partials = partials_.data(),
                             .out = out_.data(),
                             .window = it_.window,
                             .queries_of_keys = it_.queries},
                            nullptr);
  }

  double difference() const {
    Difference off;
    for (std::int64_t head = 0; head < queries_ * it_.kv_heads * it_.shared_heads; ++head) {
      add_head(head, off);
    }
    return off.relative();
  }

 private:
  float scale() const { return 1.0f / std::sqrt(static_cast<float>(it_.head_dim)); }
  static std::vector<std::int64_t> held_before_queries(const Case& it) {
    std::vector<std::int64_t> held;
    for (const std::int64_t of_row : it.held) {
      for (std::int64_t query = 0; query < it.queries; ++query) {
        held.push_back(of_row + query);
      }
    }
    held.resize(it.one_length ? 1 : held.size());
    return held;
  }
  std::int64_t held_of(std::int64_t query) const { return held_[it_.one_length ? 0 : query]; }

  /// The first key that a query sees.
  std::int64_t first_of(std::int64_t query) const {
    return it_.window > 0 ? std::max<std::int64_t>(0, held_of(query) + 1 - it_.window) : 0;
  }

  void add_head(std::int64_t head, Difference& off) const {
    const std::int64_t k = it_.head_dim;
    const std::int64_t of = head / (it_.kv_heads * it_.shared_heads);
    const std::int64_t query = of * query_stride_ + head % (it_.kv_heads * it_.shared_heads) * k;
    const std::int64_t keys = of / it_.queries * row_stride_ + head / it_.shared_heads % it_.kv_heads * k;
    std::vector<double> sums(static_cast<std::size_t>(k));
    double total = 0.0;
    for (std::int64_t token = first_of(of); token <= held_of(of); ++token) {
      const std::int64_t key = keys + token * token_stride_;
      double score = 0.0;
      for (std::int64_t at = 0; at < k; ++at) {
        score += query_.number(query + at) * cache_.number(key + at);
      }
      const double weight = std::exp(score * static_cast<double>(scale()));
      total += weight;
      for (std::int64_t at = 0; at < k; ++at) {
        sums[static_cast<std::size_t>(at)] += weight * cache_.number(key + width_ + at);
      }
    }
    for (std::int64_t at = 0; at < k; ++at) {
      off.add(out_.number(head * k + at), sums[static_cast<std::size_t>(at)] / total);
    }
  }

  Case it_;
  std::int64_t width_;    ///< Of the keys of one token.
  std::int64_t rows_;     ///< Of keys.
  std::int64_t queries_;  ///< Of all rows.
  std::int64_t shown_;
  std::int64_t most_seen_;
  std::int64_t query_stride_;
  std::int64_t token_stride_;
  std::int64_t row_stride_;
  DecodeLaunch launch_;
  Memory<Element> query_;
  Memory<Element> cache_;
  Memory<std::int64_t> held_;
  Memory<float> partials_;
  Memory<Element> out_;
};

template <typename Element>
void expect_attention(const Case& it) {
  SCOPED_TRACE(std::to_string(it.held.size()) + " rows, " + std::to_string(it.kv_heads) + " x " +
               std::to_string(it.shared_heads) + " heads of " + std::to_string(it.head_dim) + ", the first row holds " +
               std::to_string(it.held.front()));
  ASSERT_EQ(decode_shape_refused(it.shared_heads, it.head_dim), "");
  const Step<Element> step(it);
  step.run();
  EXPECT_LE(step.difference(), 4 * OfElement<Element>::kTolerance);
}

TEST_F(DecodeAttention, EqualsTheReferenceForAnyHeadsAndLengths) {
  in_every_type_and_order([]<typename Element>() {
    for (const Case& it : {
             Case{.kv_heads = 1, .shared_heads = 4, .head_dim = 64, .held = {0}},
             {.kv_heads = 1, .shared_heads = 4, .head_dim = 128, .held = {256, 0, 31}, .processors = 4},
             {.kv_heads = 2, .shared_heads = 2, .head_dim = 80, .held = {32, 63}, .processors = 6},
             {.kv_heads = 4, .shared_heads = 1, .head_dim = 64, .held = {40}, .processors = 4},
             {.kv_heads = 1, .shared_heads = 3, .head_dim = 33, .held = {33, 2}},
             {.kv_heads = 1, .shared_heads = 1, .head_dim = 256, .held = {5}},
         }) {
      expect_attention<Element>(it);
    }
  });
}

TEST_F(DecodeAttention, TakesThirtyThreeRowsAndOneLengthForAll) {
  in_every_type_and_order([]<typename Element>() {
    std::vector<std::int64_t> held(33);
    for (std::size_t row = 0; row < held.size(); ++row) {
      held[row] = static_cast<std::int64_t>(row * 5 % 34);
    }
    expect_attention<Element>({.kv_heads = 1, .shared_heads = 2, .head_dim = 16, .held = held});
    expect_attention<Element>(
        {.kv_heads = 1, .shared_heads = 2, .head_dim = 16, .held = {9, 9, 9}, .one_length = true});
  });
}

TEST_F(DecodeAttention, ReadsOfAWindowItsKeysAlone) {
  in_every_type_and_order([]<typename Element>() {
    expect_attention<Element>(
        {.kv_heads = 2, .shared_heads = 3, .head_dim = 64, .held = {100, 3, 40}, .processors = 4, .window = 41});
    expect_attention<Element>({.kv_heads = 1, .shared_heads = 2, .head_dim = 32, .held = {70}, .window = 1});
  });
}

TEST_F(DecodeAttention, GivesEachQueryOfARowTheBitsOfItsOwnStep) {
  in_every_type_and_order([]<typename Element>() {
    // Guesses end within a tile, at its end, behind it, and behind the last split of the first of them.
    for (const Case& it : {
             Case{.kv_heads = 1, .shared_heads = 4, .head_dim = 64, .held = {30, 3}, .processors = 2, .queries = 5},
             {.kv_heads = 2, .shared_heads = 1, .head_dim = 32, .held = {29, 64, 0}, .processors = 12, .queries = 3},
             {.kv_heads = 1, .shared_heads = 3, .head_dim = 20, .held = {0}, .queries = 8},
         }) {
      Step<Element> alone(it);
      Step<Element> together(it);
      together.take_at_once(0);
      ASSERT_EQ(alone.taken_at_once(), 1);
      ASSERT_EQ(together.taken_at_once(), it.queries);
      alone.run();
      together.run();
      EXPECT_LE(alone.difference(), 4 * OfElement<Element>::kTolerance);
      EXPECT_EQ(together.result(), alone.result());
    }
    Step<Element> in_two_blocks({.kv_heads = 1, .shared_heads = 2, .head_dim = 16, .held = {7, 40}, .queries = 5});
    in_two_blocks.take_at_once(3);
    in_two_blocks.run();
    EXPECT_LE(in_two_blocks.difference(), 4 * OfElement<Element>::kTolerance);
    expect_attention<Element>(
        {.kv_heads = 1, .shared_heads = 2, .head_dim = 16, .held = {50, 3}, .window = 20, .queries = 4});
  });
}

TEST_F(DecodeAttention, ReadsACacheThatIsNotAlignedElementByElement) {
  in_every_type_and_order([]<typename Element>() {
    expect_attention<Element>({.kv_heads = 1, .shared_heads = 2, .head_dim = 64, .held = {33}, .skew = 1});
    expect_attention<Element>({.kv_heads = 2, .shared_heads = 1, .head_dim = 24, .held = {7}, .padding = 3});
  });
}

TEST_F(DecodeAttention, EqualsTheReferenceForEveryNumberOfHeadsOfAThread) {
  in_every_type_and_order([]<typename Element>() {
    // Of 256 columns a thread has all heads: 1, 2, 4, .. 64 of them.
    for (const std::int64_t heads : {1, 2, 3, 5, 9, 17, 33}) {
      expect_attention<Element>({.kv_heads = 1, .shared_heads = heads, .head_dim = 132, .held = {3}});
    }
    // More shared memory than a launch has without asking.
    expect_attention<Element>({.kv_heads = 1, .shared_heads = 64, .head_dim = 128, .held = {32}});
  });
  expect_all_launched("attend_splits");
  expect_all_launched("merge_splits");
}

}  // namespace
}  // namespace decodelab::cuda_on_cpu
