// The process of a draft, which guesses for a session of another one.
#include <csignal>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "bench/commands/commands.h"
#include "bench/machine/environment.h"
#include "bench/measure/process/draft_process.h"
#include "bench/measure/process/mailbox.h"
#include "bench/plan/arm.h"
#include "bench/plan/sweep_plan.h"
#include "engine/engine.h"
#include "engine/runtime.h"
#include "engine/sequences/proposer.h"

namespace decodelab {
namespace {

struct DraftOptions {
  std::string checkpoint;
  std::string dtype;
  std::string device;
  std::int64_t threads = 0;
  std::vector<std::int64_t> places{};
  int mailbox = -1;
};

/// Returns the fastest preset that the draft can run.
std::string arm_of_draft(const ModelConfig& config, const DraftOptions& options) {
  const Arm native = parse_arm("native");
  const bool runs =
      unsupported_reason(native, {.config = config, .dtype = dtype_from_name(options.dtype), .device = options.device})
          .empty();
  return runs ? "native" : "causal";
}

ExitCode serve(const DraftOptions& options) {
  std::signal(SIGINT, SIG_IGN);  // The parent finishes what it is at, and this process ends with it.
  Mailbox mailbox(options.mailbox);
  try {
    set_threads(options.threads);
    place_threads(options.places);
    const auto model =
        Model::load(options.checkpoint, dtype_from_name(options.dtype), options.device, memory_to_take(options.device));
    const std::string arm = arm_of_draft(model->config(), options);
    const Engine engine(model, bind_arm(parse_arm(arm), reference_plan()));
    serve_draft(mailbox, [&](std::int64_t rows, std::int64_t max_tokens, std::int64_t most) {
      const std::string guesses = fmt::format("{},+draft-model:draft={}:tokens={}", arm, kSelfDraft, most);
      return bind_arm(parse_arm(guesses), reference_plan())
          .proposer.value()
          .make({.rows = rows,
                 .max_tokens = max_tokens,
                 .draft = &engine,
                 .sampling = std::vector<SamplingParameters>(static_cast<std::size_t>(rows))});
    });
  } catch (const std::exception& error) {
    mailbox.send(failed_answer(error.what()));
    return ExitCode::internal;
  }
  return ExitCode::ok;
}

}  // namespace

void add_draft_command(CLI::App& app, ExitCode& exit_code) {
  auto options = std::make_shared<DraftOptions>();
  CLI::App* command = app.add_subcommand("draft", "The process of one draft; started by arms with draft-process.");
  command->group("");  // Not shown in --help.
  command->add_option("--checkpoint", options->checkpoint)->required();
  command->add_option("--dtype", options->dtype)->required();
  command->add_option("--device", options->device)->required();
  command->add_option("--threads", options->threads)->required();
  command->add_option("--places", options->places)->delimiter(',');
  command->add_option("--mailbox", options->mailbox)->required();
  command->callback([options, &exit_code] { exit_code = serve(*options); });
}

}  // namespace decodelab
