// The process of one rank of a model, which follows the first one.
#include <csignal>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "bench/commands/commands.h"
#include "bench/machine/environment.h"
#include "bench/plan/arm.h"
#include "bench/plan/sweep_plan.h"
#include "engine/engine.h"
#include "engine/ranks/rank_memory.h"
#include "engine/runtime.h"

namespace decodelab {
namespace {

struct RankOptions {
  std::string checkpoint;
  std::string dtype;
  std::string device;
  std::string arm;
  std::int64_t rank = 1;
  pid_t first = 0;  ///< The process of the first rank.
  std::int64_t threads = 1;
  std::int64_t first_layers = 0;  ///< Of a draft that is these layers of the model; 0: all.
  std::vector<std::int64_t> places{};
  std::string memory;
};

ExitCode run_rank(const RankOptions& options) {
  std::signal(SIGINT, SIG_IGN);  // The first rank finishes what it is at, and this process ends with it.
  const int descriptor = open(options.memory.c_str(), O_RDWR | O_CLOEXEC);
  if (descriptor < 0) {
    throw std::invalid_argument(
        fmt::format("--memory: {} cannot be opened; ranks are started by the arm that shares a model, not by hand",
                    options.memory));
  }
  RankMemory memory(descriptor, options.rank);
  close(descriptor);
  memory.set_look([first = options.first] {
    if (kill(first, 0) != 0) {
      throw RankFailed("the process of the first rank has ended");
    }
  });
  try {
    set_threads(options.threads);
    place_threads(options.places);
    auto model =
        Model::open(options.checkpoint, dtype_from_name(options.dtype), options.device, memory_to_take(options.device));
    if (options.first_layers > 0) {
      model = model->first_layers(options.first_layers);
    }
    Engine::run_rank(model, bind_arm(parse_arm(options.arm), reference_plan()), memory);
  } catch (const std::exception& error) {
    memory.fail(fmt::format("rank {} of {}: {}", memory.rank(), memory.ranks(), error.what()));
    return ExitCode::internal;
  }
  return ExitCode::ok;
}

}  // namespace

void add_rank_command(CLI::App& app, ExitCode& exit_code) {
  auto options = std::make_shared<RankOptions>();
  CLI::App* command = app.add_subcommand("rank", "The process of one rank; started by arms whose ranks share a model.");
  command->group("");  // Not shown in --help.
  command->add_option("--checkpoint", options->checkpoint)->required();
  command->add_option("--dtype", options->dtype)->required();
  command->add_option("--device", options->device)->required();
  command->add_option("--arm", options->arm)->required();
  command->add_option("--rank", options->rank)->required();
  command->add_option("--first", options->first)->required();
  command->add_option("--threads", options->threads)->required();
  command->add_option("--first-layers", options->first_layers);
  command->add_option("--places", options->places)->delimiter(',');
  command->add_option("--memory", options->memory)->required();
  command->callback([options, &exit_code] { exit_code = run_rank(*options); });
}

}  // namespace decodelab
