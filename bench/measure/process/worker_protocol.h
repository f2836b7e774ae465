// The worker protocol: one JSON object a line, requests and replies. tools/peers/README.md describes it for those who
// write workers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bench/measure/worker.h"
#include "bench/plan/arm_request.h"
#include "bench/plan/batch_work.h"
#include "engine/sampling/sampling_parameters.h"

namespace decodelab {

/// Versions that are spoken: a worker of the oldest is asked for what that has.
inline constexpr std::int64_t kOldestProtocol = 1;
inline constexpr std::int64_t kNewestProtocol = 2;

/// What a worker says of itself.
struct WorkerHello {
  std::int64_t protocol = kNewestProtocol;
  std::string engine;
  std::string version;
  /// A JSON object: build flags, attention, cache, types of accumulation and of the cache.
  std::string settings_json = "{}";
  std::vector<std::string> phases;
  std::vector<std::string> scopes{};  ///< For people: what a worker cannot do, it answers with an error.
  std::vector<std::string> fills;
  std::vector<std::string> dtypes;
  std::vector<std::string> devices;
  /// Claims that its fp32 tokens equal the reference's; otherwise they are compared by the rule of ties.
  bool exact = false;
  bool forced = true;                   ///< Can be fed another engine's tokens, and shows its logits.
  bool slices = false;                  ///< Can time the steps of a visit in slices: `begin` and `turn` beside `visit`.
  bool samples = false;                 ///< From version 2 on: can complete a prompt several times.
  std::vector<std::string> sampling{};  ///< From version 2 on: used_parameters() that it can do.
  bool prefixes = false;                ///< From version 2 on: can hold the beginnings of prompts before a prefill.
};

/// What every cell of a run has in common.
struct WorkerLoad {
  std::string model;  ///< A checkpoint directory.
  std::string dtype;
  std::string device;
  std::int64_t threads = 0;
  std::int64_t seed = 0;
  std::int64_t max_tokens = 0;    ///< Tokens of a completion, phase generate.
  SamplingParameters sampling{};  ///< Of every row; from version 2 on it goes with `prepare`.
  ArmRequest request{};           ///< What the arm asks of each row; from version 2 on it goes with `prepare`.

  /// Returns the rows of each prompt of a cell.
  std::int64_t samples_of(const CellRecord& cell) const;
};

/// Return the requests, each as one line without its end. The `requests` of a cell of phase batching go with `prepare`
/// from version 2 on.
std::string hello_request();
std::string load_request(const WorkerLoad& load);
std::string prepare_request(const CellRecord& cell, const WorkerLoad& load, std::int64_t room,
                            const std::vector<std::vector<std::int64_t>>& prompts, std::int64_t protocol,
                            const BatchWork* requests = nullptr);
std::string outputs_request(std::int64_t steps, const OutputTrace* forced, bool logits);
std::string counters_request();
std::string visit_request(std::int64_t steps);
std::string begin_request(std::int64_t steps);
std::string slice_request(std::int64_t steps);
std::string bye_request();

/// Parse the replies. Each parser throws WorkerError for a reply that says "error", that is no JSON, or in which a
/// field is missing or of the wrong kind; the message names the field.
WorkerHello parse_hello(std::string_view line);
/// What a worker decided on while it loaded.
struct WorkerLoaded {
  std::string settings_json;  ///< An object.
  double logit_bound = 0;     ///< Worker::logit_bound()
};
WorkerLoaded parse_loaded(std::string_view line);
void parse_prepared(std::string_view line);
Probe parse_counters(std::string_view line);
VisitTimes parse_visit(std::string_view line);
/// Returns only the warm-up of a visit.
VisitTimes parse_begun(std::string_view line);
/// Returns only the steps of a slice.
VisitTimes parse_slice(std::string_view line);
/// Returns the outputs of so many rows; reads the logits file, where there is one, and removes it.
OutputTrace parse_outputs(std::string_view line, std::int64_t rows);

/// Returns the side work that a reply of any kind reports; zeros where it reports none.
SideWork parse_side_work(std::string_view line);

/// The worker's side of the protocol: a parsed request, and the replies.
struct WorkerRequest {
  std::string kind;  ///< hello, load, prepare, outputs, counters, visit, begin, turn or bye.
  WorkerLoad load{};
  CellRecord cell{};
  std::vector<std::vector<std::int64_t>> prompts{};  ///< Of the cell.
  BatchWork requests{};                              ///< Of a cell of phase batching.
  std::int64_t steps = 0;
  std::optional<OutputTrace> forced{};      ///< Only what was fed: `first` and `tokens`.
  bool logits = true;                       ///< Whether outputs are asked for with theirs.
  std::int64_t protocol = kOldestProtocol;  ///< Of hello: the newest version that both sides speak.
};
/// Throws std::invalid_argument for a line that is no request.
WorkerRequest parse_request(std::string_view line);
std::string hello_reply(const WorkerHello& hello, std::int64_t protocol);
std::string done_reply(std::string_view kind);
std::string loaded_reply(double logit_bound, const std::string& settings_json = "{}");
std::string outputs_reply(const OutputTrace& trace, const std::string& logits_file);
std::string counters_reply(const Probe& probe);
std::string visit_reply(const VisitTimes& times);
std::string begun_reply(const VisitTimes& times);
std::string slice_reply(const VisitTimes& times);
/// Returns `reply` with the side work added to it, where there is any.
std::string with_side_work(std::string reply, const SideWork& side);
std::string error_reply(RowStatus status, std::string_view message);

}  // namespace decodelab
