// The state of a batch of sequences: all that has something for each row, so that rows leave, come, fork and are cut in
// one place.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "engine/layers/encoded_prompts.h"
#include "engine/layers/kv_cache.h"
#include "engine/ranks/rank_leader.h"
#include "engine/sampling/row_masks.h"
#include "engine/sampling/sampling_parameters.h"
#include "engine/sampling/token_choice.h"
#include "engine/sampling/token_details.h"
#include "engine/sampling/token_history.h"
#include "engine/sequences/draft_length.h"
#include "engine/sequences/proposer.h"
#include "engine/sequences/row_values.h"

namespace decodelab {

struct BatchState {
  std::unique_ptr<KvCache> cache;
  std::unique_ptr<TokenChoice> choice;
  std::unique_ptr<EncodedPrompts> encoded;              ///< Null for a decoder alone, and before the prompts.
  std::unique_ptr<TokenHistory> history;                ///< Null where no row penalizes repetitions.
  std::unique_ptr<RowMasks> masks;                      ///< Null where no row has rules.
  std::unique_ptr<RowTokens> fed;                       ///< Null where the cache keeps keys and values.
  std::unique_ptr<RankSession> other_ranks;             ///< Null but on the first of ranks that share the model.
  std::unique_ptr<Proposer> proposer;                   ///< Null where nobody guesses.
  std::unique_ptr<DraftLength> draft_length;            ///< Null where the proposer alone says how much it guesses.
  RowValues<SamplingParameters> sampling;               ///< Of each row, as complete_sampling() returns them.
  RowValues<DetailsRequest> asked;                      ///< Of each row.
  RowValues<DetailsRequest> details;                    ///< What the policy computes of each row.
  RowValues<std::vector<TokenDetails>> prompt_details;  ///< Not yet returned; of tokens that were fed.
  RowTensor next_ids;                                   ///< [B, 1] int64 on the device: what decode() will feed.
  RowTensor last_hidden;                                ///< [B, d], of the same tokens before the last norm; undefined
                                                        ///< where nobody looks at it, or a decode step left none.
  RowTensor last_logits;                                ///< [B, V], of the last token that each row was fed.

  std::int64_t batch_size() const { return cache->options().batch_size; }
  bool penalizes() const;

  /// Do what RowPart's functions do, for every part. Rows that are left without a penalty need no history.
  void select(const std::vector<std::int64_t>& rows);
  /// Both batches have a history where either has one, and masks; `other` must not be used afterwards.
  void append(BatchState& other);
  void put(const std::vector<std::int64_t>& places, BatchState& other);
  void truncate(std::int64_t row, std::int64_t length);

 private:
  std::vector<RowPart*> parts();
  std::vector<std::pair<RowPart*, RowPart*>> pairs_with(BatchState& other);
};

/// Returns the seed of a fork of a row: that of sample `index` of a row with this seed. Different pairs have different
/// random numbers but for chance; below 2^53, as complete_sampling() draws them.
std::uint64_t fork_seed(std::uint64_t seed, std::uint64_t index);

}  // namespace decodelab
