// Chooses the tokens of all rows together, and finds what typical-p keeps by looking at each row instead of sorting it.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "engine/kernels/elementwise/typical_cut.h"
#include "engine/tensor.h"
#include "profiles/range.h"
#include "variants/registry.h"
#include "variants/token_choice/vectorized_choice.h"

namespace decodelab {
namespace {

constexpr float kDropped = -std::numeric_limits<float>::infinity();

/// A row of logits [1, V] fp32 on a CPU with what the warper computes of it, by libtorch as it does.
struct Row {
  explicit Row(const at::Tensor& of)
      : logits(of.contiguous()),
        log_probs(at::log_softmax(logits, 1)),
        exponentials(log_probs.exp()),
        probs(at::softmax(logits, 1)) {}

  /// Writes the row with what is dropped at -infinity; returns false where it has to be sorted.
  bool cut(float typical_p, float* warped) const {
    const std::int64_t width = logits.size(1);
    const auto* from = logits.const_data_ptr<float>();
    const auto* logs = log_probs.const_data_ptr<float>();
    const float entropy = entropy_of(logs, exponentials.const_data_ptr<float>(), width);
    const std::optional<float> farthest = typical_cut(logs, probs.const_data_ptr<float>(), width, entropy, typical_p);
    for (std::int64_t id = 0; farthest && id < width; ++id) {
      warped[id] = typical_distance(logs[id], entropy) > *farthest ? kDropped : from[id];
    }
    return farthest.has_value();
  }

  at::Tensor logits;
  at::Tensor log_probs;
  at::Tensor exponentials;
  at::Tensor probs;
};

at::Tensor keep_typical_by_a_scan(const at::Tensor& logits, const at::Tensor& typical_p) {
  if (!logits.is_cpu()) {
    return keep_typical_by_sorting(logits, typical_p);
  }
  at::Tensor warped = at::empty(logits.sizes(), logits.options());
  const std::int64_t width = logits.size(1);
  const auto* p = typical_p.const_data_ptr<float>();
  std::vector<std::uint8_t> found(static_cast<std::size_t>(logits.size(0)));
  // A row at a time, so that what is made of it stays in the cache of the core that reads it again.
  at::parallel_for(0, logits.size(0), 1, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t row = first; row < last; ++row) {
      const at::Tensor one = logits.narrow(0, row, 1);
      if (p[row] >= 1) {  // A row without typical-p.
        warped.narrow(0, row, 1).copy_(one);
        found[static_cast<std::size_t>(row)] = 1;
      } else {
        found[static_cast<std::size_t>(row)] =
            Row(one).cut(p[row], warped.mutable_data_ptr<float>() + row * width) ? 1 : 0;
      }
    }
  });
  std::int64_t scanned = 0;
  for (std::int64_t row = 0; row < logits.size(0); ++row) {
    if (found[static_cast<std::size_t>(row)] == 0) {
      warped.narrow(0, row, 1).copy_(keep_typical_by_sorting(logits.narrow(0, row, 1), typical_p.narrow(0, row, 1)));
    }
    scanned += p[row] < 1 ? width : 0;
  }
  count_amount(Amount::scanned_logits, scanned);
  return warped;
}

void apply(EnginePlan& plan, const Parameters&) {
  plan.token_choice.bind("scan-typical", [](const ChoiceOptions& options) {
    return make_vectorized_choice(options, keep_typical_by_a_scan);
  });
}

std::vector<Expectation> expects(const CountedSteps& counted, const Parameters&) {
  std::vector<Expectation> expected = expected_of_vectorized_choice(counted);
  if (counted.sampled && counted.typical_p < 1 && counted.device == "cpu") {
    const std::int64_t rows = counted.batch_size * counted.samples;
    expected.push_back({"scanned_logits", counted.steps * rows * counted.config.vocabulary_size, true});
  }
  return expected;
}

[[maybe_unused]] const bool registered = register_variant({
    .name = "scan-typical",
    .summary = "Chooses as vectorized-choice does, and finds what typical-p keeps without sorting a row, on a CPU.",
    .source = "Ours: a weighted quantile by the bits of floating-point numbers",
    .parameters = {},
    .expects = expects,
    .unsupported = {},
    .apply = apply,
});

}  // namespace
}  // namespace decodelab
