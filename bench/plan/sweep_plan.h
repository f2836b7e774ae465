// What a sweep will do: its cells, its arms, and how often; all that a launch or a resumed run needs to know.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/phase.h"
#include "bench/plan/named_draft.h"
#include "bench/plan/prompts.h"
#include "bench/plan/quality_text.h"
#include "bench/plan/step_scope.h"
#include "engine/checkpoint/model_config.h"
#include "engine/checkpoint/safetensors.h"
#include "engine/sampling/sampling_parameters.h"
#include "reports/statistics/batching_scope.h"
#include "reports/store/record.h"
#include "reports/store/shard.h"

namespace decodelab {

/// The default time of an arm's slice in nanoseconds, after which the next arm runs; see slice_ns_of().
///
/// It is short compared with the slow spells of a shared machine, so that each spell slows all arms of a block alike.
/// On such a machine the noise of a block falls with shorter slices, down to slices of one step: for steps of 1.4 and 4
/// ms on a shared 2-core machine, with the steps of one arm dealt out to two, from 2.4 and 2.4 % in slices of 25 ms to
/// 0.8 and 1.1 % in slices of one step. It is long compared with what a step far below a millisecond pays for caches
/// that another arm has filled.
inline constexpr std::int64_t kSliceNs = 4'000'000;

/// A sweep as asked for. Everything is checked by make_sweep().
struct SweepRequest {
  std::string model;
  std::vector<std::string> arms;  ///< As typed.
  std::string baseline;           ///< As typed; empty: the first arm.
  std::string ablate{};  ///< add-one or leave-one-out of the first arm, or of its default_arm(); empty: neither.
  std::vector<Phase> phases{Phase::prefill, Phase::decode};
  std::vector<std::int64_t> batches{1};
  std::vector<std::int64_t> lengths{128};
  std::string dtype = "fp32";
  std::string device = "cpu";
  std::int64_t threads = 0;              ///< 0: one for each core that the process may use.
  std::vector<std::int64_t> affinity{};  ///< Cores that all threads are bound to; empty: wherever the system puts them.
  std::int64_t launches = 5;
  std::int64_t blocks = 2;  ///< Blocks of each launch.
  std::int64_t seed = 1;
  std::int64_t max_tokens = 16;  ///< Tokens of a completion, phase generate.
  std::string fill;  ///< random or generated; empty: generated where there are workers, since another engine's cache
                     ///< cannot be filled, where there are prompts, and where the model is not synthetic.
  std::vector<RealPrompt> prompts{};        ///< What rows are cut from; none: random ids.
  std::vector<std::int64_t> quality_ids{};  ///< A text that arms predict; none: their quality is not asked for.
  QualityLimit quality_limit{};
  std::vector<NamedDraft> drafts{};
  std::map<std::string, ModelConfig> draft_configs{};  ///< Of each draft.
  /// `NAME=CMD`: arms that are processes of their own.
  std::vector<std::string> workers;
  std::int64_t worker_seconds = 300;  ///< A worker that takes longer for one reply is a row `timeout`.
  StepScope scope{};                  ///< Used as far as it fits the phase; see scope_of().
  /// Requests a second that come to a batch in phase batching; 0: all come at once.
  std::vector<double> request_rates{0};
  /// What a request has to be answered within, so that the goodput is measured too in phase batching; none: it is not.
  RequestLimits goodput{};
  /// Sampling of every row. An arm in another process that cannot sample so has rows `unsupported`.
  SamplingParameters sampling{};
  /// Time of an arm's slice in a block, in nanoseconds; 0: whole visits; empty: by slice_ns_of().
  std::optional<std::int64_t> slice_ns{};
  bool pin = true;    ///< Each thread on a core of its own, where there are as many; see thread_places().
  bool tail = false;  ///< Measures as many launches and steps as the p99 of a row needs.
  bool quick = false;
  bool adaptive = false;  ///< Launches are added until the looks decide; `launches` is the most.
  bool roofline = false;  ///< Adds the arms roofline-read and roofline-gemm.
  bool null_arm = false;  ///< Adds a second copy of the baseline.
  /// Returns the command that runs an arm of our own in another process; empty: all share one process, and its weights.
  std::function<std::string(const std::string& arm)> apart{};
  std::optional<Shard> shard;  ///< Only these cells are measured; the rows of the others stay `planned`.
  std::string name;
  std::string command;
};

/// The part of a plan that is not in the cells and arms of its run: what a fresh process needs to time them.
struct LaunchPlan {
  std::string model;       ///< As typed.
  std::string checkpoint;  ///< The directory that is loaded.
  std::string dtype;
  std::string device;
  std::int64_t threads = 0;
  std::int64_t seed = 0;
  std::int64_t max_tokens = 0;
  std::string fill;
  std::vector<RealPrompt> prompts{};        ///< As in SweepRequest.
  std::vector<std::int64_t> quality_ids{};  ///< As in SweepRequest, like the limit.
  QualityLimit quality_limit{};
  std::vector<NamedDraft> drafts{};  ///< As in SweepRequest, opened.
  std::int64_t worker_seconds = 0;
  std::vector<std::int64_t> affinity{};
  std::int64_t slice_ns = 0;      ///< As in SweepRequest.
  bool pin = false;               ///< As in SweepRequest.
  bool tail = false;              ///< As in SweepRequest.
  SamplingParameters sampling{};  ///< As in SweepRequest; the seed is the plan's.
  bool adaptive = false;          ///< Read back by is_adaptive() too.
  std::string ablate{};           ///< As in SweepRequest; read back by summarize() too.
  std::optional<Shard> shard;     ///< Read back by shard_of() too, which needs no more than the store.
};

/// Returns the core of each thread of a launch; empty on a GPU, or where the plan leaves the threads to the system.
std::vector<std::int64_t> places_of(const LaunchPlan& plan);

std::string to_json(const LaunchPlan& plan);
LaunchPlan launch_plan_from_json(const std::string& text);

/// Returns the nanoseconds of a slice: those of the request, else kSliceNs, but 0 (whole visits) where there are
/// workers, since another engine may pay more for being stopped and continued than this one.
std::int64_t slice_ns_of(const SweepRequest& request);

/// Returns the fill of a request's cells: the given one, or that of the rule of SweepRequest::fill.
std::string fill_of(const SweepRequest& request);

/// Returns the element type of `--dtype`: fp32, fp16, bf16. Throws std::invalid_argument with the names that are known.
ElementType dtype_from_name(std::string_view name);
/// Does the opposite.
std::string name_of_dtype(ElementType dtype);

/// Steps that a decode cell must have room for beyond its length: one period of 8.
inline constexpr std::int64_t kFewestDecodeSteps = 8;

/// Returns how many positions a cell needs the model to have.
std::int64_t positions_needed(const ModelConfig& config, const CellRecord& cell, std::int64_t max_tokens);

/// Returns the cells and arms of a request, each pair with a status: `planned`, or `unsupported` with its reason. Cells
/// are in the order phase, batch, length. Throws std::invalid_argument for anything that no row can stand for: no arm,
/// an arm twice, a baseline that is no arm, nothing to ablate, launches or blocks under 1, a sweep none of whose cells
/// fits the model, and a shard that has no cell.
RunData make_sweep(const SweepRequest& request, const ModelConfig& config);

/// Returns the seconds that one step of a cell may take on a typical core, only to weigh cells against each other for a
/// first ETA.
double prior_step_seconds(const CellRecord& cell, const ModelConfig& config, std::int64_t max_tokens);

}  // namespace decodelab
