// `decodelab sweep`: arms over phases, batches and lengths, in fresh launches and mirrored blocks.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <iostream>
#include <memory>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/memory_at_hand.h"
#include "bench/commands/cell_options.h"
#include "bench/commands/checkpoint_source.h"
#include "bench/commands/commands.h"
#include "bench/commands/config_file.h"
#include "bench/commands/draft_options.h"
#include "bench/commands/gate_measure.h"
#include "bench/commands/new_run.h"
#include "bench/commands/output.h"
#include "bench/commands/sweep_length.h"
#include "bench/commands/terminal.h"
#include "bench/machine/environment.h"
#include "bench/measure/interrupt.h"
#include "bench/measure/launcher.h"
#include "bench/measure/progress.h"
#include "bench/plan/sweep_plan.h"
#include "reports/page/tables/answer.h"
#include "reports/page/tables/time_table.h"
#include "reports/statistics/labels.h"
#include "reports/statistics/looks.h"
#include "reports/statistics/summary.h"
#include "reports/statistics/time_use.h"
#include "reports/store/store.h"

namespace decodelab {
namespace {

/// What `--quick` measures where nothing else is said.
constexpr std::int64_t kQuickLaunches = 2;
constexpr std::int64_t kQuickBlocks = 1;

struct SweepOptions {
  SweepRequest request;
  CellOptions cells;
  std::string store = kDefaultStore;
  std::string resume;
  std::string shard;
  std::string output = "text";
  double time_budget_s = 0;
  bool dry_run = false;
  bool apart = false;
  bool verbose = false;
  bool launches_given = false;
  bool blocks_given = false;
};

void print_dry_run(const RunData& data, const SweepRequest& request, const ModelConfig& config) {
  double total = 0;
  fmt::print("{} arms: ", data.arms.size());
  for (const ArmRecord& arm : data.arms) {
    fmt::print("{}{}{}", &arm == data.arms.data() ? "" : ", ", arm.label, arm.baseline ? " (baseline)" : "");
  }
  fmt::print("\n{} launches of {} blocks; {} {} on {}, {} threads\n\n", request.launches, request.blocks, request.model,
             request.dtype, request.device, request.threads);
  fmt::print("{:<20} {:>14}  {}\n", "cell", "modelled step", "arms that do not run");
  const Shard shard = request.shard.value_or(Shard());
  for (std::size_t index = 0; index < data.cells.size(); ++index) {
    if (!shard.has(index)) {
      continue;
    }
    const double step = prior_step_seconds(data.cells[index], config, request.max_tokens);
    std::vector<std::string> excluded;
    for (const CellArmRecord& row : data.cell_arms) {
      if (row.cell_id == static_cast<std::int64_t>(index) && row.status != RowStatus::planned) {
        excluded.push_back(fmt::format("{}: {}", data.arms[static_cast<std::size_t>(row.arm_id)].label, row.reason));
      }
    }
    const auto running = static_cast<double>(data.arms.size() - excluded.size());
    // A visit is a warm-up and as many timed steps as fill 0.2 s; each arm visits twice a block.
    constexpr double kVisitSeconds = 0.25;
    total += running * (4 * step + static_cast<double>(request.launches * request.blocks) * 2 *
                                       (step + std::max(step, kVisitSeconds)));
    fmt::print("{:<20} {:>11.1f} ms  {}\n", cell_label(data.cells[index]), 1e3 * step, fmt::join(excluded, "; "));
  }
  fmt::print(
      "\nabout {}, from modelled bytes and FLOPs of a typical core: the sweep itself corrects this as it learns\n",
      duration_words(total));
}

/// A new run that was stored, or the run that is resumed.
struct OpenRun {
  std::int64_t id;
  ModelConfig config;
  std::int64_t max_tokens;
};

/// The checkpoint of a new run. Where its weights would not fit, none is made, and every row of the run says so.
CheckpointSource source_of(SweepRequest& request, const ModelConfig& config, RunData& planned) {
  try {
    open_drafts(request.drafts, request.model, dtype_from_name(request.dtype), request.device);
    return open_checkpoint(request.model, dtype_from_name(request.dtype), request.device);
  } catch (const NotEnoughMemory& error) {
    for (CellArmRecord& row : planned.cell_arms) {
      if (is_open(row.status)) {
        row.status = RowStatus::oom;
        row.reason = error.what();
      }
    }
    return {.path = {}, .config = config, .synthetic = true};
  }
}

OpenRun begin(Store& store, RunData data, const SweepRequest& request, const CheckpointSource& source) {
  describe_run(data, request, source);
  store.add_run(data);
  return {.id = data.run.id, .config = source.config, .max_tokens = request.max_tokens};
}

/// Plans more launches for a run that has too few for a verdict. A run that has had its verdicts gets no more: adding
/// launches until they please makes false alarms likelier.
void add_launches(Store& store, std::int64_t id, std::int64_t launches) {
  const RunSummary summary = summarize(store.load_run(id));
  const std::int64_t planned = summary.run.launches;
  if (launches <= planned) {
    throw std::invalid_argument(
        fmt::format("--resume with --launches {}: expected more launches than the {} of the run; leave --launches away "
                    "to finish those",
                    launches, planned));
  }
  if (const std::int64_t needed = launches_needed(summary); planned >= needed) {
    throw std::invalid_argument(fmt::format(
        "--resume with --launches {}: the run's {} launches are enough for verdicts ({} are), and to add some after "
        "they were read makes "
        "false alarms likelier; measure a new run with more launches, or with --adaptive, whose looks are paid for",
        launches, planned, needed));
  }
  store.set_launches(id, launches);
}

OpenRun resume(Store& store, const std::string& selector, std::optional<std::int64_t> launches) {
  const std::int64_t id = store.find_run(selector);
  const LaunchPlan plan = launch_plan_from_json(store.load_run_record(id).plan_json);
  require_device(plan.device);
  const CheckpointSource source = open_checkpoint(plan.model, dtype_from_name(plan.dtype), plan.device);
  if (source.path != plan.checkpoint) {
    throw std::invalid_argument(fmt::format("--resume: the run measured the checkpoint {}, and '{}' now stands for {}",
                                            plan.checkpoint, plan.model, source.path.string()));
  }
  std::vector<NamedDraft> drafts = plan.drafts;
  open_drafts(drafts, plan.model, dtype_from_name(plan.dtype), plan.device);
  if (launches) {
    add_launches(store, id, *launches);
  }
  return {.id = id, .config = source.config, .max_tokens = plan.max_tokens};
}

/// Where the seconds of this session went, in all and by arm; what no launch accounts for (planning, the tables) is
/// rest.
std::string time_lines(const RunData& data, const std::vector<TimeSpentRecord>& before, double seconds) {
  std::vector<TimeSpentRecord> times = data.times_spent;
  for (TimeSpentRecord earlier : before) {
    earlier.ns = -earlier.ns;
    times.push_back(std::move(earlier));
  }
  TimeSpentRecord outside;
  outside.ns = std::max<std::int64_t>(std::llround(1e9 * seconds) - time_use(times).total(), 0);
  times.push_back(outside);
  std::string lines = fmt::format("decodelab: {}: {}\n", duration_words(seconds), time_use_words(time_use(times)));
  const std::vector<ArmTimeUse> arms = time_use_by_arm(times, data.arms);
  for (const ArmTimeUse& arm : arms) {
    if (arms.size() > 2 && arm.use.total() > 0) {
      lines += fmt::format("decodelab:   {}, {}: {}\n", time_use_label(arm),
                           duration_words(static_cast<double>(arm.use.total()) * 1e-9), time_use_words(arm.use));
    }
  }
  return lines;
}

ExitCode run_sweep(SweepOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  const OutputFormat format = output_format(options.output);
  std::optional<RunData> planned;
  std::optional<CheckpointSource> source;
  if (!options.shard.empty()) {
    if (!options.resume.empty()) {
      throw std::invalid_argument(
          "--shard: a run that is resumed is the shard that it was begun as; leave --shard away");
    }
    if (options.request.adaptive || options.time_budget_s > 0) {
      throw std::invalid_argument(
          "--shard: all shards make the same number of launches; leave --adaptive and --time-budget away");
    }
    options.request.shard = parse_shard(options.shard);
  }
  if (options.resume.empty()) {
    SweepRequest& request = options.request;
    complete_cells(options.cells, request);
    if (request.adaptive) {
      if (options.launches_given) {
        throw std::invalid_argument("--adaptive adds launches until they decide; leave --launches away");
      }
      request.launches = static_cast<std::int64_t>(adaptive_looks().looks.back());
    }
    if (request.tail && !options.launches_given) {
      request.launches = kTailRule.launches;
    }
    if (options.apart) {
      request.apart = own_worker;
    }
    if (request.quick) {
      request.launches = options.launches_given ? request.launches : kQuickLaunches;
      request.blocks = options.blocks_given ? request.blocks : kQuickBlocks;
    }
    const ModelConfig config = config_of(request.model);
    planned = make_sweep(request, config);
    if (options.dry_run) {
      print_dry_run(*planned, request, config);
      return ExitCode::ok;
    }
    source = source_of(request, config, *planned);
  }
  if (!planned) {
    // Looking for a run must not create a store.
    Store(options.store, StoreAccess::read).find_run(options.resume);
  }
  Store store(options.store, StoreAccess::write);
  const OpenRun open = planned
                           ? begin(store, std::move(*planned), options.request, *source)
                           : resume(store, options.resume,
                                    options.launches_given ? std::optional(options.request.launches) : std::nullopt);
  const std::vector<TimeSpentRecord> spent_before = store.load_plan(open.id).times_spent;
  catch_interrupts();
  SweepEnd end{};
  {
    StatusLine line;
    SweepLength length(store, open.id, options.time_budget_s > 0 ? std::optional(options.time_budget_s) : std::nullopt);
    end = run_launches(store, options.store, open.id, open.config, open.max_tokens, std::ref(length),
                       [&](double fraction, double remaining, const std::string& label) {
                         line.show(progress_line(fraction, remaining, label, line.columns()));
                       });
  }
  if (end == SweepEnd::complete) {
    store.end_run(open.id, unix_ns());
  }
  const RunData data = store.load_run(open.id);
  print_run(data, format, std::cout, options.store == kDefaultStore ? "" : options.store, options.verbose);
  std::cerr << time_lines(data, spent_before,
                          std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  if (end == SweepEnd::interrupted) {
    std::cerr << fmt::format("decodelab: interrupted; 'decodelab sweep --resume {} --store {}' goes on from here\n",
                             open.id, options.store);
    return ExitCode::interrupted;
  }
  const bool incorrect =
      std::ranges::any_of(data.cell_arms, [](const CellArmRecord& row) { return row.status == RowStatus::incorrect; });
  return incorrect ? ExitCode::outputs_differ : ExitCode::ok;
}

}  // namespace

void add_sweep_command(CLI::App& app, ExitCode& exit_code) {
  auto options = std::make_shared<SweepOptions>();
  SweepRequest& request = options->request;
  CLI::App* command =
      app.add_subcommand("sweep", "Measure arms over phases, batches and lengths, and store every step.");
  add_cell_options(*command, options->cells, request);
  command
      ->add_option(
          "--arm", request.arms,
          "PRESET[,+variant[:parameter=n]][,-variant][@samples=N][@regex=R][@prefix=SHARE[:KIND]]"
          "[@top-tokens=N[:text]][@prompt-top-tokens=N][@typical-p=P]; repeat for each arm; the first is the baseline")
      ->allow_extra_args(false);
  command->add_option("--ablate", request.ablate,
                      "add-one: the first arm (default causal) and it with each variant more; leave-one-out: the first "
                      "arm (default native) and it without each of its variants");
  command->add_option("--baseline", request.baseline, "The arm that ratios are against, if not the first");
  auto* launches = command->add_option("--launches", request.launches, "Fresh processes; the unit of inference")
                       ->capture_default_str();
  command
      ->add_option(
          "--worker", request.workers,
          "NAME[@samples=N][@prefix=SHARE]=CMD: an arm that is a process of its own, another build or engine; repeat "
          "for each")
      ->allow_extra_args(false);
  command->add_option("--store", options->store, "The SQLite file that holds the runs")->capture_default_str();
  command->add_option(
      "--resume", options->resume,
      "Go on with this run (id, name, latest): finished blocks are kept; with --launches, add launches to a run "
      "that has too few for a verdict");
  command->add_option("--shard", options->shard,
                      "i/n: measure every n-th cell from the i-th; 'store merge' puts all n together");
  command->add_option("-o,--output", options->output, "text, md, csv, json or jsonl")->capture_default_str();
  command->add_flag("--dry-run", options->dry_run, "Print the cells and the expected time, and run nothing");
  command->add_flag("--null-arm", request.null_arm,
                    "Add a second copy of the baseline, whose ratio shows what noise alone does");
  command->add_flag("--apart", options->apart,
                    "A process for each arm, as a headline should be repeated: none meets another's caches and heap; "
                    "the baseline is then what outputs are held against");
  command->add_flag("--roofline", request.roofline,
                    "Add the machine's own speed, reading and multiplying, as arms: rows get their share of the bound");
  add_config_option(*command);
  command->add_flag("--adaptive", request.adaptive,
                    "Add launches until each contrast is decided, with looks at 7, 11, 17 and 25 of them");
  command->add_flag("--tail", request.tail,
                    "Ten launches unless more are asked for, and as many steps of each row as its p99 needs");
  command->add_option(
      "--time-budget", options->time_budget_s,
      "Seconds: fewer launches than planned where they would take longer (fixed after two), and no look "
      "that would end later");
  command->add_flag("--verbose", options->verbose, "Print every note, and the latency tables too");
  command->add_flag("--quick", request.quick, "Two launches of one block unless said otherwise; the rows are marked");
  command->footer(
      "Example:\n"
      "  decodelab sweep -m synthetic:tiny --arm causal --arm bigcode --arm causal,+kv-grow:tokens=16 \\\n"
      "      --phase prefill,decode --batch 1,8 --length 16-256x4 --name first\n"
      "  decodelab sweep -m synthetic:tiny --ablate leave-one-out --arm bigcode --phase decode --name "
      "what-is-it-worth");
  const CLI::Option* blocks = command->get_option("--blocks");
  command->callback([options, launches, blocks, &exit_code] {
    options->launches_given = launches->count() > 0;
    options->blocks_given = blocks->count() > 0;
    exit_code = run_sweep(*options);
  });
}

}  // namespace decodelab
