// The one program: parses the command line, runs a subcommand, and turns what it throws into an exit code and one
// sentence.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bench/commands/commands.h"
#include "bench/commands/config_file.h"

namespace {

using decodelab::ExitCode;

int fail(ExitCode code, std::string_view message) {
  // libtorch appends a stack trace; a person wants the first line.
  std::cerr << "decodelab: " << message.substr(0, message.find('\n')) << '\n';
  return static_cast<int>(code);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{
      "An ablation laboratory for LLM decoding: which optimization is worth what, on your model and your machine.",
      "decodelab"};
  app.set_version_flag("--version", [] { return decodelab::version_text(); });
  app.require_subcommand(1);
  app.footer(
      "Example:\n"
      "  decodelab sweep -m synthetic:tiny --arm causal --arm bigcode --batch 1,8 --length 16-256x4 --name first\n"
      "  decodelab report first --out first-report\n"
      "'decodelab SUBCOMMAND --help' explains one.");
  ExitCode exit_code = ExitCode::ok;
  decodelab::add_sweep_command(app, exit_code);
  decodelab::add_report_command(app, exit_code);
  decodelab::add_compare_command(app, exit_code);
  decodelab::add_history_command(app, exit_code);
  decodelab::add_gate_command(app, exit_code);
  decodelab::add_store_command(app, exit_code);
  decodelab::add_trace_command(app, exit_code);
  decodelab::add_counters_command(app, exit_code);
  decodelab::add_doctor_command(app, exit_code);
  decodelab::add_generate_command(app, exit_code);
  decodelab::add_fetch_command(app, exit_code);
  decodelab::add_list_command(app, exit_code);
  decodelab::add_worker_command(app, exit_code);
  decodelab::add_launch_command(app, exit_code);
  decodelab::add_draft_command(app, exit_code);
  decodelab::add_rank_command(app, exit_code);
  if (argc == 1) {
    std::cerr << app.help();
    return static_cast<int>(ExitCode::usage);
  }
  try {
    std::vector<std::string> arguments = decodelab::with_config_file(app, {argv + 1, argv + argc});
    std::ranges::reverse(arguments);  // CLI11 takes them from the end
    app.parse(std::move(arguments));
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) {
      return app.exit(error);
    }
    return fail(ExitCode::usage, std::string(error.what()) + " (see --help)");
  } catch (const decodelab::AbsentDevice& error) {
    return fail(ExitCode::absent_device, error.what());
  } catch (const std::invalid_argument& error) {
    return fail(ExitCode::usage, error.what());
  } catch (const std::exception& error) {
    return fail(ExitCode::internal, error.what());
  }
  // All objects of ours are destroyed. The clean-up of libtorch would take 0.15 s, which a sweep or a gate would pay at
  // each launch.
  std::cout.flush();
  std::fflush(nullptr);
  std::_Exit(static_cast<int>(exit_code));
}
