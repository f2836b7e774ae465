// Host side of the kernels that look at rows of logits for the details of tokens.
#pragma once

#include <cstdint>

#include "engine/kernels/device_kernels.h"

struct CUstream_st;

namespace decodelab {

/// A row is looked at in parts of so many logits, and in each by groups, of which the largest logit is kept.
constexpr std::int64_t kScanPart = 2048;
constexpr std::int64_t kScanGroup = 64;
constexpr std::int64_t scan_parts(std::int64_t width) { return (width + kScanPart - 1) / kScanPart; }
constexpr std::int64_t scan_groups(std::int64_t width) { return (width + kScanGroup - 1) / kScanGroup; }

/// What was found in a part of a row.
struct DevicePart {
  float largest;         ///< The lowest finite number where no token of the part can come.
  float sum;             ///< Of e^(logit - largest).
  std::int32_t greater;  ///< Logits that are greater than that of the row's token.
  std::int32_t nans;
};

/// Describes N rows of V logits in device memory, and what is found in them.
struct DeviceScan {
  DeviceElement element;
  std::int64_t rows;         ///< N
  std::int64_t width;        ///< V, at most 2^31 - 1.
  std::int64_t stride;       ///< Elements from one row to the next.
  std::int64_t capacity;     ///< C: how many of the largest logits a row has room for.
  const void* logits;        ///< [N, V]
  const std::int64_t* ids;   ///< [N]: the tokens whose logits others are compared with.
  const std::int64_t* tops;  ///< [N]: how many of the largest logits are wanted; 0: none.
  float* group_maxima;       ///< [N, scan_groups(V)]
  DevicePart* parts;         ///< [N, scan_parts(V)]
  /// [N]: how many logits were written: at least all that are as large as the n-th, or C, of which those that equal it
  /// have the lowest ids.
  std::int32_t* found;
  float* top_logits;      ///< [N, C], in any order.
  std::int32_t* top_ids;  ///< [N, C]
};

/// Launches the scan of all rows, and the search for their largest logits where some are wanted. Asynchronous on
/// `cuda_stream`; the caller checks for launch errors.
void launch_scan_logits(const DeviceScan& scan, bool any_top, CUstream_st* cuda_stream);

}  // namespace decodelab
