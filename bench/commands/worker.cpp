// `decodelab worker`: this build, or a server that it asks, as an arm of another decodelab's sweep or gate.
#include <chrono>
#include <functional>
#include <memory>

#include <fcntl.h>
#include <nlohmann/json.hpp>

#include "bench/commands/commands.h"
#include "bench/machine/environment.h"
#include "bench/measure/engine_model.h"
#include "bench/measure/engine_worker.h"
#include "bench/measure/process/rank_process.h"
#include "bench/measure/process/worker_process.h"
#include "bench/measure/process/worker_server.h"
#include "bench/measure/serving/http_worker.h"
#include "bench/measure/torch_build.h"
#include "bench/plan/arm.h"
#include "bench/plan/sweep_plan.h"
#include "engine/runtime.h"

namespace decodelab {
namespace {

struct WorkerOptions {
  std::string arm = "causal";
  std::string dtype{};  ///< Empty: the one that is asked for.
  std::string url{};    ///< Of a server that is asked, instead of an arm.
  std::string serve{};  ///< The command of one.
  std::string api = "openai";
  std::string model{};
  double stall_seconds = 60;
  std::int64_t start_seconds = 240;

  bool asks_a_server() const { return !url.empty() || !serve.empty(); }
};

ExitCode serve_with(const WorkerHello& hello, const std::function<std::unique_ptr<Worker>(const WorkerLoad&)>& load) {
  if (fcntl(WorkerProcess::kRequestDescriptor, F_GETFD) < 0 || fcntl(WorkerProcess::kReplyDescriptor, F_GETFD) < 0) {
    throw std::invalid_argument(
        "decodelab worker reads requests from descriptor 3 and writes replies to descriptor 4, which are not open: it "
        "is started by 'decodelab sweep --worker NAME=CMD' or 'decodelab gate', not by hand");
  }
  return serve_worker(WorkerProcess::kRequestDescriptor, WorkerProcess::kReplyDescriptor, hello, load)
             ? ExitCode::ok
             : ExitCode::usage;
}

ExitCode run_engine_worker(const WorkerOptions& options) {
  if (options.api != WorkerOptions().api || !options.model.empty()) {
    throw std::invalid_argument("--api, --model: these say how a server is asked; add --url or --serve");
  }
  const Arm arm = parse_plain_arm(options.arm, "a worker is asked by the sweep that started it");
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
  return serve_with(hello, [&](const WorkerLoad& asked) {
    set_threads(asked.threads);
    const std::string device = require_device(asked.device);
    const ElementType dtype = dtype_from_name(options.dtype.empty() ? asked.dtype : options.dtype);
    const EnginePlan plan = bind_arm(arm, reference_plan());
    const auto model = model_for(plan, asked.model, dtype, device);
    const RankLauncher ranks = rank_processes({.checkpoint = asked.model,
                                               .dtype = name_of_dtype(dtype),
                                               .device = device,
                                               .arm = arm.label,
                                               .places = WorkerProcess::own_places()});
    return make_engine_worker(
        std::make_shared<const Engine>(model, plan, Drafts(), ranks), arm,
        CellInput{.seed = static_cast<std::uint64_t>(asked.seed), .max_tokens = asked.max_tokens});
  });
}

/// Reads what the flags say of a server. Throws std::invalid_argument that names the flag.
ServerOptions server_options(const WorkerOptions& options) {
  if (!options.url.empty() && !options.serve.empty()) {
    throw std::invalid_argument(
        "--url, --serve: expected one of them: a server that runs, or a command that starts one");
  }
  if (!(options.stall_seconds > 0 && options.stall_seconds <= 86'400)) {
    throw std::invalid_argument("--stall-seconds: expected a number above 0 and up to 86400");
  }
  if (options.start_seconds < 1) {
    throw std::invalid_argument("--start-seconds: expected at least 1");
  }
  ServerOptions server{
      .command = options.serve,
      .api = server_api_from_string("--api", options.api),
      .model = options.model,
      .stall = std::chrono::milliseconds(static_cast<std::int64_t>(1000 * options.stall_seconds) + 1),
      .start_limit = std::chrono::seconds(options.start_seconds),
  };
  if (!options.url.empty()) {
    server.url = parse_http_address("--url", options.url);
  } else {
    fill_in_command(options.serve, {{"port", "0"}});
  }
  return server;
}

ExitCode run_http_worker(const WorkerOptions& options) {
  if (options.arm != WorkerOptions().arm || !options.dtype.empty()) {
    throw std::invalid_argument(
        "--arm, --dtype: a server computes as it was started to; leave them away beside --url or --serve");
  }
  const ServerOptions server = server_options(options);
  // libgomp has bound this thread to the first place: the server, and the client beside it, may use all of them.
  bind_to_cores(WorkerProcess::own_places());
  return serve_with(http_hello(server, this_build().commit),
                    [&](const WorkerLoad& asked) { return make_http_worker(server, asked); });
}

}  // namespace

void add_worker_command(CLI::App& app, ExitCode& exit_code) {
  auto options = std::make_shared<WorkerOptions>();
  CLI::App* command = app.add_subcommand(
      "worker", "Serve cells to another decodelab over descriptors 3 and 4, as one arm: this build, or a server.");
  command->add_option("--arm", options->arm, "PRESET[,+variant[:parameter=n]][,-variant]")->capture_default_str();
  command->add_option("--dtype", options->dtype,
                      "Compute in fp32, fp16 or bf16, whatever the sweep's dtype is, to compare them in one run");
  command->add_option("--url", options->url,
                      "Ask the server at http://HOST:PORT, which runs already, instead of computing here");
  command->add_option("--serve", options->serve,
                      "Start a server by this command, and ask it: {model}, {dtype} (fp32), {torch_dtype} (float32), "
                      "{threads}, {seed} and {port}, a free one, are filled in");
  command
      ->add_option("--api", options->api,
                   "What the server speaks: openai (/v1/completions with return_token_ids, as vLLM) or llama.cpp "
                   "(/completion of llama-server)")
      ->capture_default_str();
  command->add_option("--model", options->model,
                      "The model's name in requests; default: the first that the server lists");
  command->add_option("--stall-seconds", options->stall_seconds, "The longest silence of a server that has requests")
      ->capture_default_str();
  command->add_option("--start-seconds", options->start_seconds, "How long a server may take until it is ready")
      ->capture_default_str();
  command->footer(
      "Examples:\n"
      "  decodelab sweep -m synthetic:tiny --arm bigcode --worker before='old/decodelab worker --arm bigcode'\n"
      "  decodelab sweep -m smollm2 --scope serving --arm native --worker 'server=decodelab worker --url "
      "http://127.0.0.1:8080 --api llama.cpp'");
  command->callback([options, &exit_code] {
    exit_code = options->asks_a_server() ? run_http_worker(*options) : run_engine_worker(*options);
  });
}

}  // namespace decodelab
