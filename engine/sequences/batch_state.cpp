// One loop over the parts of a batch's state.
#include "engine/sequences/batch_state.h"

#include <algorithm>
#include <numeric>
#include <stdexcept>

#include "engine/kernels/philox.h"

namespace decodelab {

bool BatchState::penalizes() const { return std::ranges::any_of(sampling.values, &SamplingParameters::penalizes); }

std::vector<RowPart*> BatchState::parts() {
  std::vector<RowPart*> all{cache.get(), choice.get(), encoded.get(),  history.get(),
                            masks.get(), fed.get(),    proposer.get(), draft_length.get(),
                            &sampling,   &asked,       &details,       &prompt_details,
                            &next_ids,   &last_hidden, &last_logits,   other_ranks.get()};
  std::erase(all, nullptr);
  return all;
}

void BatchState::select(const std::vector<std::int64_t>& rows) {
  for (RowPart* part : parts()) {
    part->select(rows);  // The cache comes first, and refuses rows that are not there.
  }
  if (!penalizes()) {
    history.reset();
  }
}

std::vector<std::pair<RowPart*, RowPart*>> BatchState::pairs_with(BatchState& other) {
  const std::vector<RowPart*> mine = parts();
  const std::vector<RowPart*> theirs = other.parts();
  if (mine.size() != theirs.size()) {
    throw std::logic_error("two batches can be put together only where both have the same parts");
  }
  std::vector<std::pair<RowPart*, RowPart*>> pairs;
  for (std::size_t part = 0; part < mine.size(); ++part) {
    pairs.emplace_back(mine[part], theirs[part]);
  }
  return pairs;
}

void BatchState::append(BatchState& other) {
  for (const auto& [mine, theirs] : pairs_with(other)) {
    mine->append(*theirs);
  }
}

void BatchState::put(const std::vector<std::int64_t>& places, BatchState& other) {
  RowsInPlaces rows{.places = places, .sources = std::vector<std::int64_t>(static_cast<std::size_t>(batch_size()))};
  std::iota(rows.sources.begin(), rows.sources.end(), std::int64_t{0});
  for (std::size_t row = 0; row < places.size(); ++row) {
    rows.sources[static_cast<std::size_t>(places[row])] = batch_size() + static_cast<std::int64_t>(row);
  }
  for (const auto& [mine, theirs] : pairs_with(other)) {
    mine->put(rows, *theirs);
  }
}

void BatchState::truncate(std::int64_t row, std::int64_t length) {
  for (RowPart* part : parts()) {
    part->truncate(row, length);
  }
}

std::uint64_t fork_seed(std::uint64_t seed, std::uint64_t index) {
  constexpr std::uint64_t kExactInJson = (std::uint64_t{1} << 53) - 1;
  constexpr std::uint64_t kForks = ~std::uint64_t{0};  // No step of a row draws from this stream.
  const PhiloxWords words = philox4x32(philox_counter(index, kForks), seed);
  return (std::uint64_t{words.word[0]} << 32 | words.word[1]) & kExactInJson;
}

}  // namespace decodelab
