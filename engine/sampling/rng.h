// Where the random numbers of sampled rows come from: the interface of a slot, and its reference.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace at {
class Tensor;
}

namespace decodelab {

/// Says which rows a generator is made for: the S sampled rows of one session.
struct RngOptions {
  std::vector<std::uint64_t> seeds;  ///< One per sampled row.
  std::string device;
};

/// Draws tokens at random, for one session.
///
/// All implementations run the exponential race: token i gets a number e_i ~ Exp(1), and the largest p_i / e_i wins
/// with probability p_i / sum(p). It needs no running sum and no copy to the host. Letters: S sampled rows, V
/// vocabulary.
class Rng {
 public:
  virtual ~Rng() = default;

  /// Draws one token per row, [S, 1] int64 on the device, from `probabilities` [S, V] fp32, contiguous. Every call uses
  /// new numbers.
  virtual at::Tensor draw(const at::Tensor& probabilities) = 0;
  /// Draws for some of its S rows only, which are named in order: `probabilities` has one line for each of them. The
  /// state of the others stays as it is, unless one state serves all rows.
  virtual at::Tensor draw(const at::Tensor& probabilities, const std::vector<std::int64_t>& rows) = 0;
  /// Keeps these of its S rows, in this order, each with its state. A row that is named twice draws the same numbers
  /// twice.
  virtual void select(const std::vector<std::int64_t>& rows) = 0;
  /// Appends the rows of `other`, with their states. Both were made by one factory; `other` must not be used
  /// afterwards.
  virtual void append(Rng&& other) = 0;
};

/// The reference: one libtorch generator per row, seeded by the row, and one draw for each. The same seed gives the
/// same tokens whatever else is in the batch, on one kind of device.
std::unique_ptr<Rng> make_row_rng(const RngOptions& options);

}  // namespace decodelab
