// What is recorded into CUDA graphs, and for which sizes: arithmetic, without CUDA or torch.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <vector>

namespace decodelab {

/// Whether attention is recorded with the rest of a step, or runs between the recorded parts.
enum class GraphScope : std::uint8_t { whole_step, around_attention };

/// The sizes that steps are rounded up to, so that few graphs serve all.
struct GraphBuckets {
  std::int64_t most_rows =
      256;  ///< Batches up to this many rows are filled up to a power of two; larger ones run as they are.
  std::int64_t keys_multiple = 256;  ///< Shown keys are a multiple of this, or all that a row may hold.

  std::int64_t rows(std::int64_t batch_size) const;
  /// Keys that a step is shown whose longest row holds `needed` with the new one; rows never hold more than
  /// `max_tokens`.
  std::int64_t keys(std::int64_t needed, std::int64_t max_tokens) const;
  /// All that steps from `needed` keys on will ask for, longest first: the largest graph makes the memory that the
  /// others share.
  std::vector<std::int64_t> all_keys(std::int64_t needed, std::int64_t max_tokens) const;
};

/// What a graph was recorded for; `keys` is 0 where attention is not part of it.
struct GraphKey {
  std::int64_t rows = 0;
  std::int64_t keys = 0;
  std::int64_t tokens = 1;  ///< Of each row: more in a pass over guesses.
  auto operator<=>(const GraphKey&) const = default;
};

/// One recorded part of a step around attention: what follows the attention of layer `after`, and what precedes that of
/// layer `before`.
struct GraphSegment {
  std::optional<std::int64_t> after;   ///< None: the embedding comes first.
  std::optional<std::int64_t> before;  ///< None: the head comes last.
  bool operator==(const GraphSegment&) const = default;
};
/// `layers` + 1 parts, in the order in which they run.
std::vector<GraphSegment> segments_around_attention(std::int64_t layers);

/// Runs before a recording, so that libraries choose their kernels and make their workspaces outside of it: the first
/// one makes what the second one finds.
constexpr int kRehearsals = 2;

/// Graphs that one step launches.
std::int64_t graph_launches_of_step(GraphScope scope, std::int64_t layers);

/// Notices that keys and values moved, after which graphs would write to memory that is no longer theirs.
class AddressWatch {
 public:
  /// True when `addresses` are others than last time; the first time they are not.
  bool moved(std::vector<const void*> addresses);

 private:
  std::vector<const void*> last_;
};

}  // namespace decodelab
