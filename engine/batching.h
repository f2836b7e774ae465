// A batch that changes while it decodes: requests join it as others end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "engine/batch_rows.h"
#include "engine/completion.h"
#include "engine/prefix_store.h"

namespace decodelab {

/// One request: completions of one prompt.
struct BatchRequest {
  std::vector<std::int64_t> prompt;  ///< Token ids, at least one.
  std::int64_t max_tokens = 16;      ///< Tokens of each completion, at least 1.
  SamplingParameters sampling{};     ///< Sample i of several draws with fork_seed(seed, i), as in generate().
  TokenRules rules{};
  DetailsRequest details{};
  std::int64_t samples = 1;
  /// Called with each token of a sample; returning true ends the sample after that token. May be empty.
  std::function<bool(std::size_t sample, std::int64_t token_id)> stops{};
};

/// What holds for all requests of a batch.
struct BatchingOptions {
  std::int64_t max_rows = 8;  ///< Samples that are decoded at a time.
  /// Tokens that rows at hand may come to hold, prompts and completions together; 0: any number.
  std::int64_t max_tokens_in_flight = 0;
  /// Prompt tokens that a row is fed between two decode steps, so that those that decode do not wait for long prompts;
  /// 0: prompts are fed whole; empty: what the plan's BatchingRule says. An encoder reads its prompts whole.
  std::optional<std::int64_t> prefill_chunk{};
  std::vector<std::int64_t> eos_token_ids{};
  std::shared_ptr<const MaskVocabulary> vocabulary{};  ///< Needed of requests with a pattern.
  std::shared_ptr<const TokenBytes> texts{};           ///< As in SessionOptions.
  /// Keeps what prompts leave, for prompts that begin alike; null: none. An engine whose plan reuses no
  /// prefixes does not use it. It outlives the batch.
  PrefixStore* prefixes = nullptr;
};

struct FinishedRequest {
  std::int64_t id = 0;
  std::vector<Completion> samples;
};

/// What a batch has done so far.
struct BatchCounts : BatchRowCounts {
  std::int64_t prefill_chunks = 0;  ///< Calls of Session::extend().
  std::int64_t prefilled_tokens = 0;
  std::int64_t reused_tokens = 0;  ///< Prompt tokens whose keys the prefix store had.
};

/// Decodes requests under an engine, which must outlive it. The plan's slot `batching` says when requests join the rows
/// that decode: all at once, as in a static batch, or as others end (continuous batching: Orca, Yu et al. 2022;
/// text-generation-inference's batches). With one generator of random numbers per row, a request gets the tokens that
/// it would get alone, whatever runs beside it. Used by one thread at a time.
class ContinuousBatch {
 public:
  /// Throws std::invalid_argument for limits below 0 or a batch of no rows.
  ContinuousBatch(const Engine& engine, BatchingOptions options);
  ~ContinuousBatch();

  /// Takes a request, and returns its id: 0, 1, .. in order. Throws std::invalid_argument for one that could never run:
  /// what generate() throws, more samples than rows, more tokens than may be in flight.
  std::int64_t submit(BatchRequest request);
  /// Ends a request; its completions so far are returned by the next step(). Does nothing for one that has ended.
  void abort(std::int64_t id);
  /// Feeds one piece of the prompts that wait, decodes one step of the rows that decode, and returns the requests that
  /// ended.
  std::vector<FinishedRequest> step();

  /// Returns whether every request has ended and was returned.
  bool idle() const { return requests_.empty(); }
  std::int64_t waiting() const { return static_cast<std::int64_t>(waiting_.size()); }
  /// Returns the bytes of keys and values that are held; 0 where nothing runs.
  std::int64_t cache_bytes() const;
  BatchCounts counts() const;

 private:
  struct Running {
    BatchRequest request;
    std::vector<Completion> samples;
    std::int64_t tokens = 0;          ///< That its rows come to hold.
    std::shared_ptr<TokenMask> mask;  ///< Held from the beginning to the end, so that sessions find it made.
  };
  /// Rows whose prompts are being fed.
  struct Arriving {
    Session session;
    std::vector<BatchRow> rows;     ///< The first sample of each request where the plan forks, else all samples.
    std::vector<std::size_t> held;  ///< Tokens of its prompt that each row holds.
  };

  std::int64_t row_tokens(const BatchRequest& request) const;
  const std::vector<std::int64_t>& prompt_of(const BatchRow& row) const {
    return requests_.at(row.request).request.prompt;
  }
  bool open(const BatchRow& row) const;
  void admit();
  /// Makes a session for the first rows of these requests.
  void begin(const std::vector<std::int64_t>& ids);
  void feed();
  /// Ends the prefill: samples fork, and their first tokens are chosen.
  void start(Arriving arrived);
  void take(const StepResult& step, const std::vector<BatchRow>& rows);
  /// Lets `add` add to the open completions of rows what they said.
  void take(const std::vector<BatchRow>& rows,
            const std::function<void(Completion&, const CompletionLimits&, std::size_t place)>& add);
  void speculate();
  std::vector<FinishedRequest> finished();

  const Engine& engine_;
  BatchingOptions options_;
  std::shared_ptr<PatternMasks> masks_;
  std::int64_t next_id_ = 0;
  std::map<std::int64_t, Running> requests_;
  std::deque<std::int64_t> waiting_;
  std::set<std::int64_t> begun_;  ///< Requests that do not wait, in their order.
  std::optional<Arriving> arriving_;
  BatchRows rows_;
  std::int64_t rows_taken_ = 0;    ///< Of requests that do not wait.
  std::int64_t tokens_taken_ = 0;  ///< Of the same.
  BatchCounts counts_;
};

}  // namespace decodelab
