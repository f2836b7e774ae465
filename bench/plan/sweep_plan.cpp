// Makes the cells and arms of a sweep, with a row for each pair.
#include "bench/plan/sweep_plan.h"

#include <algorithm>
#include <cctype>
#include <set>
#include <stdexcept>

#include <fmt/format.h>

#include "bench/plan/ablation.h"
#include "bench/plan/arm.h"
#include "bench/plan/batch_work.h"
#include "bench/plan/cell_fill.h"
#include "bench/plan/held_tokens.h"
#include "engine/checkpoint/synthetic.h"
#include "engine/engine.h"
#include "reports/statistics/batching_scope.h"
#include "reports/statistics/summary.h"
#include "variants/presets.h"

namespace decodelab {
namespace {

/// Returns where the '=' before the CMD of `NAME[@setting=value]...=CMD` stands; npos where there is none.
std::size_t command_begin(const std::string& text) {
  std::size_t end = text.find_first_of("=@");
  while (end != std::string::npos && text[end] == '@') {
    const std::size_t value = text.find('=', end);
    end = value == std::string::npos ? value : text.find_first_of("=@", value + 1);
  }
  return end;
}

/// `NAME[@setting=value]...=CMD`.
ArmRecord parse_worker(const std::string& text) {
  const std::size_t equals = command_begin(text);
  const std::string label = text.substr(0, equals);
  const std::string name(variants_part(label));
  ArmRequest request;
  try {
    request = parse_arm_request(request_part(label));
  } catch (const std::invalid_argument& error) {
    throw std::invalid_argument(fmt::format("--worker '{}': {}", text, error.what()));
  }
  const bool plain = !name.empty() && std::ranges::all_of(name, [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.';
  });
  if (equals == std::string::npos || !plain || equals + 1 == text.size()) {
    throw std::invalid_argument(
        fmt::format("--worker '{}': expected NAME=CMD, the name of letters, digits, '-', '_' and '.', as in --worker "
                    "hf='tools/peers/run transformers', or NAME@samples=N=CMD",
                    text));
  }
  if (std::ranges::find(presets(), name, &Preset::name) != presets().end()) {
    throw std::invalid_argument(fmt::format("--worker '{}': {} is a preset of our own; give another name", text, name));
  }
  return {.label = name + to_string(request), .command = text.substr(equals + 1)};
}

bool has_phase(const SweepRequest& request, Phase phase) {
  return std::ranges::find(request.phases, phase) != request.phases.end();
}

/// Returns the slots that do nothing in the cells of a sweep whose arms are made of `first`.
std::set<std::string> idle_slots(const SweepRequest& request, const Arm& first) {
  const ArmRequest& asked = first.request;
  std::set<std::string> idle;
  if (bind_arm(first, EnginePlan{}).proposer.variant().empty()) {
    idle = {"verify_attention", "acceptance"};
  }
  if (std::ranges::all_of(request.phases,
                          [](Phase phase) { return phase == Phase::prefill || phase == Phase::decode; })) {
    idle.insert("proposer");
  }
  if (asked.regex.empty()) {
    idle.insert("token_mask");
  }
  if (!asked.prefix) {
    idle.insert("prefix_reuse");
  }
  if (!asked.details().any()) {
    idle.insert("top_tokens");
  }
  if (!asked.text) {
    idle.insert("token_text");
  }
  if (request.scope.samples == 1 && asked.samples == 1) {
    idle.insert("fork");
  }
  if (!has_phase(request, Phase::batching)) {
    idle.insert("batching");
  }
  return idle;
}

std::vector<ArmRecord> make_arms(const SweepRequest& request, const RunsOn& where) {
  if (request.arms.empty() && request.workers.empty() && request.ablate.empty()) {
    throw std::invalid_argument("--arm: a sweep needs at least one arm, e.g. --arm causal --arm bigcode");
  }
  std::vector<ArmRecord> arms;
  if (!request.ablate.empty()) {
    const Ablation ablation = ablation_from_name(request.ablate);
    const Arm first = parse_arm(request.arms.empty() ? default_arm(ablation) : request.arms.front());
    for (const Arm& arm : ablated_arms(ablation, first, where, idle_slots(request, first))) {
      arms.push_back({.id = 0, .label = arm.label, .baseline = false});
    }
  }
  for (std::size_t index = request.ablate.empty() ? 0 : 1; index < request.arms.size(); ++index) {
    const std::string& text = request.arms[index];
    const std::string label = parse_arm(text).label;
    if (std::ranges::any_of(arms, [&](const ArmRecord& arm) { return arm.label == label; })) {
      throw std::invalid_argument(fmt::format("--arm '{}' stands for the arm {}, which is there already", text, label));
    }
    arms.push_back({.id = 0, .label = label, .baseline = false});
  }
  for (const std::string& text : request.workers) {
    ArmRecord arm = parse_worker(text);
    if (std::ranges::find(arms, arm.label, &ArmRecord::label) != arms.end()) {
      throw std::invalid_argument(fmt::format("--worker '{}': there is an arm {} already", text, arm.label));
    }
    arms.push_back(std::move(arm));
  }
  const bool external = std::ranges::any_of(
      arms, [&](const ArmRecord& arm) { return !arm.command.empty() && arm.label == request.baseline; });
  const std::string baseline = request.baseline.empty() ? arms.front().label
                               : external               ? request.baseline
                                                        : parse_arm(request.baseline).label;
  const auto found = std::ranges::find(arms, baseline, &ArmRecord::label);
  if (found == arms.end()) {
    throw std::invalid_argument(
        fmt::format("--baseline '{}' is none of the arms: add --arm {}", request.baseline, baseline));
  }
  found->baseline = true;
  if (request.null_arm) {
    ArmRecord null{.label = std::string(kNullPrefix) + found->label, .command = found->command};
    if (std::ranges::find(arms, null.label, &ArmRecord::label) == arms.end()) {
      arms.push_back(std::move(null));
    }
  }
  if (request.roofline) {
    arms.push_back({.label = kRooflineRead});
    arms.push_back({.label = kRooflineGemm});
  }
  return arms;
}

/// Makes every arm of our own a process of its own.
void set_apart(const std::function<std::string(const std::string&)>& command, std::vector<ArmRecord>& arms) {
  for (ArmRecord& arm : arms) {
    if (arm.command.empty() && !arm.roofline()) {
      arm.command = command(arm.label.starts_with(kNullPrefix) ? arm.label.substr(kNullPrefix.size()) : arm.label);
    }
  }
}

/// Returns why what an arm guesses cannot be measured in a cell; `text`: its rows are cut from prompts of people.
std::string reason_against_guesses(const Arm& arm, const CellRecord& cell, bool text) {
  const EnginePlan plan = bind_arm(arm, EnginePlan{});
  const std::string& proposer = plan.proposer.variant();
  if (proposer.empty()) {
    return "";
  }
  const GuessesFrom from = plan.proposer.value().from;
  if (cell.phase == Phase::prefill || cell.phase == Phase::decode) {
    return fmt::format("{} guesses several tokens ahead, and a step of phase {} has one: measure phase continue",
                       proposer, to_string(cell.phase));
  }
  if (from == GuessesFrom::told && cell.phase == Phase::batching) {
    return fmt::format(
        "{} must be told what rows will say, and requests that come and go are not: measure phase "
        "continue",
        proposer);
  }
  return text || from != GuessesFrom::text
             ? ""
             : fmt::format(
                   "{} looks for text that repeats itself, and rows of random ids have none: give --prompts FILE, "
                   "or measure oracle-draft:percent=N",
                   proposer);
}

/// Returns why an arm of our own cannot run in a cell; empty where it can.
std::string reason_against(const Arm& arm, const CellRecord& cell, const RunsOn& where, bool text) {
  if (std::string reason = unsupported_reason(arm.request, cell.phase); !reason.empty()) {
    return reason;
  }
  if (arm.request.prefix && where.config.encoder) {
    return "@prefix: an encoder reads each prompt as a whole";
  }
  if (std::string reason = unsupported_reason(arm, where); !reason.empty()) {
    return reason;
  }
  return reason_against_guesses(arm, cell, text);
}

/// Returns why another process cannot do what its arm asks of it, whatever it is; empty where it may be able to.
std::string reason_against_worker(const ArmRequest& request) {
  const char* const asked = !request.regex.empty()          ? "@regex: workers follow no patterns"
                            : request.top_tokens > 0        ? "@top-tokens: workers say nothing of tokens beside them"
                            : request.prompt_top_tokens > 0 ? "@prompt-top-tokens: workers say nothing of a prompt"
                            : request.typical_p < 1         ? "@typical-p: workers draw as the whole sweep says"
                                                            : nullptr;
  return asked == nullptr ? "" : fmt::format("{}; what they may be asked for is @samples=N and @prefix=SHARE", asked);
}

void check_counts(const SweepRequest& request) {
  const auto at_least_one = [](const char* flag, std::int64_t value) {
    if (value < 1) {
      throw std::invalid_argument(fmt::format("{} must be at least 1, got {}", flag, value));
    }
  };
  at_least_one("--launches", request.launches);
  at_least_one("--blocks", request.blocks);
  at_least_one("--threads", request.threads);
  at_least_one("--max-tokens", request.max_tokens);
  at_least_one("--worker-timeout", request.worker_seconds);
  at_least_one("--samples", request.scope.samples);
  if (request.scope.samples > 1 && std::ranges::any_of(request.phases, begins_with_keys)) {
    throw std::invalid_argument(
        "--samples: rows of a decode or continue cell have no prompt that they could share; ask for --phase prefill, "
        "generate, or "
        "both");
  }
  if (request.slice_ns.value_or(0) < 0) {
    throw std::invalid_argument("--slice: expected milliseconds, 0 (whole visits) or more");
  }
  if (request.tail && request.launches < kTailRule.launches) {
    throw std::invalid_argument(
        fmt::format("--tail needs at least {} launches, got --launches {}", kTailRule.launches, request.launches));
  }
  if (request.scope.visible_end && request.device == "cpu") {
    throw std::invalid_argument(
        "--token-visible end: a CPU runs nothing ahead of the host; leave it away, or measure on a GPU");
  }
  if (request.apart && !request.drafts.empty()) {
    throw std::invalid_argument(
        "--draft: processes of our own (--apart, a gate's builds) load one model each; measure arms with drafts in one "
        "process");
  }
  step_scope_from_string(to_string(request.scope));  // refuses what does not go together
  if (request.scope.warped && request.apart) {
    throw std::invalid_argument(
        "sampling: processes of our own (--apart, a gate's builds) choose greedily; leave out the flags of sampling, "
        "or "
        "measure arms of this build in one process");
  }
}

/// Returns the scopes of the cells of a phase: one, or in phase batching one for each rate and what is timed of it.
std::vector<std::string> scopes_of(Phase phase, const SweepRequest& request) {
  if (phase != Phase::batching) {
    return {scope_of(phase, request.scope)};
  }
  using Sample = BatchingScope::Sample;
  std::vector<std::string> scopes;
  for (const double rate : request.request_rates) {
    for (const Sample sample : {Sample::served, Sample::first_token, Sample::between_tokens}) {
      scopes.push_back(to_string(BatchingScope{.sample = sample, .request_rate = rate}));
    }
    if (request.goodput.any()) {
      scopes.push_back(
          to_string(BatchingScope{.sample = Sample::good, .request_rate = rate, .limits = request.goodput}));
    }
  }
  return scopes;
}

}  // namespace

std::int64_t slice_ns_of(const SweepRequest& request) {
  return request.slice_ns.value_or(request.workers.empty() ? kSliceNs : 0);
}

std::string fill_of(const SweepRequest& request) {
  if (!request.fill.empty()) {
    return request.fill;
  }
  const bool any_text = request.model.starts_with(kSyntheticPrefix) && request.prompts.empty();
  return any_text && request.workers.empty() ? "random" : "generated";
}

ElementType dtype_from_name(std::string_view name) {
  if (name == "fp32") {
    return ElementType::float32;
  }
  if (name == "fp16") {
    return ElementType::float16;
  }
  if (name == "bf16") {
    return ElementType::bfloat16;
  }
  throw std::invalid_argument(fmt::format("--dtype: '{}' is unknown; expected fp32, fp16 or bf16", name));
}

std::string name_of_dtype(ElementType dtype) {
  switch (dtype) {
    case ElementType::float32: return "fp32";
    case ElementType::float16: return "fp16";
    case ElementType::bfloat16: return "bf16";
  }
  throw std::logic_error("an element type has no name");
}

std::int64_t positions_needed(const ModelConfig& config, const CellRecord& cell, std::int64_t max_tokens) {
  if (cell.phase == Phase::batching) {
    return config.held_after_prefill(longest_prompt(cell.length)) + longest_completion(max_tokens) - 1;
  }
  const std::int64_t held = held_tokens(config, cell);
  if (cell.phase == Phase::prefill) {
    return held;
  }
  if (cell.phase == Phase::continuation) {
    return held + max_tokens;
  }
  return held + (cell.phase == Phase::generate ? max_tokens - 1 : kFewestDecodeSteps);
}

RunData make_sweep(const SweepRequest& request, const ModelConfig& config) {
  check_counts(request);
  const ElementType dtype = dtype_from_name(request.dtype);
  RunData data;
  data.run = {.name = request.name,
              .command = request.command,
              .seed = request.seed,
              .launches = request.launches,
              .blocks_per_launch = request.blocks,
              .quick = request.quick};
  const RunsOn where{.config = config, .dtype = dtype, .device = request.device, .drafts = &request.draft_configs};
  data.arms = make_arms(request, where);
  const std::string fill = fill_of(request);
  if (!config.encoder && cell_fill_from_string(fill).decoder_tokens != kHeldByDecoder) {
    throw std::invalid_argument(fmt::format(
        "--fill {}: the number is for models with an encoder; of a decoder alone, --length says what it holds", fill));
  }
  for (const Phase phase : request.phases) {
    for (const std::int64_t batch : request.batches) {
      for (const std::int64_t length : request.lengths) {
        for (std::string& scope : scopes_of(phase, request)) {
          data.cells.push_back({.phase = phase,
                                .batch = batch,
                                .length = length,
                                .dtype = request.dtype,
                                .device = request.device,
                                .threads = request.threads,
                                .scope = std::move(scope),
                                .fill = fill});
        }
      }
    }
  }
  if (request.shard && request.shard->index > std::ssize(data.cells)) {
    throw std::invalid_argument(fmt::format("--shard {}: the sweep has {} cells, and none is left for this shard",
                                            to_string(*request.shard), data.cells.size()));
  }
  std::vector<std::optional<Arm>> own;  // Of each arm; none of another process, and of a roofline.
  std::vector<std::string> against_worker;
  for (const ArmRecord& arm : data.arms) {
    own.push_back(arm.command.empty() && !arm.roofline() ? std::optional(read_arm(arm.label)) : std::nullopt);
    against_worker.push_back(own.back() ? "" : reason_against_worker(parse_arm_request(request_part(arm.label))));
  }
  bool any_fits = false;
  for (std::size_t cell = 0; cell < data.cells.size(); ++cell) {
    const std::int64_t needed = positions_needed(config, data.cells[cell], request.max_tokens);
    any_fits = any_fits || needed <= config.positions;
    for (std::size_t arm = 0; arm < data.arms.size(); ++arm) {
      CellArmRecord row{.cell_id = static_cast<std::int64_t>(cell), .arm_id = static_cast<std::int64_t>(arm)};
      row.reason = needed > config.positions
                       ? fmt::format("needs {} positions, and the model has {}", needed, config.positions)
                   : own[arm] ? reason_against(*own[arm], data.cells[cell], where, !request.prompts.empty())
                              : against_worker[arm];
      row.status = row.reason.empty() ? RowStatus::planned : RowStatus::unsupported;
      data.cell_arms.push_back(std::move(row));
    }
  }
  if (request.apart) {
    set_apart(request.apart, data.arms);
  }
  if (!any_fits) {
    throw std::invalid_argument(
        fmt::format("--length: no cell fits the model, which has {} positions; the shortest asked for is {}{}",
                    config.positions, *std::ranges::min_element(request.lengths),
                    request.phases == std::vector{Phase::decode} ? " plus 8 decode steps" : ""));
  }
  return data;
}

double prior_step_seconds(const CellRecord& cell, const ModelConfig& config, std::int64_t max_tokens) {
  constexpr double kFlopsPerSecond = 1e11;
  constexpr double kBytesPerSecond = 2e10;
  constexpr double kStepOverhead = 1e-3;
  const double parameters = static_cast<double>(parameter_count(config));
  const auto seconds = [&](double tokens, double keys) {
    const double rows = static_cast<double>(cell.batch) * tokens;
    const double attention_flops = 4.0 * rows * keys * static_cast<double>(config.query_width() * config.layers);
    return kStepOverhead +
           std::max((2 * parameters * rows + attention_flops) / kFlopsPerSecond, 2 * parameters / kBytesPerSecond);
  };
  const auto length = static_cast<double>(cell.length);
  if (cell.phase == Phase::prefill) {
    return seconds(length, length);
  }
  if (cell.phase == Phase::batching) {
    return static_cast<double>(kRequestsOfARow) *
           (seconds(length, length) + static_cast<double>(max_tokens) * seconds(1, length));
  }
  const double step = seconds(1, length);
  if (cell.phase == Phase::continuation) {
    return static_cast<double>(max_tokens) * step;
  }
  return cell.phase == Phase::decode ? step : seconds(length, length) + static_cast<double>(max_tokens - 1) * step;
}

}  // namespace decodelab
