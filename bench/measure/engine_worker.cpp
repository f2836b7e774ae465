// Runs the cells of a sweep on the engine and times their steps.
#include "bench/measure/engine_worker.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "bench/measure/engagement.h"
#include "bench/measure/engine_cell.h"
#include "bench/measure/output_masks.h"
#include "bench/measure/request_times.h"
#include "bench/measure/steps.h"
#include "bench/measure/torch_counters.h"
#include "bench/measure/warmup.h"
#include "bench/plan/held_tokens.h"
#include "bench/plan/modelled_work.h"
#include "bench/plan/sweep_plan.h"
#include "engine/checkpoint/model_text.h"
#include "engine/checkpoint/token_bytes.h"

namespace decodelab {
namespace {

/// Steps that are counted in a decode cell: a whole period of what does not happen in every step (a cache that grows by
/// 8 tokens).
constexpr std::int64_t kCountedDecodeSteps = kPeriodSteps;
/// Counting is repeated, since not every counter repeats exactly: once at least, and twice where that fits into
/// kCountingNs. Where steps are slow, as few as one step are counted again.
constexpr int kRepetitions = 2;
constexpr std::int64_t kCountingNs = 500'000'000;

std::vector<std::string> names_that_differ(const Counters& a, const Counters& b) {
  std::vector<std::string> names;
  for (const auto& [one, other] : {std::pair(&a, &b), std::pair(&b, &a)}) {
    for (const auto& [name, value] : *one) {
      const auto found = other->find(name);
      if (found == other->end() || (one == &a && found->second != value)) {
        names.push_back(name);
      }
    }
  }
  return names;
}

std::vector<RealPrompt> real(const std::vector<std::vector<std::int64_t>>& prompts) {
  std::vector<RealPrompt> all;
  for (const std::vector<std::int64_t>& prompt : prompts) {
    all.push_back({.ids = prompt});
  }
  return all;
}

class EngineVisit final : public OpenVisit {
 public:
  EngineVisit(const Engine& engine, const CellInput& input, const CellRecord& cell, std::int64_t slow_ns,
              CacheSnapshots& snapshots)
      : cell_(cell), runner_(engine, input, cell, slow_ns, snapshots) {
    Warmup warmup;
    // Serving all requests once is hundreds of decode steps: that is warm.
    const bool serves = cell.phase == Phase::batching;
    const bool in_rounds = cell.phase == Phase::continuation;
    while (serves ? warmup.steps() == 0 : !warmup.done()) {
      if (!runner_.has_room() && runner_.said_share() == 0) {
        runner_.prepare(std::min(decode_room(engine.model().config(), cell), kWarmupMaximumSteps));
      }
      warmup.add((in_rounds ? runner_.timed_round() : runner_.timed_step()).wall_ns);
    }
    times_.warmup_steps = warmup.steps();
    times_.warmup_ns = warmup.total_ns();
    times_.quiet = serves || warmup.quiet();
    times_.samples_ns.reserve(static_cast<std::size_t>(cell.steps));
    // Restart the cell, so that its timed steps begin at its length and include the growth of the cache that belongs to
    // them.
    runner_.prepare(cell.steps);
  }

  void time_slice(std::int64_t steps) override {
    if (runner_.scope().visible_end) {
      times_.samples_ns = runner_.visible_end_ns(steps, times_.wall_ns);
      return;
    }
    for (std::int64_t step = 0; step < steps; ++step) {
      if (!runner_.has_room()) {
        runner_.prepare(cell_.steps);
      }
      const StepTime time = runner_.timed_step();
      check_sample(cell_, time.sample_ns);
      times_.samples_ns.push_back(time.sample_ns);
      times_.wall_ns += time.wall_ns;
      runner_.rewind();
    }
  }

  double time_round(std::int64_t steps) override {
    if (!runner_.has_room() && runner_.said_share() == 0) {
      runner_.prepare(cell_.steps);
    }
    const StepTime time = runner_.timed_round();
    times_.wall_ns += time.wall_ns;
    if (time.sample_ns > 0) {
      times_.samples_ns.push_back(time.sample_ns);
    }
    return (static_cast<double>(times_.samples_ns.size()) + runner_.said_share()) / static_cast<double>(steps);
  }

  const VisitTimes& times() const override { return times_; }

 private:
  const CellRecord& cell_;
  CellRunner runner_;
  VisitTimes times_;
};

class EngineWorker final : public Worker {
 public:
  EngineWorker(std::shared_ptr<const Engine> engine, Arm arm, const CellInput& input)
      : engine_(std::move(engine)), arm_(std::move(arm)), input_(input) {
    input_.kept_key += "arm " + arm_.label + "\n";
    input_.request = arm_.request;
    if (input_.request.typical_p < 1) {
      input_.sampling.sample = true;
      input_.sampling.typical_p = input_.request.typical_p;
      input_.sampling.seed = input_.sampling.seed.value_or(input_.seed);
    }
    if (!input_.request.regex.empty() && input_.vocabulary == nullptr) {
      throw WorkerError(RowStatus::unsupported,
                        "@regex: a pattern needs the bytes of the tokens, and the model has no tokenizer");
    }
    if (input_.request.text && input_.texts == nullptr) {
      throw WorkerError(RowStatus::unsupported, "@top-tokens: texts need a tokenizer, and the model has none");
    }
  }

  std::int64_t bytes_needed(const CellRecord& cell) const override {
    if (cell.phase == Phase::decode) {
      return engine_->step_bytes(cell.batch, 1, cell.length, held(cell) + room(cell), input_.request.details()) +
             snapshot_bytes(cell);
    }
    if (cell.phase == Phase::continuation) {
      return engine_->step_bytes(cell.batch, 1, cell.length, held(cell) + input_.max_tokens, input_.request.details()) +
             snapshot_bytes(cell);
    }
    const std::int64_t positions = positions_needed(engine_->model().config(), cell, input_.max_tokens);
    if (cell.phase == Phase::batching) {
      // While rows join, those that decode and all of them together are there.
      return engine_->step_bytes(2 * cell.batch, longest_prompt(cell.length), 0, positions, input_.request.details()) +
             stored_bytes(kRequestsOfARow * cell.batch, longest_prompt(cell.length));
    }
    return engine_->step_bytes(rows_of(cell), cell.length, 0, positions, input_.request.details()) +
           stored_bytes(cell.batch, cell.length);
  }

  /// Where another arm's threads spin for some milliseconds after its last step, on cores of other ranks, the first
  /// rank waits for these: whole visits leave that to the warm-up.
  bool times_slices() const override { return engine_->ranks() == 1; }

  void use_prompts(const std::vector<std::vector<std::int64_t>>& prompts) override { input_.prompts = real(prompts); }

  OutputTrace outputs(const CellRecord& cell, std::int64_t steps, const OutputTrace* forced) override {
    return run_outputs(cell, steps, forced, true);
  }
  OutputTrace choices(const CellRecord& cell, std::int64_t steps, const OutputTrace* forced) override {
    return run_outputs(cell, steps, forced, false);
  }

  Probe probe(const CellRecord& cell) override {
    CellRunner runner(*engine_, input_, cell, arm_.slow_ns, snapshots_);
    runner.count_arrivals_in_steps();
    Probe probe{.step_ns = std::numeric_limits<std::int64_t>::max()};
    const std::int64_t steps = cell.phase == Phase::decode ? std::min(room(cell), kCountedDecodeSteps) : 1;
    if (cell.phase == Phase::decode && snapshots_.find(cell) == nullptr) {
      // So that no pass counts how the snapshot is made. Its session is gone before the first pass begins: bytes that
      // are freed in a pass but were allocated before it would be missing from the peak.
      CellRunner(*engine_, input_, cell, arm_.slow_ns, snapshots_).prepare(steps);
    }
    std::int64_t left_ns = kCountingNs;
    // Returns the counters after each of `counted_steps` steps.
    const auto count = [&](std::int64_t counted_steps) {
      StepCounters counting(engine_->model().device());
      runner.prepare(steps);
      runner.discard_first_step();
      counting.restart();
      std::vector<Counters> counted;
      for (std::int64_t step = 0; step < counted_steps; ++step) {
        const std::int64_t step_ns = runner.timed_step().wall_ns;
        left_ns -= step_ns;
        probe.step_ns = std::min(probe.step_ns, step_ns);
        counted.push_back(counting.counters());
      }
      probe.peak_bytes = probe.peak_bytes ? probe.peak_bytes : counting.peak_bytes();
      return counted;
    };
    const std::vector<Counters> first = count(steps);
    probe.counters = first.back();
    for (int repetition = 0; repetition < kRepetitions && probe.unsteady.empty(); ++repetition) {
      const std::int64_t fitting = std::clamp<std::int64_t>(left_ns / probe.step_ns, repetition == 0 ? 1 : 0, steps);
      if (fitting > 0) {
        probe.unsteady = names_that_differ(first[static_cast<std::size_t>(fitting - 1)], count(fitting).back());
      }
    }
    probe.counters["counted_steps"] = steps;
    if (cell.phase == Phase::generate) {
      return probe;
    }
    const EnginePlan plan = bind_arm(arm_, EnginePlan{});
    const CountedSteps counted{
        .config = engine_->model().config(),
        .plan = plan,
        .dtype = engine_->model().dtype(),
        .phase = cell.phase,
        .device = engine_->model().device(),
        .batch_size = cell.batch,
        .length = held(cell),
        .steps = steps,
        .sampled = input_.sampling.sample,
        .typical_p = input_.sampling.typical_p,
        .chosen = !runner.scope().forward,
        .samples = rows_of(cell) / cell.batch,
        .requests = std::ssize(runner.work().planned),
        .at_once = cell.phase == Phase::batching && batching_scope_from_string(cell.scope).request_rate == 0,
        .masked = !input_.request.regex.empty(),
        .details = input_.request.details(),
        .tokens = input_.max_tokens,
        .stored_tokens =
            input_.request.prefix ? std::optional(input_.request.prefix_tokens(cell.length)) : std::nullopt};
    Engagement engagement = check_engagement(arm_, counted, probe.counters);
    probe.engaged = engagement.engaged;
    probe.missing = std::move(engagement.missing);
    if (cell.phase == Phase::continuation) {
      return probe;
    }
    if (cell.phase == Phase::batching) {
      probe.counters["new_tokens"] = runner.work().new_tokens();
      return probe;
    }
    const PrefixReuse way = engine_->prefix_reuse();
    const bool reuses = input_.request.prefix && (way == PrefixReuse::copied || way == PrefixReuse::shared);
    const std::int64_t reused = reuses && cell.phase == Phase::prefill ? input_.request.prefix_tokens(cell.length) : 0;
    const auto work_of = [&](const std::string& dtype, const CodedBytes& coded) {
      CellRecord in_dtype = cell;
      in_dtype.dtype = dtype;
      const bool at_length = runner.scope().at_length;
      const ModelledWork work = modelled_work(counted.config, in_dtype, at_length ? 1 : steps, reused, coded);
      return at_length ? times(work, steps) : work;
    };
    const ModelledWork work = work_of(name_of_dtype(counted.dtype), engine_->coded_bytes());
    const ModelledWork in_cell = work_of(cell.dtype, {});
    const std::int64_t saved = in_cell.weight_bytes + in_cell.kv_bytes - work.weight_bytes - work.kv_bytes;
    if (saved != 0) {
      probe.counters[kSavedBytes] = saved;
    }
    probe.counters["modelled_weight_bytes"] = work.weight_bytes;
    probe.counters["modelled_kv_bytes"] = work.kv_bytes;
    probe.counters["modelled_flops"] = work.flops;
    return probe;
  }

  std::unique_ptr<OpenVisit> open_visit(const CellRecord& cell) override {
    return std::make_unique<EngineVisit>(*engine_, input_, cell, arm_.slow_ns, snapshots_);
  }

  double logit_bound() const override { return fidelity_of(arm_).logit_bound; }
  std::string held_to() const override { return fidelity_of(arm_).held_to; }

  bool times_rounds(const CellRecord& cell) const override {
    return cell.phase == Phase::continuation && times_slices();
  }

  SideWork side_work() const override {
    return {.loading_ns = engine_->model().loading_ns(),
            .packing_ns = engine_->model().packing_ns(),
            .filling_ns = snapshots_.filling_ns};
  }

 private:
  OutputTrace run_outputs(const CellRecord& cell, std::int64_t steps, const OutputTrace* forced, bool logits) {
    const ModelConfig& config = engine_->model().config();
    const std::int64_t total = std::min(steps, cell.phase == Phase::decode         ? room(cell)
                                               : cell.phase == Phase::continuation ? config.positions - held(cell)
                                                                                   : config.positions - held(cell) + 1);
    CellInput greedy = input_;
    greedy.sampling = {};
    if (forced != nullptr && !forced->prompts.empty()) {
      greedy.prompts = real(forced->prompts);
    }
    if (cell.phase == Phase::continuation) {
      greedy.max_tokens = total;
    }
    if (cell.phase == Phase::batching) {
      if (forced == nullptr && cell.dtype == "fp32") {
        return served_tokens(greedy, cell, steps);
      }
      CellRecord steps_of_a_batch = cell;
      steps_of_a_batch.phase = Phase::generate;
      steps_of_a_batch.scope = scope_of(Phase::generate, {});
      return run_outputs(steps_of_a_batch, steps, forced, logits);
    }
    if ((cell.phase == Phase::generate || cell.phase == Phase::continuation) && engine_->speculates() &&
        forced == nullptr && !logits && cell.dtype == "fp32") {
      return said_tokens(greedy, cell, total);
    }
    const std::int64_t rows = rows_of(cell);
    OutputTrace trace{.first = {}, .tokens = {}, .logits = {}, .batch = rows, .vocabulary = config.vocabulary_size};
    CellRunner runner(*engine_, greedy, cell, arm_.slow_ns, snapshots_);
    std::optional<OutputMasks> masks;
    if (!input_.request.regex.empty() && logits) {
      masks.emplace(input_.request.rules(), input_.vocabulary, rows, config.vocabulary_size);
    }
    const auto keep = [&](StepResult result) {
      refuse_dead_end(result);
      trace.tokens.push_back(std::move(result.token_ids));
      if (logits) {
        trace.logits.push_back(runner.session().last_logits());
      }
      if (masks) {
        masks->lower_forbidden(trace.logits.back());
        const std::size_t step = trace.tokens.size() - 1;
        masks->take(forced != nullptr && step < forced->tokens.size() ? forced->tokens[step] : trace.tokens[step]);
      }
    };
    runner.prepare(total);
    if (begins_with_keys(cell.phase)) {
      if (forced != nullptr && !forced->first.empty()) {
        runner.session().force_tokens(forced->first);
        runner.session().begin_rules();
      }
      trace.first = forced != nullptr && !forced->first.empty() ? forced->first : runner.first_tokens();
      keep(runner.session().decode());
    } else {
      runner.begin(held(cell) + total - 1);
      keep(runner.session().choose());
    }
    for (std::int64_t step = 1; step < total; ++step) {
      if (forced != nullptr) {
        runner.session().force_tokens(forced->tokens.at(static_cast<std::size_t>(step - 1)));
      }
      keep(runner.session().decode());
    }
    return trace;
  }

  /// Completes the rows of a cell in rounds of speculation.
  OutputTrace said_tokens(CellInput greedy, const CellRecord& cell, std::int64_t tokens) {
    greedy.max_tokens = tokens;
    CellRunner runner(*engine_, greedy, cell, 0, snapshots_);
    runner.prepare(1);
    runner.step();
    OutputTrace trace{.first = runner.first_tokens(),
                      .tokens = {},
                      .logits = {},
                      .batch = std::ssize(runner.said()),
                      .vocabulary = 0};
    for (std::size_t step = 0; step < static_cast<std::size_t>(tokens); ++step) {
      std::vector<std::int64_t>& of_step = trace.tokens.emplace_back();
      for (const std::vector<std::int64_t>& row : runner.said()) {
        of_step.push_back(row[step]);
      }
    }
    return trace;
  }

  /// Serves the requests of a cell once. A step of the trace has a token of each request, or -1 of one that has ended.
  OutputTrace served_tokens(const CellInput& greedy, const CellRecord& cell, std::int64_t steps) {
    CellRunner runner(*engine_, greedy, cell, 0, snapshots_);
    runner.count_arrivals_in_steps();
    runner.step();
    const auto& tokens = runner.served().tokens;
    OutputTrace trace{.first = {}, .tokens = {}, .logits = {}, .batch = std::ssize(tokens), .vocabulary = 0};
    const std::size_t longest = std::ranges::max_element(tokens, {}, [](const auto& of) { return of.size(); })->size();
    for (std::size_t step = 0; step < std::min(longest, static_cast<std::size_t>(steps)); ++step) {
      std::vector<std::int64_t>& row = trace.tokens.emplace_back();
      for (const std::vector<std::int64_t>& of_request : tokens) {
        row.push_back(step < of_request.size() ? of_request[step] : -1);
      }
    }
    return trace;
  }

  std::int64_t snapshot_bytes(const CellRecord& cell) const {
    const std::int64_t bytes = key_bytes(*engine_, cell.batch, cell.length);
    return bytes <= CacheSnapshots::kMostBytes ? bytes : 0;
  }

  /// Returns the bytes of the keys and values that a prefix store comes to hold.
  std::int64_t stored_bytes(std::int64_t prompts, std::int64_t tokens) const {
    return input_.request.prefix ? key_bytes(*engine_, prompts, tokens) : 0;
  }

  std::int64_t rows_of(const CellRecord& cell) const {
    return cell.batch * samples_of(input_.request, cell.phase, cell.scope);
  }
  std::int64_t held(const CellRecord& cell) const { return held_tokens(engine_->model().config(), cell); }
  std::int64_t room(const CellRecord& cell) const { return decode_room(engine_->model().config(), cell); }

  std::shared_ptr<const Engine> engine_;
  Arm arm_;
  CellInput input_;
  CacheSnapshots snapshots_;
};

}  // namespace

CellInput cell_input(const LaunchPlan& plan) {
  CellInput input{.seed = static_cast<std::uint64_t>(plan.seed),
                  .max_tokens = plan.max_tokens,
                  .prompts = plan.prompts,
                  .sampling = plan.sampling};
  if (input.sampling.sample) {
    input.sampling.seed = input.seed;
  }
  return input;
}

void add_token_bytes(std::span<const ArmRecord> arms, const std::filesystem::path& checkpoint, CellInput& input) {
  bool patterns = false;
  bool texts = false;
  for (const ArmRecord& arm : arms) {
    if (arm.command.empty()) {
      const ArmRequest request = parse_arm_request(request_part(arm.label));
      patterns = patterns || !request.regex.empty();
      texts = texts || request.text;
    }
  }
  if (!patterns && !texts) {
    return;
  }
  auto text = std::make_shared<const ModelText>(load_model_text(checkpoint));
  if (!text->tokenizer) {
    return;
  }
  if (patterns) {
    input.vocabulary = std::make_shared<const MaskVocabulary>(text->token_bytes("@regex"),
                                                              load_model_config(checkpoint).eos_token_ids());
  }
  if (texts) {
    input.texts = std::make_shared<const TokenBytes>(std::move(text), "@top-tokens=N:text");
  }
}

std::unique_ptr<Worker> make_engine_worker(std::shared_ptr<const Engine> engine, Arm arm, const CellInput& input) {
  return std::make_unique<EngineWorker>(std::move(engine), std::move(arm), input);
}

}  // namespace decodelab
