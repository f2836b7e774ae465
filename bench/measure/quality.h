// How well an arm predicts a text, beside the reference in fp32.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "bench/measure/cell_outputs.h"
#include "bench/measure/verification.h"
#include "bench/plan/quality_text.h"
#include "reports/store/record.h"
#include "reports/store/store.h"

namespace decodelab {

/// Tokens of a text that a row is given before it predicts, and that it predicts; and the rows of a batch. A row costs
/// a prefill and as many decode steps as it predicts, and each predicts from 64 to 127 tokens of context.
inline constexpr std::int64_t kQualityContext = 64;
inline constexpr std::int64_t kQualitySteps = 64;
inline constexpr std::int64_t kQualityRows = 8;

/// Cuts a text into batches of what rows are given (`prompts`) and are then fed (`tokens`): rows predict neighbouring
/// pieces of it, and what remains at its end is left out. None where the text is shorter than one row.
std::vector<OutputTrace> quality_batches(std::span<const std::int64_t> ids);

/// Sums over predicted tokens what a QualityRecord says of them.
class QualitySums {
 public:
  /// Adds the tokens of a batch. Throws std::invalid_argument where either trace lacks logits, has other shapes, or a
  /// logit that is NaN or infinite.
  void add(const OutputTrace& fed, const OutputTrace& exact, const OutputTrace& got);
  QualityRecord record(std::int64_t arm_id) const;

 private:
  struct Token {
    double exact_log_prob;  ///< Of the text's token.
    double log_prob;
    double kl_divergence;
    bool same_top;
  };
  std::vector<Token> tokens_;
};

/// Returns in one sentence which limit of `limit` a quality is surely beyond: by more than 1.96 of its standard errors;
/// empty where it is beyond none.
std::string beyond_limit(const QualityLimit& limit, const QualityRecord& quality);

/// What a run wants to know of its arms' quality.
struct QualityPlan {
  std::vector<std::int64_t> ids{};  ///< Of the text; empty: nothing.
  QualityLimit limit{};
};

/// Lets the arms of a run that have open rows and ask nothing of a row, and the reference in fp32, predict the text of
/// `plan`. Keeps their qualities in the store and in `data`; an arm that cannot predict has a reason in its place. The
/// open rows of an arm that is beyond a limit become incorrect. Does nothing for arms whose quality is kept already.
void keep_qualities(Store& store, RunData& data, const ArmWorkers& workers, const QualityPlan& plan);

}  // namespace decodelab
