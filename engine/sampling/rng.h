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

/// What a generator is made for: the S rows of one session that are sampled.
struct RngOptions {
  std::vector<std::uint64_t> seeds;  ///< One a sampled row.
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

  /// One token a row, [S, 1] int64 on the device, from `probabilities` [S, V] fp32, contiguous. Every call goes on to
  /// new numbers.
  virtual at::Tensor draw(const at::Tensor& probabilities) = 0;
  /// Goes on with these of its S rows, in this order, each with the state that it has. A row that is named twice draws
  /// the same numbers twice.
  virtual void select(const std::vector<std::int64_t>& rows) = 0;
  /// Puts the rows of `other`, with their states, under its own. Both were made by one factory; `other` is of no use
  /// afterwards.
  virtual void append(Rng&& other) = 0;
};

/// The reference: a generator of libtorch for each row, seeded by the row, and a draw for each. The same seed gives the
/// same tokens whatever else is in the batch, on one kind of device.
std::unique_ptr<Rng> make_row_rng(const RngOptions& options);

}  // namespace decodelab
