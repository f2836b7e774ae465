// `decodelab trace doctor` and `nsys-command`: which collectors can run here, and how Nsight Systems sees the same
// steps.
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/table.h"
#include "bench/commands/trace.h"
#include "bench/measure/engine_trace.h"
#include "profiles/collect/nvtx.h"

namespace decodelab {
namespace {

ExitCode examine() {
  Table table{.title = "Collectors on this machine",
              .columns = {{"collector"}, {"state"}, {"why not"}},
              .rows = {},
              .notes = {}};
  for (const CollectorState& state : trace_collectors()) {
    table.rows.push_back({.fields = {state.name, state.on ? "runs" : "off", state.reason}});
  }
  std::cout << to_text(table);
  return ExitCode::ok;
}

struct NsysOptions {
  std::string output = "decode";
  std::vector<std::string> arguments;
};

ExitCode print_nsys(const NsysOptions& options) {
  std::string rest;
  for (const std::string& argument : options.arguments) {
    const bool quoted = argument.find_first_of(" '\"$&|;()<>*") != std::string::npos;
    rest += quoted ? fmt::format(" '{}'", argument) : " " + argument;
  }
  if (rest.empty()) {
    rest = " -m MODEL --arm ARM --device cuda:0";
  }
  fmt::print(
      "nsys profile --trace=cuda,nvtx --cuda-graph-trace=node --capture-range=nvtx --nvtx-capture='{}@{}' "
      "--capture-range-end=stop -o {} \\\n    decodelab trace{} --pairs 0\n",
      kNvtxWindowName, kNvtxDomainName, options.output, rest);
  return ExitCode::ok;
}

}  // namespace

void add_trace_doctor_commands(CLI::App& trace, ExitCode& exit_code) {
  CLI::App* doctor = trace.add_subcommand("doctor", "Say which collectors can run here, and why others cannot.");
  doctor->footer("Example:\n  decodelab trace doctor");
  doctor->callback([&exit_code] { exit_code = examine(); });

  auto nsys_options = std::make_shared<NsysOptions>();
  CLI::App* nsys = trace.add_subcommand(
      "nsys-command",
      "Print the command with which Nsight Systems records the same steps, kernels in graphs included.");
  nsys->add_option("--output", nsys_options->output, "The report that nsys writes")->capture_default_str();
  nsys->add_option("ARGUMENTS", nsys_options->arguments, "Those of 'decodelab trace', after --");
  nsys->footer(
      "'decodelab trace import' reads what 'nsys export --type sqlite' makes of the report.\n\n"
      "Example:\n  decodelab trace nsys-command -- -m synthetic:tiny --arm bigcode,+cuda-graph --device cuda:0");
  nsys->callback([nsys_options, &exit_code] { exit_code = print_nsys(*nsys_options); });
}

}  // namespace decodelab
