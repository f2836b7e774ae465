// The rows of the store as plain structs: what a sweep writes and what every table, figure and verdict is read from.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/phase.h"

namespace decodelab {

/// The program that measured; stable for a commit, a compiler and a set of libraries.
struct BuildRecord {
  std::string commit;
  std::string compiler;
  std::string build_type;
  std::string libtorch;
  std::string cuda;  ///< Empty in a build without CUDA.
  bool operator==(const BuildRecord&) const = default;
};

/// Stable facts of a machine only: no clock rate and no load, which change while a run is under way.
struct MachineRecord {
  std::string cpu;
  std::int64_t cores = 0;
  std::int64_t memory_bytes = 0;
  /// Space-separated vector extensions that the kernels choose by: avx2, avx512f, avx512bf16, amx_bf16.
  std::string isa;
  std::string os;
  std::string accelerator;  ///< Empty where the device is the CPU.
  bool operator==(const MachineRecord&) const = default;
};

/// A checkpoint, or a model of the same shape with weights made from a seed.
struct ModelRecord {
  std::string name;  ///< As given on the command line.
  std::string family;
  std::int64_t parameters = 0;
  std::int64_t positions = 0;
  bool random_weights = false;  ///< True: times mean something, texts do not.
};

/// What became of one arm in one cell.
enum class RowStatus { planned, ok, oom, unsupported, incorrect, not_engaged, failed, timeout, throttled };

/// Returns the kebab-case name of a status, as it stands in the store and in every output.
const char* to_string(RowStatus status);
/// Throws std::invalid_argument for a name that is no status.
RowStatus row_status_from_string(const std::string& name);

/// Returns whether a row of this status is still to be measured, for the first time or further.
inline constexpr bool is_open(RowStatus status) { return status == RowStatus::planned || status == RowStatus::ok; }

/// Returns whether the times of such a row, if there are any, may be compared with those of others. A planned row with
/// times belongs to a run that is still under way.
inline bool comparable(RowStatus status, std::optional<bool> engaged) {
  return is_open(status) && engaged != std::optional(false);
}

/// One point of the sweep.
struct CellRecord {
  std::int64_t id = 0;  ///< Given by the store.
  Phase phase{};
  std::int64_t batch = 0;
  std::int64_t length = 0;  ///< Prompt tokens for prefill, keys already held for decode.
  std::string dtype;
  std::string device;
  std::int64_t threads = 0;
  std::string scope = "step";
  std::string fill = "random";
  std::int64_t steps = 0;        ///< Timed steps of a visit, equal for all arms; 0 until the pilot has fixed it.
  std::int64_t slice_steps = 0;  ///< Steps that an arm times before the next arm's slice; see in_slices(), in_rounds().

  /// Returns whether arms run in slices in a block; otherwise their visits are whole, one after the other.
  bool in_slices() const { return slice_steps > 0 && slice_steps < steps; }
  /// Returns whether arms take turns of one round of a continuation, which are less than a step.
  bool in_rounds() const { return phase == Phase::continuation && steps > 0 && slice_steps == 0; }
};

/// Labels of arms that compute nothing of the model: the first reads the cell's bytes, the second does its
/// floating-point operations, as fast as the machine can.
inline constexpr const char* kRooflineRead = "roofline-read";
inline constexpr const char* kRooflineGemm = "roofline-gemm";
/// The counter of the bytes that weights, keys and values take more in the cell's dtype than as the arm holds them: in
/// fewer bits, or negative where it computes in a wider dtype.
inline constexpr const char* kSavedBytes = "modelled_saved_bytes";

/// What a sweep compares; `label` is the canonical form.
struct ArmRecord {
  std::int64_t id = 0;
  std::string label;
  bool baseline = false;
  std::string command{};  ///< Command that starts the worker; empty for an arm of decodelab's own.
  std::string engine{};   ///< As the worker reported it, like the next two; empty until then.
  std::string version{};
  std::string settings{};  ///< A JSON object.

  bool roofline() const { return label == kRooflineRead || label == kRooflineGemm; }
};

/// Exact counts of what the counted steps of an arm did, by name (`allocations`, `attention.operators`,
/// `op.aten::cat`); one that is 0 is absent. `counted_steps` says over how many steps.
using Counters = std::map<std::string, std::int64_t>;

/// How near an arm's logits come to the reference's, both fed the same tokens, over all compared rows of all steps.
struct Agreement {
  double logit_error = 0;  ///< Largest max|a - b| / max|b| of a row, b being the reference.
  /// Mean over rows of the Kullback-Leibler divergence of softmax(a) from softmax(b), in nats.
  double kl_divergence = 0;
  /// Share of rows whose largest logit is the same id; equal largest logits count as the same.
  double top_1_agreement = 0;
  bool operator==(const Agreement&) const = default;
};

/// One arm in one cell: its fate, and what was found out outside of the timed passes.
struct CellArmRecord {
  std::int64_t cell_id = 0;
  std::int64_t arm_id = 0;
  RowStatus status = RowStatus::planned;
  std::string reason;           ///< One sentence; empty where the status is ok or planned.
  std::optional<bool> engaged;  ///< Whether counters proved that every variant ran; empty where none says how to know.
  /// Most bytes of tensors held in one step, beyond the weights and the cache at the start.
  std::optional<std::int64_t> peak_bytes;
  std::int64_t ties = 0;  ///< 16-bit types: arg-maxes that differed within the tie rule.
  std::vector<std::string> flags;
  Counters counters;
  std::optional<Agreement> agreement{};  ///< Empty where nothing was compared, or no logits were shown.
  bool operator==(const CellArmRecord&) const = default;
};

/// One arm in one cell at one moment.
struct VisitRecord {
  std::int64_t arm_id = 0;
  std::int64_t position = 0;  ///< Place in the block's order, from 0.
  /// Arm of the visit before it in its block; 0 for the first visit, and where arms run in slices.
  std::int64_t previous_arm_id = 0;
  std::int64_t warmup_steps = 0;
  bool quiet = false;                    ///< Whether warm-up ended by its rule and not by its limit.
  std::int64_t wall_ns = 0;              ///< The visit's timed steps in one piece, synchronized at both ends.
  std::vector<std::int64_t> samples_ns;  ///< Every timed step, raw, in the order in which it ran.
  bool operator==(const VisitRecord&) const = default;
};

/// One round in which every arm visits the cell, in an order that is its own mirror image.
struct BlockRecord {
  std::int64_t launch = 0;  ///< Index of the process within the run, from 0.
  std::int64_t block = 0;   ///< Index within the launch, from 0.
  std::int64_t cell_id = 0;
  std::int64_t started_unix_ns = 0;
  double other_cpu_share = 0;  ///< Share of the block's core time that other processes used.
  std::vector<VisitRecord> visits;
  bool operator==(const BlockRecord&) const = default;
};

/// What one stage of the engine, or one cause of a device's idleness, took in all traced steps together.
struct TraceShareRecord {
  std::string kind;  ///< "stage" or "gap".
  std::string name;  ///< attention, head, ...; sync, dispatch, ....
  std::int64_t host_ns = 0;
  std::int64_t device_ns = 0;
  std::int64_t operators = 0;
  std::int64_t kernels = 0;
  std::int64_t allocations = 0;
  std::int64_t allocated_bytes = 0;
  bool operator==(const TraceShareRecord&) const = default;
};

/// The account of one trace of an arm in a cell. Its times are those of traced steps and never stand in a table of
/// times.
struct TraceRecord {
  std::int64_t cell_id = 0;
  std::int64_t arm_id = 0;
  std::string file;     ///< Where the trace was written.
  std::string command;  ///< Command that makes it.
  std::string verdict;  ///< ok, warn, contaminated, partial, broken, untraced.
  std::string reason;   ///< Why the verdict is not ok; empty where it is.
  std::int64_t tier = 0;
  std::int64_t steps = 0;        ///< Steps that the sums are over.
  std::int64_t steps_ns = 0;     ///< Sum of the steps: the host_ns of all stages, and residual_ns.
  std::int64_t residual_ns = 0;  ///< Time in no stage.
  double perturbation = 0;       ///< Traced over untraced step, and its 95 % interval; 0 where it was not measured.
  double perturbation_low = 0;
  double perturbation_high = 0;
  std::vector<TraceShareRecord> shares;
  bool operator==(const TraceRecord&) const = default;
};

/// What a launch spends its time on, in the order in which these activities begin. Every nanosecond of a launch belongs
/// to one of them.
enum class Activity {
  loading,   ///< Weights are read, and brought into memory.
  packing,   ///< Weights are brought into the order that an arm reads, or that order is read from the cache folder.
  starting,  ///< Processes of workers start and load.
  checking,  ///< Outputs are computed and compared.
  counting,  ///< Steps are counted.
  filling,   ///< Caches are brought to a cell's length.
  warming,   ///< Steps run that are not timed.
  timing,    ///< Timed steps.
  rest,      ///< The start and the end of the process, the store, waking workers.
};
inline constexpr std::size_t kActivities = static_cast<std::size_t>(Activity::rest) + 1;

/// The name of an activity, as it stands in the store and in every output.
const char* to_string(Activity activity);
/// Throws std::invalid_argument for a name that is no activity.
Activity activity_from_string(const std::string& name);

/// What one launch spent on one activity of one arm.
struct TimeSpentRecord {
  std::string shard{};  ///< `i/n` of the part of a plan that was measured apart; empty for a whole run.
  std::int64_t launch = 0;
  std::int64_t arm_id = 0;  ///< 0: time of no arm, or of all together.
  Activity activity = Activity::rest;
  std::int64_t ns = 0;
  bool operator==(const TimeSpentRecord&) const = default;
};

/// The reference's outputs in a cell, and the choices of each arm that was compared with it. Later launches are
/// compared with this record.
struct CellProofRecord {
  std::int64_t cell_id = 0;
  std::string request{};  ///< What the arms that were compared ask of each row, as it stands in their labels.
  /// Batch of the comparison: the cell's own, or fewer rows and tokens where the reference did not fit.
  std::int64_t batch = 0;
  std::int64_t length = 0;
  std::vector<std::int64_t> first;                ///< As in OutputTrace.
  std::vector<std::vector<std::int64_t>> tokens;  ///< [step][row]: the reference's choices.
  /// By an arm's id: the digest of its own choices, which were proved right.
  std::map<std::int64_t, std::string> chosen{};
  bool operator==(const CellProofRecord&) const = default;
};

/// Value of `blocks_per_launch` until the first launch of a gate has fixed it.
inline constexpr std::int64_t kFittedBlocks = 0;

/// One invocation of `sweep`.
struct RunRecord {
  std::int64_t id = 0;
  std::string uuid;
  std::string name;  ///< May be empty.
  std::string command;
  std::string plan_json;  ///< The whole plan, so that `--resume` needs nothing else.
  std::int64_t seed = 0;
  std::int64_t launches = 0;
  std::int64_t blocks_per_launch = kFittedBlocks;
  std::int64_t started_unix_ns = 0;
  std::int64_t ended_unix_ns = 0;  ///< 0 while the run is not finished.
  bool quick = false;
  BuildRecord build;
  MachineRecord machine;
  ModelRecord model;
};

/// What an arm says to one of the run's prompts, in greedy decoding.
struct CompletionRecord {
  std::int64_t arm_id = 0;
  std::int64_t prompt = 0;     ///< Its place in the run's list.
  std::string prompt_text{};   ///< Empty where neither the list nor the model has a text.
  std::string prompt_class{};  ///< What kind of text the list calls it.
  std::int64_t prompt_tokens = 0;
  std::vector<std::int64_t> token_ids{};
  std::string text{};  ///< Empty where the model has no tokenizer.
  bool operator==(const CompletionRecord&) const = default;
};

/// What an arm predicts of a text, beside what the reference in fp32 predicts, each token from all before it. Errors
/// are standard errors over tokens. The measures are those of llama.cpp's llama-perplexity.
struct QualityRecord {
  std::int64_t arm_id = 0;
  std::int64_t tokens = 0;    ///< That were predicted.
  double log_perplexity = 0;  ///< Mean negative log-probability of the text's tokens, in nats.
  double log_perplexity_error = 0;
  double log_ratio = 0;  ///< Logarithm of the perplexity over the reference's, from pairs.
  double log_ratio_error = 0;
  double kl_divergence = 0;  ///< Mean, of the arm's distribution from the reference's, in nats.
  double kl_divergence_error = 0;
  double kl_divergence_999 = 0;  ///< 99.9 of 100 tokens are below it.
  double top_1_agreement = 0;    ///< Share of tokens where both find the same one most probable.
  double top_1_agreement_error = 0;
  double rms_probability = 0;  ///< Root of the mean squared difference of the probability of the text's token.
  std::string reason{};        ///< Why it is not known, in one sentence; all else is 0 then.
  bool operator==(const QualityRecord&) const = default;
};

/// A run with everything that belongs to it, as the reports read it. Cells, arms and blocks are in the order in which
/// they were planned or ran.
struct RunData {
  RunRecord run;
  std::vector<CellRecord> cells;
  std::vector<ArmRecord> arms;
  std::vector<CellArmRecord> cell_arms;
  std::vector<BlockRecord> blocks;
  std::vector<TraceRecord> traces{};            ///< At most one for an arm in a cell, the newest.
  std::vector<TimeSpentRecord> times_spent{};   ///< By launch, arm and activity; a run of an older program has none.
  std::vector<CellProofRecord> proofs{};        ///< Of the cells that were checked.
  std::vector<CompletionRecord> completions{};  ///< By prompt and arm; none where the run has no prompts.
  std::vector<QualityRecord> qualities{};       ///< At most one for an arm; none where no quality was asked for.
};

}  // namespace decodelab
