// `decodelab launch`: one launch of a sweep, started by the sweep itself and not by people.
#include <algorithm>
#include <chrono>
#include <exception>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include "bench/commands/commands.h"
#include "bench/commands/draft_options.h"
#include "bench/machine/environment.h"
#include "bench/measure/engine_completions.h"
#include "bench/measure/engine_worker.h"
#include "bench/measure/external_arm.h"
#include "bench/measure/interrupt.h"
#include "bench/measure/kept_outputs.h"
#include "bench/measure/launch_runner.h"
#include "bench/measure/launcher.h"
#include "bench/measure/process/child_process.h"
#include "bench/measure/process/rank_process.h"
#include "bench/measure/torch_roofline.h"
#include "bench/plan/arm.h"
#include "bench/plan/sweep_plan.h"
#include "engine/checkpoint/model_text.h"
#include "engine/checkpoint/synthetic_cache.h"
#include "engine/runtime.h"

namespace decodelab {
namespace {

struct LaunchOptions {
  std::string store;
  std::int64_t run = 0;
  std::int64_t launch = 0;
};

void send(const LaunchEvent& event) {
  const std::string line = to_json_line(event);
  // Errors are ignored: where the parent is gone, this process ends with it.
  [[maybe_unused]] const auto written = write(ChildProcess::kEventDescriptor, line.data(), line.size());
}

/// Lets runs share what stays the same for one program, weights and machine. Gives `input` the kept caches of prefilled
/// cells, and returns the kept outputs of the reference; null where there is no cache folder.
std::shared_ptr<const KeptOutputs> keep_across_runs(const BuildRecord& build, const LaunchPlan& plan,
                                                    CellInput& input) {
  try {
    const std::filesystem::path cache = default_cache_directory();
    std::string key = computed_by(build, plan.checkpoint, plan.seed, cache);
    for (const RealPrompt& prompt : plan.prompts) {
      key += fmt::format("prompt {}\n", fmt::join(prompt.ids, ","));
    }
    input.kept = std::make_shared<const KeptBytes>(cache / "cells");
    input.kept_key = key;
    return std::make_shared<const KeptOutputs>(KeptBytes(cache / "outputs"), key);
  } catch (const std::exception&) {
    return nullptr;
  }
}

/// Keeps what the arms that are right say to the run's prompts.
void save_completions(Store& store, std::int64_t run_id, const std::shared_ptr<const Model>& model,
                      const Drafts& drafts, const LaunchPlan& plan) {
  if (plan.prompts.empty()) {
    return;
  }
  const ModelText text = load_model_text(plan.checkpoint);
  const RunData data = store.load_plan(run_id);
  for (const ArmRecord& record : data.arms) {
    const bool runs = std::ranges::any_of(data.cell_arms, [&](const CellArmRecord& row) {
      return row.arm_id == record.id && row.status == RowStatus::ok;
    });
    // What an arm asks of each row is a setting of its cells, not of what the model says.
    if (runs && record.command.empty() && !record.roofline() && request_part(record.label).empty()) {
      const Engine engine(model, bind_arm(parse_arm(record.label), reference_plan()), drafts,
                          rank_processes(plan, record.label));
      store.save_completions(complete_prompts(engine, record.id, plan.prompts, text));
    }
  }
}

ExitCode run_launch(const LaunchOptions& options) {
  catch_interrupts();
  const auto start = std::chrono::steady_clock::now();
  Store store(options.store, StoreAccess::write);
  const RunData planned = store.load_plan(options.run);
  const LaunchPlan plan = launch_plan_from_json(planned.run.plan_json);
  bind_to_cores(plan.affinity);  // the parent of a resumed run does not know these cores
  set_threads(plan.threads);
  place_threads(places_of(plan));
  std::shared_ptr<const Model> model;
  Drafts drafts;
  std::exception_ptr no_model;  // Becomes the reason in the rows of the arms that need it.
  // Where every arm is another process, there is nothing to load.
  if (!all_external(planned.arms)) {
    try {
      model = Model::load(plan.checkpoint, dtype_from_name(plan.dtype), plan.device, memory_to_take(plan.device));
      drafts = load_drafts(plan.drafts, dtype_from_name(plan.dtype), plan.device, places_of(plan));
    } catch (const std::exception&) {
      no_model = std::current_exception();
    }
  }
  send({.event = "done",
        .kind = "load",
        .seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(),
        .message = ""});
  CellInput input = cell_input(plan);
  add_token_bytes(planned.arms, plan.checkpoint, input);
  std::map<std::string, std::weak_ptr<const Engine>> engines;  // Arms that differ in what they ask share one.
  std::shared_ptr<const KeptOutputs> kept_outputs;
  if (model) {
    kept_outputs = keep_across_runs(planned.run.build, plan, input);
  }
  const LaunchContext context{
      .make_worker = [&](const ArmRecord& record) -> std::unique_ptr<Worker> {
        if (!record.command.empty()) {
          return make_process_worker(store, record, plan);
        }
        if (no_model) {
          std::rethrow_exception(no_model);
        }
        if (record.roofline()) {
          return make_roofline_worker(record.label, model->config());
        }
        const Arm arm = parse_arm(record.label);
        std::weak_ptr<const Engine>& known = engines[std::string(variants_part(record.label))];
        std::shared_ptr<const Engine> engine = known.lock();
        if (engine == nullptr) {
          engine = std::make_shared<const Engine>(model, bind_arm(arm, reference_plan()), drafts,
                                                  rank_processes(plan, record.label));
          known = engine;
        }
        return make_engine_worker(std::move(engine), arm, input);
      },
      .make_exact = [&](const std::string& request) -> std::unique_ptr<Worker> {
        if (!model || dtype_from_name(plan.dtype) == ElementType::float32) {
          return nullptr;
        }
        const auto exact = Model::load(plan.checkpoint, ElementType::float32, plan.device, memory_to_take(plan.device));
        CellInput of_exact = cell_input(plan);
        of_exact.vocabulary = input.vocabulary;
        of_exact.texts = input.texts;
        const Arm arm = parse_arm("causal" + request);
        return make_engine_worker(std::make_shared<const Engine>(exact, bind_arm(arm, reference_plan())), arm,
                                  of_exact);
      },
      .available_memory_bytes =
          [&] { return plan.device == "cpu" ? available_memory_bytes() : free_device_bytes(plan.device); },
      .piece_started =
          [](const LaunchPiece& piece) {
            send({.event = "started", .kind = piece.kind, .cell = piece.cell, .message = ""});
          },
      .piece_done =
          [](const LaunchPiece& piece, double seconds) {
            send({.event = "done",
                  .kind = piece.kind,
                  .cell = piece.cell,
                  .seconds = seconds,
                  .block_seconds = piece.block_seconds,
                  .message = ""});
          },
      .arm_started = ChildProcess::leave_note,
      .stop_requested = interrupted,
      .side_work =
          [&model] {
            return model ? SideWork{.loading_ns = model->loading_ns(), .packing_ns = model->packing_ns()} : SideWork();
          },
      .kept_outputs = kept_outputs,
      .visits = visit_plan(plan, planned.run),
      .quality = {.ids = plan.quality_ids, .limit = plan.quality_limit},
  };
  if (run_launch(store, options.run, options.launch, context) != LaunchEnd::complete) {
    return ExitCode::interrupted;
  }
  if (options.launch == 0 && model) {
    save_completions(store, options.run, model, drafts, plan);
  }
  return ExitCode::ok;
}

}  // namespace

void add_launch_command(CLI::App& app, ExitCode& exit_code) {
  auto options = std::make_shared<LaunchOptions>();
  CLI::App* command = app.add_subcommand("launch", "One launch of a sweep; started by 'sweep'.");
  command->group("");  // Not shown in --help.
  command->add_option("--store", options->store)->required();
  command->add_option("--run", options->run)->required();
  command->add_option("--launch", options->launch)->required();
  command->callback([options, &exit_code] {
    try {
      exit_code = run_launch(*options);
    } catch (const std::exception& error) {
      // The parent reports the error to the user.
      const bool of_store = dynamic_cast<const StoreError*>(&error) != nullptr;
      send({.event = "error", .kind = of_store ? kStoreFailed : "", .message = error.what()});
      exit_code = ExitCode::internal;
    }
  });
}

}  // namespace decodelab
