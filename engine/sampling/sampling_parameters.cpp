// Refuses sampling parameters without a meaning, and completes the parameters of each row.
#include "engine/sampling/sampling_parameters.h"

#include <cmath>
#include <random>
#include <stdexcept>

#include <fmt/format.h>

namespace decodelab {
namespace {

constexpr int kDrawnSeedBits = 53;

void check_probability(const char* flag, double value) {
  if (!(value > 0 && value <= 1)) {
    throw std::invalid_argument(
        fmt::format("{} {}: expected a probability above 0 and at most 1 (1 keeps all tokens)", flag, value));
  }
}

std::uint64_t random_seed() {
  std::random_device device;
  const std::uint64_t high = device();
  return (high << 32 | device()) >> (64 - kDrawnSeedBits);
}

}  // namespace

void check_sampling(const SamplingParameters& parameters) {
  if (!(parameters.temperature > 0) || !std::isfinite(parameters.temperature)) {
    throw std::invalid_argument(
        fmt::format("--temperature {}: expected a number above 0; leave the sampling flags out for greedy decoding",
                    parameters.temperature));
  }
  if (parameters.top_k < 0) {
    throw std::invalid_argument(
        fmt::format("--top-k {}: expected a number of tokens, or 0 to keep all", parameters.top_k));
  }
  check_probability("--top-p", parameters.top_p);
  check_probability("--typical-p", parameters.typical_p);
  if (!(parameters.repetition_penalty > 0) || !std::isfinite(parameters.repetition_penalty)) {
    throw std::invalid_argument(fmt::format("--repetition-penalty {}: expected a number above 0 (1 changes nothing)",
                                            parameters.repetition_penalty));
  }
  if (!parameters.sample && (parameters.temperature != 1 || parameters.has_top_k() || parameters.has_top_p() ||
                             parameters.has_typical_p() || parameters.seed)) {
    throw std::invalid_argument(
        "--temperature, --top-k, --top-p, --typical-p and --seed do nothing to greedy decoding: add --sample");
  }
}

std::vector<SamplingParameters> complete_sampling(std::span<const SamplingParameters> given, std::int64_t batch_size) {
  const auto rows = static_cast<std::size_t>(batch_size);
  if (given.size() > 1 && given.size() != rows) {
    throw std::invalid_argument(fmt::format(
        "sampling parameters for {} rows came, but the batch has {}: give one for all rows, or one for each",
        given.size(), batch_size));
  }
  std::vector<SamplingParameters> complete(given.begin(), given.end());
  complete.resize(rows, given.empty() ? SamplingParameters{} : given.front());
  for (SamplingParameters& row : complete) {
    check_sampling(row);
    if (row.sample && !row.seed) {
      row.seed = random_seed();
    }
  }
  return complete;
}

}  // namespace decodelab
