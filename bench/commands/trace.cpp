// `decodelab trace`: some steps of an arm in a cell as a file that can be opened, and an account of their time.
#include "bench/commands/trace.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>

#include <fmt/format.h>

#include "bench/commands/cell_options.h"
#include "bench/commands/checkpoint_source.h"
#include "bench/commands/draft_options.h"
#include "bench/commands/new_run.h"
#include "bench/commands/trace_words.h"
#include "bench/machine/environment.h"
#include "bench/measure/engine_trace.h"
#include "bench/measure/process/rank_process.h"
#include "bench/plan/arm.h"
#include "bench/plan/sweep_plan.h"
#include "engine/runtime.h"
#include "profiles/trace/text.h"
#include "reports/statistics/labels.h"
#include "reports/store/store.h"

namespace decodelab {
namespace {

struct TraceOptions {
  SweepRequest request;
  CellOptions cells{.phases = "decode"};
  TraceRequest trace;
  std::int64_t tier = 2;
  std::int64_t pairs = -1;
  bool bytes = false;
  std::vector<std::string> outputs;
  std::string run;
  std::string store = kDefaultStore;
};

constexpr Phase kServing = Phase::batching;
constexpr const char* kServingHasNoStep =
    "phase batching serves many requests in one timed step: trace a prefill or a decode step of the same arm";

/// One trace to be taken.
struct Job {
  CellRecord cell;
  ArmRecord arm;
  std::string reason;  ///< Why it cannot be; empty where it can.
};

struct Plan {
  LaunchPlan launch;
  std::vector<Job> jobs;
  std::optional<std::int64_t> run_id;
};

Plan plan_of_cells(TraceOptions& options) {
  SweepRequest& request = options.request;
  if (request.arms.empty()) {
    throw std::invalid_argument("--arm: which arm? A preset, with variants added or removed; see 'decodelab list'");
  }
  complete_cells(options.cells, request);
  if (std::ranges::find(request.phases, kServing) != request.phases.end()) {
    throw std::invalid_argument(kServingHasNoStep);
  }
  const RunData data = make_sweep(request, config_of(request.model));
  if (data.cells.size() != 1) {
    throw std::invalid_argument(
        fmt::format("--phase, --batch and --length name {} cells, and a trace is of one: name one of each, or trace "
                    "every cell of a run with --run",
                    data.cells.size()));
  }
  open_drafts(request.drafts, request.model, dtype_from_name(request.dtype), request.device);
  const CheckpointSource source = open_checkpoint(request.model, dtype_from_name(request.dtype), request.device);
  Plan plan{.launch = {.model = request.model,
                       .checkpoint = source.path.string(),
                       .dtype = request.dtype,
                       .device = request.device,
                       .threads = request.threads,
                       .seed = request.seed,
                       .max_tokens = request.max_tokens,
                       .fill = fill_of(request),
                       .prompts = request.prompts,
                       .drafts = request.drafts},
            .jobs = {},
            .run_id = {}};
  for (const CellArmRecord& row : data.cell_arms) {
    plan.jobs.push_back(
        {.cell = data.cells.front(), .arm = data.arms[static_cast<std::size_t>(row.arm_id)], .reason = row.reason});
  }
  return plan;
}

Plan plan_of_run(const TraceOptions& options, const Store& store) {
  const std::int64_t id = store.find_run(options.run);
  const RunData data = store.load_plan(id);
  Plan plan{.launch = launch_plan_from_json(data.run.plan_json), .jobs = {}, .run_id = id};
  require_device(plan.launch.device);
  for (const CellArmRecord& row : data.cell_arms) {
    const auto cell = std::ranges::find(data.cells, row.cell_id, &CellRecord::id);
    const auto arm = std::ranges::find(data.arms, row.arm_id, &ArmRecord::id);
    if (!arm->command.empty() || arm->roofline()) {
      continue;  // Another engine traces itself; a roofline has no stages.
    }
    plan.jobs.push_back({.cell = *cell,
                         .arm = *arm,
                         .reason = cell->phase == kServing ? kServingHasNoStep
                                   : comparable(row.status, std::nullopt)
                                       ? ""
                                       : fmt::format("the run has it as {}: {}", to_string(row.status), row.reason)});
  }
  return plan;
}

/// Replaces the characters that a shell or a file system may not take in a file name.
std::string plain(std::string text) {
  std::ranges::replace_if(
      text, [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '-' && c != '.' && c != '+'; },
      '_');
  return text;
}

/// With several jobs each has its own file: the cell and the arm go before the endings.
std::string file_of(const std::string& output, const Plan& plan, const Job& job) {
  if (plan.jobs.size() == 1) {
    return output;
  }
  const std::filesystem::path path(output);
  const std::string name = path.filename().string();
  const std::size_t dot = std::min(name.find('.'), name.size());
  const std::string cell = plan.run_id
                               ? fmt::format("-{}-b{}-l{}", to_string(job.cell.phase), job.cell.batch, job.cell.length)
                               : std::string();
  return (path.parent_path() / (name.substr(0, dot) + cell + "-" + plain(job.arm.label) + name.substr(dot))).string();
}

void print(const Job& job, const TracedCell& traced, const std::vector<std::string>& files) {
  fmt::print("{}, {} ({})\n{}", job.arm.label, cell_label(job.cell), setting_label(job.cell),
             trace_text(traced.trace, traced.quality, traced.attribution));
  if (traced.trace.events().session.perturbation.pairs == 0) {
    fmt::print("what tracing costs was not measured (--pairs 0)\n");
  }
  for (const std::string& file : files) {
    fmt::print("{}\n", how_to_open(file));
  }
  fmt::print("\n");
}

/// Traces one job, writes its files, and keeps the account in the store where the job belongs to a run.
TraceVerdict run_job(const TraceOptions& options, const Plan& plan, const Job& job,
                     const std::shared_ptr<const Model>& model, const Drafts& drafts, Store* store) {
  const Arm arm = parse_arm(job.arm.label);
  const Engine engine(model, bind_arm(arm, reference_plan()), drafts, rank_processes(plan.launch, job.arm.label));
  CellInput input = cell_input(plan.launch);
  input.request = arm.request;
  add_token_bytes({&job.arm, 1}, plan.launch.checkpoint, input);
  const TracedCell traced = trace_cell(engine, arm, input, job.cell, options.trace);
  std::vector<std::string> files;
  for (const std::string& output : options.outputs) {
    files.push_back(file_of(output, plan, job));
    write_trace_file(traced.trace, traced.quality, traced.attribution, files.back());
  }
  print(job, traced, files);
  if (options.bytes) {
    fmt::print("{}\n", bytes_text(count_bytes(engine, input, job.cell)));
  }
  if (store != nullptr) {
    TraceRecord record = trace_record(traced.trace, traced.quality, traced.attribution);
    record.cell_id = job.cell.id;
    record.arm_id = job.arm.id;
    record.file = files.empty() ? "" : files.front();
    record.command = own_command();
    store->save_trace(*plan.run_id, record);
  }
  return traced.quality.verdict;
}

ExitCode run_trace(TraceOptions& options) {
  if (options.tier != 1 && options.tier != 2) {
    throw std::invalid_argument(fmt::format("--tier: 1 (what ran) or 2 (and why it waited), not {}", options.tier));
  }
  for (const std::string& output : options.outputs) {
    check_trace_path("--out", output);
  }
  options.trace.tier = static_cast<TraceTier>(options.tier);
  if (options.pairs >= 0) {
    options.trace.pairs = options.pairs;
  }
  std::optional<Store> store;
  if (!options.run.empty()) {
    // Looking for a run must not create a store.
    Store(options.store, StoreAccess::read).find_run(options.run);
    store.emplace(options.store, StoreAccess::write);
  }
  const Plan plan = store ? plan_of_run(options, *store) : plan_of_cells(options);
  options.trace.model = plan.launch.model;
  set_threads(plan.launch.threads);
  place_threads(places_of(plan.launch));
  const auto model = Model::load(plan.launch.checkpoint, dtype_from_name(plan.launch.dtype), plan.launch.device,
                                 memory_to_take(plan.launch.device));
  const Drafts drafts =
      load_drafts(plan.launch.drafts, dtype_from_name(plan.launch.dtype), plan.launch.device, places_of(plan.launch));
  bool believable = true;
  bool any = false;
  for (const Job& job : plan.jobs) {
    if (!job.reason.empty()) {
      fmt::print("{}, {}: not traced: {}\n\n", job.arm.label, cell_label(job.cell), job.reason);
      continue;
    }
    const TraceVerdict verdict = run_job(options, plan, job, model, drafts, store ? &*store : nullptr);
    any = true;
    believable = believable && is_believable(verdict);
    std::cout << std::flush;
  }
  return any && believable ? ExitCode::ok : ExitCode::invalid;
}

}  // namespace

void add_trace_command(CLI::App& app, ExitCode& exit_code) {
  auto options = std::make_shared<TraceOptions>();
  CLI::App* command = app.add_subcommand(
      "trace", "Trace some steps of an arm: a file for a viewer, a verdict on it, and where the time went.");
  add_cell_options(*command, options->cells, options->request);
  command
      ->add_option("--arm", options->request.arms,
                   "PRESET[,+variant[:parameter=n]][,-variant]; repeat for each arm, each has its own file")
      ->allow_extra_args(false);
  command->add_option("--steps", options->trace.steps, "Steps that are traced, after a warm-up")->capture_default_str();
  command
      ->add_option("--tier", options->tier,
                   "1: spans, the engine's operators, kernels; 2: also operators inside operators, API calls and waits")
      ->capture_default_str();
  command
      ->add_option(
          "--out", options->outputs,
          "F.sqlite (what verify, explain, diff and sql read), F.pftrace (for Perfetto's viewer), F.pt.trace.json.gz "
          "(HTA, chrome://tracing) or F.summary.json; repeat for several")
      ->allow_extra_args(false);
  command->add_option("--pairs", options->pairs,
                      "Pairs of traced and untraced visits that tell what tracing costs; 0: none. Default: as many as "
                      "fit two seconds, 8 at least");
  command->add_flag("--bytes", options->bytes,
                    "Also count, in a step of its own, what each stage moves in the GPU's memory, beside the model");
  command->add_option("--most-events", options->trace.most_events, "A trace of more rows is refused before it is taken")
      ->capture_default_str();
  command->add_option("--run", options->run,
                      "Trace every cell of this run (id, name, latest) in the store, and keep the accounts with it");
  command->add_option("--store", options->store, "The SQLite file that holds the runs")->capture_default_str();
  command->footer(
      "Times of a trace are those of traced steps and stand in no table of a run. Exit codes: 0 the trace can be\n"
      "believed, perhaps with a warning; 4 it cannot.\n\n"
      "Example:\n"
      "  decodelab trace -m synthetic:tiny --arm bigcode --batch 8 --length 128 --out t.sqlite --out t.pftrace\n"
      "  decodelab trace --run latest --out traces/run.sqlite\n"
      "  decodelab trace verify t.sqlite");
  add_trace_file_commands(*command, exit_code);
  add_trace_doctor_commands(*command, exit_code);
  command->callback([options, command, &exit_code] {
    if (command->get_subcommands().empty()) {
      exit_code = run_trace(*options);
    }
  });
}

}  // namespace decodelab
