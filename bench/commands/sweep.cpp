// `decodelab sweep`: arms over phases, batches and lengths, in fresh launches and mirrored blocks.
#include "bench/commands/checkpoint_source.h"
#include "bench/commands/commands.h"
#include "bench/commands/new_run.h"
#include "bench/commands/output.h"
#include "bench/commands/terminal.h"
#include "bench/machine/environment.h"
#include "bench/measure/interrupt.h"
#include "bench/measure/launcher.h"
#include "bench/measure/progress.h"
#include "bench/plan/axis.h"
#include "bench/plan/sweep_plan.h"
#include "reports/store/store.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iostream>
#include <memory>
#include <optional>

namespace decodelab {
namespace {

const std::vector<std::string> kPhases{"prefill", "decode", "generate"};
const std::vector<std::string> kFills{"random", "generated"};
/// What `--quick` measures where nothing else is said.
constexpr std::int64_t kQuickLaunches = 2;
constexpr std::int64_t kQuickBlocks = 1;

struct Options {
  SweepRequest request;
  std::string phases = "prefill,decode";
  std::string batches = "1";
  std::string lengths = "128";
  std::string store = kDefaultStore;
  std::string resume;
  std::string shard;
  std::string output = "text";
  bool dry_run = false;
  bool launches_given = false;
  bool blocks_given = false;
};

std::string cell_label(const CellRecord& cell) {
  if (cell.phase == "decode") {
    return fmt::format("b{} tg @ d{}", cell.batch, cell.length);
  }
  return fmt::format("b{} {}{}", cell.batch, cell.phase == "prefill" ? "pp" : "gen", cell.length);
}

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
    if (!shard.has(index)) continue;
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

/// The plan of a new run, stored; or of the run that goes on.
struct OpenRun {
  std::int64_t id;
  ModelConfig config;
  std::int64_t max_tokens;
};

OpenRun begin(Store& store, RunData data, const SweepRequest& request, const CheckpointSource& source) {
  describe_run(data, request, source);
  store.add_run(data);
  return {.id = data.run.id, .config = source.config, .max_tokens = request.max_tokens};
}

OpenRun resume(Store& store, const std::string& selector) {
  const std::int64_t id = store.find_run(selector);
  const LaunchPlan plan = launch_plan_from_json(store.load_run_record(id).plan_json);
  require_device(plan.device);
  const CheckpointSource source = open_checkpoint(plan.model, dtype_from_name(plan.dtype));
  if (source.directory != plan.checkpoint) {
    throw std::invalid_argument(fmt::format("--resume: the run measured the checkpoint {}, and '{}' now stands for {}",
                                            plan.checkpoint, plan.model, source.directory.string()));
  }
  return {.id = id, .config = source.config, .max_tokens = plan.max_tokens};
}

ExitCode run(Options& options) {
  const OutputFormat format = output_format(options.output);
  std::optional<RunData> planned;
  std::optional<CheckpointSource> source;
  if (!options.shard.empty()) {
    if (!options.resume.empty()) {
      throw std::invalid_argument(
          "--shard: a run that is resumed is the shard that it was begun as; leave --shard away");
    }
    options.request.shard = parse_shard(options.shard);
  }
  if (options.resume.empty()) {
    SweepRequest& request = options.request;
    if (request.model.empty()) {
      throw std::invalid_argument("--model: which model? A checkpoint directory, or one of 'decodelab list models'");
    }
    request.phases = parse_words("--phase", options.phases, kPhases);
    request.batches = parse_axis("--batch", options.batches);
    request.lengths = parse_axis("--length", options.lengths);
    if (!request.fill.empty()) {
      parse_words("--fill", request.fill, kFills);
    }
    request.device = require_device(request.device);
    request.threads = request.threads == 0 ? detect_machine().cores : request.threads;
    if (request.quick) {
      request.launches = options.launches_given ? request.launches : kQuickLaunches;
      request.blocks = options.blocks_given ? request.blocks : kQuickBlocks;
    }
    request.command = own_command();
    const ModelConfig config = config_of(request.model);
    planned = make_sweep(request, config);
    if (options.dry_run) {
      print_dry_run(*planned, request, config);
      return ExitCode::ok;
    }
    source = open_checkpoint(request.model, dtype_from_name(request.dtype));
  }
  if (!planned) {
    // A store that is not there must not come into being by looking for a run in it.
    Store(options.store, StoreAccess::read).find_run(options.resume);
  }
  Store store(options.store, StoreAccess::write);
  const OpenRun open =
      planned ? begin(store, std::move(*planned), options.request, *source) : resume(store, options.resume);
  catch_interrupts();
  SweepEnd end{};
  {
    StatusLine line;
    end = run_launches(store, options.store, open.id, open.config, open.max_tokens,
                       [&](double fraction, double remaining, const std::string& label) {
                         line.show(progress_line(fraction, remaining, label, line.columns()));
                       });
  }
  if (end == SweepEnd::complete) {
    store.end_run(open.id, unix_ns());
  }
  const RunData data = store.load_run(open.id);
  print_run(data, format, std::cout);
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
  auto options = std::make_shared<Options>();
  SweepRequest& request = options->request;
  CLI::App* command =
      app.add_subcommand("sweep", "Measure arms over phases, batches and lengths, and store every step.");
  command->add_option("-m,--model", request.model, "A checkpoint directory, or synthetic:NAME");
  command
      ->add_option("--arm", request.arms,
                   "PRESET[,+variant[:parameter=n]][,-variant]; repeat for each arm; the first is the baseline")
      ->allow_extra_args(false);
  command->add_option("--baseline", request.baseline, "The arm that ratios are against, if not the first");
  command->add_option("--phase", options->phases, "prefill, decode, generate, or several")->capture_default_str();
  command->add_option("--batch", options->batches, "Rows: a,b | a-b | a-b+step | a-bxfactor")->capture_default_str();
  command->add_option("--length", options->lengths, "Tokens of the prompt, or already held in decode; same grammar")
      ->capture_default_str();
  command->add_option("--dtype", request.dtype, "fp32, fp16 or bf16")->capture_default_str();
  command->add_option("--device", request.device, "cpu or cuda:N")->capture_default_str();
  command->add_option("--threads", request.threads, "Threads of every operator; 0: one for each core")
      ->capture_default_str();
  auto* launches = command->add_option("--launches", request.launches, "Fresh processes; the unit of inference")
                       ->capture_default_str();
  auto* blocks =
      command->add_option("--blocks", request.blocks, "Mirrored blocks in each launch")->capture_default_str();
  command->add_option("--seed", request.seed, "Of prompts, cache contents and block order")->capture_default_str();
  command->add_option("--max-tokens", request.max_tokens, "Tokens of a completion in phase generate")
      ->capture_default_str();
  command->add_option("--fill", request.fill,
                      "How a decode cell's cache is filled: random or generated (by a prefill). Default: random, "
                      "with --worker generated");
  command
      ->add_option("--worker", request.workers,
                   "NAME=CMD: an arm that is a process of its own, another build or engine; repeat for each")
      ->allow_extra_args(false);
  command->add_option("--worker-timeout", request.worker_seconds, "Seconds that a worker may take for one reply")
      ->capture_default_str();
  command->add_option("--name", request.name, "A name to find the run by");
  command->add_option("--store", options->store, "The SQLite file that holds the runs")->capture_default_str();
  command->add_option("--resume", options->resume, "Go on with this run (id, name, latest): finished blocks are kept");
  command->add_option("--shard", options->shard,
                      "i/n: measure every n-th cell from the i-th; 'store merge' puts all n together");
  command->add_option("-o,--output", options->output, "text, md, csv, json or jsonl")->capture_default_str();
  command->add_flag("--dry-run", options->dry_run, "Print the cells and the expected time, and run nothing");
  command->add_flag("--null-arm", request.null_arm,
                    "Add a second copy of the baseline, whose ratio shows what noise alone does");
  command->add_flag("--roofline", request.roofline,
                    "Add the machine's own speed, reading and multiplying, as arms: rows get their share of the bound");
  command->add_flag("--quick", request.quick, "Two launches of one block unless said otherwise; the rows are marked");
  command->footer(
      "Example:\n"
      "  decodelab sweep -m synthetic:tiny --arm causal --arm bigcode --arm causal,+kv-grow:tokens=16 \\\n"
      "      --phase prefill,decode --batch 1,8 --length 16-256x4 --name first");
  command->callback([&app, options, launches, blocks, &exit_code] {
    options->launches_given = launches->count() > 0;
    options->blocks_given = blocks->count() > 0;
    exit_code = run(*options);
  });
}

}  // namespace decodelab
