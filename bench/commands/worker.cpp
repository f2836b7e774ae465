// `decodelab worker`: this build as an arm of another decodelab's sweep or gate.
#include <memory>

#include <fcntl.h>
#include <nlohmann/json.hpp>

#include "bench/commands/commands.h"
#include "bench/machine/environment.h"
#include "bench/measure/engine_worker.h"
#include "bench/measure/process/rank_process.h"
#include "bench/measure/process/worker_process.h"
#include "bench/measure/process/worker_server.h"
#include "bench/measure/torch_build.h"
#include "bench/plan/arm.h"
#include "bench/plan/sweep_plan.h"
#include "engine/runtime.h"

namespace decodelab {
namespace {

struct WorkerOptions {
  std::string arm = "causal";
  std::string dtype{};  ///< Empty: the one that is asked for.
};

ExitCode run_worker(const WorkerOptions& options) {
  const Arm arm = parse_plain_arm(options.arm, "a worker is asked by the sweep that started it");
  if (fcntl(WorkerProcess::kRequestDescriptor, F_GETFD) < 0 || fcntl(WorkerProcess::kReplyDescriptor, F_GETFD) < 0) {
    throw std::invalid_argument(
        "decodelab worker reads requests from descriptor 3 and writes replies to descriptor 4, which are not open: it "
        "is "
        "started by 'decodelab sweep --worker NAME=CMD' or 'decodelab gate', not by hand");
  }
  if (!options.dtype.empty()) {
    dtype_from_name(options.dtype);
  }
  const BuildRecord build = this_build();
  const WorkerHello hello{
      .engine = "decodelab",
      .version = build.commit,
      .settings_json = nlohmann::json{{"arm", arm.label},
                                      {"compiler", build.compiler},
                                      {"build_type", build.build_type},
                                      {"libtorch", build.libtorch}}
                           .dump(),
      .phases = {"prefill", "decode", "generate", "continue"},
      .fills = {"random", "generated"},
      .dtypes = {"fp32", "fp16", "bf16"},
      .devices = {"cpu", "cuda"},
      .exact = true,
      .forced = true,
      .slices = true,
      .samples = true,
  };
  const auto load = [&](const WorkerLoad& asked) {
    set_threads(asked.threads);
    const std::string device = require_device(asked.device);
    const ElementType dtype = dtype_from_name(options.dtype.empty() ? asked.dtype : options.dtype);
    const auto model = Model::load(asked.model, dtype, device, memory_to_take(device));
    const RankLauncher ranks = rank_processes({.checkpoint = asked.model,
                                               .dtype = name_of_dtype(dtype),
                                               .device = device,
                                               .arm = arm.label,
                                               .places = WorkerProcess::own_places()});
    return make_engine_worker(
        std::make_shared<const Engine>(model, bind_arm(arm, reference_plan()), Drafts(), ranks), arm,
        CellInput{.seed = static_cast<std::uint64_t>(asked.seed), .max_tokens = asked.max_tokens});
  };
  return serve_worker(WorkerProcess::kRequestDescriptor, WorkerProcess::kReplyDescriptor, hello, load)
             ? ExitCode::ok
             : ExitCode::usage;
}

}  // namespace

void add_worker_command(CLI::App& app, ExitCode& exit_code) {
  auto options = std::make_shared<WorkerOptions>();
  CLI::App* command =
      app.add_subcommand("worker", "Serve cells to another decodelab over descriptors 3 and 4, as one arm.");
  command->add_option("--arm", options->arm, "PRESET[,+variant[:parameter=n]][,-variant]")->capture_default_str();
  command->add_option("--dtype", options->dtype,
                      "Compute in fp32, fp16 or bf16, whatever the sweep's dtype is, to compare them in one run");
  command->footer(
      "Example:\n"
      "  decodelab sweep -m synthetic:tiny --arm bigcode --worker before='old/decodelab worker --arm bigcode'");
  command->callback([options, &exit_code] { exit_code = run_worker(*options); });
}

}  // namespace decodelab
