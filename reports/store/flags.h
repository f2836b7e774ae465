// Flags of rows that are set by one part of the program and read by another.
#pragma once

namespace decodelab {

/// The flag of a row whose arm is lossy on purpose: its logits may be off by what its variants allow, and how far they
/// are stands in the row.
inline constexpr const char* kLossyFlag = "lossy";

}  // namespace decodelab
