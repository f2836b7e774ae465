// Decides from two arms' outputs whether they compute the same thing, before either is timed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reports/store/record.h"

namespace decodelab {

/// What an arm put out for one cell, on the host.
struct OutputTrace {
  /// [row]: what rows begin with in place of the cell's prompts; empty but where an arm is fed a text.
  std::vector<std::vector<std::int64_t>> prompts{};
  /// [row]: the id that the first decode step of a decode cell was fed; empty for a prefill. An arm that is fed the
  /// reference's tokens is fed the reference's first ids too, since arms in 16-bit types may differ in the choice after
  /// a prompt.
  std::vector<std::int64_t> first{};
  std::vector<std::vector<std::int64_t>> tokens;  ///< [step][row]: the ids that the arm chose.
  /// [step][B * V], by rows: what the tokens were chosen from; 16-bit types widened.
  std::vector<std::vector<float>> logits;
  std::int64_t batch = 0;
  std::int64_t vocabulary = 0;
};

struct VerificationResult {
  bool correct = false;
  std::string difference;  ///< The first difference in one sentence; empty where correct.
  std::int64_t ties = 0;   ///< Fed the reference's tokens: rows whose largest logit is another id, by the tie rule.
  double worst = 0;        ///< Largest max|a - b| / max|b| of any row that was compared, b being the reference.
  bool near_tie = false;   ///< Of free runs: `difference` is another choice, and rounding alone can make it.
};

/// Returns the largest max|a - b| / max|b| of a row that does not count as a difference: float32 1e-3, float16 5e-3,
/// bfloat16 3e-2.
///
/// `dtype` may also be fp32, fp16 or bf16. Throws std::invalid_argument, naming the known ones, for any other.
double logit_tolerance(std::string_view dtype);

/// Compares two free runs of greedy decoding in fp32: tokens must be equal.
///
/// Logits may be absent from both traces; where present they differ by about 1e-6 to 1e-4 between right
/// implementations, which `worst` reports, and are a difference beyond logit_tolerance("float32"). NaN, infinity,
/// shapes that differ and no steps at all are differences. Stops at the first difference, for a row that chose another
/// token computes something else from there on. Another choice is a near tie where the reference's two largest logits
/// are closer than twice kRoundingOfFp32 of the largest, the row's logits are within the tolerance, and the candidate
/// chose its own largest, which of equal ones is the first. Then compare_after_near_tie() tells rounding from a fault.
VerificationResult compare_free_running(const OutputTrace& reference, const OutputTrace& candidate);

/// Right implementations in fp32, which sum in other orders, differ by no more than this share of the largest logit
/// where a model reads what it was trained on.
inline constexpr double kRoundingOfFp32 = 1e-4;

/// Compares two runs in fp32 that were both fed the reference's tokens, after free runs parted at a near tie.
///
/// It does so as compare_teacher_forced() does in fp32, but two logits of the reference tie only where they are closer
/// than twice kRoundingOfFp32 of the largest.
VerificationResult compare_after_near_tie(const OutputTrace& reference, const OutputTrace& candidate);

/// Compares two runs that were both fed the reference's tokens, so that rounding does not move the next step: 16-bit
/// types, and fp32 on another engine, whose order of summation is not ours.
///
/// Each row's logits must be within the tolerance of `dtype`, and may have their largest at another id only where the
/// reference's two largest are closer than twice the tolerance times max|b|: rounding alone can swap those, and it
/// counts as a tie. A token that is neither the reference's nor at the candidate's own largest logit is a difference
/// too: its choice is wrong, whatever its logits. NaN, infinity, shapes that differ, absent logits and no steps at all
/// are differences. Ties are counted up to the first difference.
///
/// The tolerance is that of `dtype`, or `bound` where that is more: an arm that is lossy on purpose may differ by it.
VerificationResult compare_teacher_forced(const OutputTrace& reference, const OutputTrace& candidate,
                                          std::string_view dtype, double bound = 0);

/// Most that an arm may be farther from the exact outputs than the reference is: both round, each in its own
/// directions.
inline constexpr double kRoundingOfTheReference = 1.5;
/// No model's rounding excuses more than this, of the largest logit.
inline constexpr double kMostExcusedError = 0.1;

/// Compares the candidate with outputs of the reference plan in float32, fed the same tokens: for models whose rounding
/// in a 16-bit type is itself beyond the tolerance, so that no two right implementations agree within it.
///
/// The tolerance is logit_tolerance(dtype), or where that is more, kRoundingOfTheReference times what the reference in
/// `dtype` is off by from `exact` in its worst row, up to kMostExcusedError; or `bound`. Everything else is as in
/// compare_teacher_forced().
VerificationResult compare_with_exact(const OutputTrace& exact, const OutputTrace& reference,
                                      const OutputTrace& candidate, std::string_view dtype, double bound = 0);

/// Returns how closely two runs agree that were fed the same tokens; nothing where either has no logits, their shapes
/// differ, or a logit is NaN or infinite. It does not judge them: compare_teacher_forced() says what is a difference.
std::optional<Agreement> agreement_of(const OutputTrace& reference, const OutputTrace& candidate);

}  // namespace decodelab
