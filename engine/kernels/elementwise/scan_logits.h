// One look at a row of logits: its log-sum-exp, the rank of a token, and bounds that say where the largest ones are.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "base/round_up.h"
#include "engine/kernels/cpu_isa.h"

namespace decodelab {

/// A row is looked at in blocks of so many logits, of which the largest is kept.
inline constexpr std::int64_t kScanBlock = 64;
constexpr std::int64_t scan_blocks(std::int64_t width) { return divided_up(width, kScanBlock); }

/// What was found in a row of logits, or in a part of one.
struct LogitScan {
  float largest = -std::numeric_limits<float>::infinity();
  double sum = 0;            ///< Of e^(logit - largest).
  std::int64_t greater = 0;  ///< Logits that are strictly greater than the one that was asked about.
  bool has_nan = false;

  /// Returns whether the row says how likely its tokens are: no logit is NaN or +infinity, and some are above
  /// -infinity. Else nothing but this means anything.
  bool is_distribution() const;
  /// Returns the log-probability of a token of the whole row.
  float log_prob(float logit) const;
};

/// Returns what was found in two parts of a row together.
LogitScan merged(const LogitScan& a, const LogitScan& b);

/// Scans the logits [first, last) of a row in fp32, fp16 or bf16, and writes the largest of each block to
/// `block_maxima`, which is that of the whole row. `first` is a multiple of kScanBlock. Exponentials are taken in fp32,
/// within 2 units in the last place, and summed in fp64 block by block.
LogitScan scan_logits(const void* row, ElementType dtype, std::int64_t first, std::int64_t last, float asked_about,
                      float* block_maxima, CpuIsa isa);

/// A token and its logit.
struct RankedLogit {
  float logit;
  std::int64_t id;

  bool operator==(const RankedLogit&) const = default;
};

/// Whether logits that equal the n-th largest are all returned, or only those of the lowest ids, up to n in all.
enum class Ties : std::uint8_t { keep, cut };

/// The n largest logits of a row, in falling order, equal ones by their ids. Logits of -infinity, of tokens that cannot
/// come, are left out.
struct LargestLogits {
  std::vector<RankedLogit> logits;
  bool tied = false;       ///< More logits than n are as large as the n-th.
  bool truncated = false;  ///< Not all of them are here, although they were to be kept: there are over 4 n.
};

/// Returns the n largest of some logits of a row, in any order: all that are no smaller than the n-th largest are among
/// them.
LargestLogits largest_of(std::vector<RankedLogit> some, std::int64_t n, Ties ties);

/// Returns the n largest of `width` logits. `block_maxima` is what scan_logits() wrote: the n-th largest of them is no
/// larger than the n-th logit, so that only blocks that reach it are read again. Reads O(width / 64 + 64 n) numbers and
/// as many more as there are ties.
LargestLogits largest_logits(const void* row, ElementType dtype, std::int64_t width,
                             std::span<const float> block_maxima, std::int64_t n, Ties ties, CpuIsa isa);

/// Returns one logit as fp32.
float logit_at(const void* row, ElementType dtype, std::int64_t id);

}  // namespace decodelab
