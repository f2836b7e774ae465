// `decodelab gate`: does the candidate decode slower, do more, or choose other tokens than the baseline? An exit code
// for CI.
#include <iostream>
#include <memory>

#include <fmt/format.h>

#include "base/files.h"
#include "base/table.h"
#include "bench/commands/cell_options.h"
#include "bench/commands/commands.h"
#include "bench/commands/config_file.h"
#include "bench/commands/gate_measure.h"
#include "bench/measure/interrupt.h"
#include "bench/plan/axis.h"
#include "reports/page/gate/gate_page.h"

namespace decodelab {
namespace {

const std::vector<std::string> kFormats{"text", "md", "json", "junit"};

struct GateOptions {
  GateRequest request;
  CellOptions cells{.phases = "decode"};
  std::string baseline_arm;
  std::string candidate_arm;
  std::string policy_file;
  std::string counters_file;
  std::string on_inconclusive;
  double time_budget_s = 0;
  bool self_test = false;
  std::string replay;
  std::string output = "text";
  std::string junit;
  std::string markdown;
  bool annotations = false;
  bool no_preflight = false;
};

GatePolicy policy_of(const GateOptions& options) {
  GatePolicy policy;
  if (!options.policy_file.empty()) {
    policy = parse_gate_policy(read_file("--policy", options.policy_file), options.policy_file);
  }
  if (!options.on_inconclusive.empty()) {
    policy.on_inconclusive =
        parse_gate_policy(fmt::format(R"({{"on_inconclusive": "{}"}})", options.on_inconclusive), "--on-inconclusive")
            .on_inconclusive;
  }
  if (options.time_budget_s > 0) {
    policy.time_budget_s = options.time_budget_s;
  }
  return policy;
}

std::string printed(const GateDecision& decision, const std::string& format) {
  if (format == "md") {
    return gate_markdown(decision);
  }
  if (format == "json") {
    return gate_json(decision);
  }
  if (format == "junit") {
    return gate_junit(decision);
  }
  return gate_text(decision);
}

ExitCode report(const GateDecision& decision, const GateOptions& options) {
  std::cout << printed(decision, options.output) << std::flush;
  if (!options.junit.empty()) {
    write_file("--junit", options.junit, gate_junit(decision));
  }
  if (!options.markdown.empty()) {
    write_file("--markdown", options.markdown, gate_markdown(decision));
  }
  if (options.annotations) {
    std::cout << gate_annotations(decision);
  }
  return static_cast<ExitCode>(decision.exit_code);
}

/// Fills the request in and checks it, before anything is created.
void complete(GateOptions& options) {
  GateRequest& gate = options.request;
  complete_cells(options.cells, gate.sweep);
  const auto command = [&](const std::string& side, const std::string& worker, const std::string& arm) {
    if (worker.empty() == arm.empty()) {
      throw std::invalid_argument(
          fmt::format("give either --{0}-worker CMD (another build or engine) or --{0}-arm ARM (of this build)", side));
    }
    return arm.empty() ? worker : own_worker(arm);
  };
  if (options.self_test) {
    const std::string arm = options.candidate_arm.empty() ? "bigcode" : options.candidate_arm;
    gate.baseline_command = gate.candidate_command = own_worker(arm);
    gate.self_test_arm = arm;
  } else {
    gate.baseline_command = command("baseline", gate.baseline_command, options.baseline_arm);
    gate.candidate_command = command("candidate", gate.candidate_command, options.candidate_arm);
  }
  gate.policy = policy_of(options);
  if (!options.counters_file.empty()) {
    gate.accepted_counters = read_file("--counters", options.counters_file);
  }
}

ExitCode run_gate(GateOptions& options) {
  parse_words("--output", options.output, kFormats);
  if (!options.replay.empty()) {
    return report(replay_stored_gate(options.request.store, options.replay), options);
  }
  complete(options);
  catch_interrupts();
  if (options.self_test) {
    const GateSelfTest test = self_test_gate(options.request);
    fmt::print("--- A/A: the same build against itself\n");
    report(test.same, options);
    if (test.slower) {
      fmt::print("--- the same with a wait of {} ns put into every step of the candidate\n", test.slow_ns);
      report(*test.slower, options);
    }
    fmt::print("{}\n", test.words);
    return test.exit_code;
  }
  if (const std::string busy = options.no_preflight ? "" : preflight(); !busy.empty()) {
    std::cerr << "decodelab: gate INVALID: " << busy << '\n';
    return ExitCode::invalid;
  }
  const std::optional<GateDecision> decision = measure_gate(options.request);
  if (!decision) {
    std::cerr << "decodelab: interrupted; the blocks that ended are in the store\n";
    return ExitCode::interrupted;
  }
  return report(*decision, options);
}

std::string policy_manual() {
  std::string text =
      "Keys of a policy file, nested where there is a dot (margins.decode is {\"margins\": {\"decode\": .03}}):\n";
  for (const PolicyKey& key : gate_policy_keys()) {
    text += fmt::format("  {:<20} {} ({})\n", key.name, key.meaning, key.expected);
  }
  return text;
}

}  // namespace

void add_gate_command(CLI::App& app, ExitCode& exit_code) {
  auto options = std::make_shared<GateOptions>();
  GateRequest& request = options->request;
  CLI::App* command = app.add_subcommand("gate", "Decide whether a candidate regresses: counters, outputs, time.");
  add_cell_options(*command, options->cells, request.sweep);
  command->get_option("--blocks")
      ->description("Mirrored blocks in each launch; 0: as many as take twice as long as its start");
  add_config_option(*command);
  command->add_option("--baseline-worker", request.baseline_command, "Command that starts the baseline's worker");
  command->add_option("--candidate-worker", request.candidate_command, "Command that starts the candidate's worker");
  command->add_option("--baseline-arm", options->baseline_arm, "An arm of this build as the baseline");
  command->add_option("--candidate-arm", options->candidate_arm, "An arm of this build as the candidate");
  command->add_option("--policy", options->policy_file, "Margins, looks and limits as JSON; its keys stand below");
  command->add_option("--counters", options->counters_file,
                      "Accepted counters ('decodelab counters --accept'); without it the baseline's are held against");
  command->add_option("--on-inconclusive", options->on_inconclusive, "report (exit 3), pass (0) or fail (1)");
  command->add_option("--time-budget", options->time_budget_s, "Seconds after which no further look is begun");
  command->add_flag("--self-test", options->self_test,
                    "Gate this build against itself, and against itself with a slow-down of twice the margin");
  command->add_option("--replay", options->replay, "Decide a stored gate again (id, name, latest); runs nothing");
  command->add_flag("--no-preflight", options->no_preflight, "Begin although other processes keep the cores busy");
  command->add_option("--store", request.store, "The SQLite file that holds the runs")->capture_default_str();
  command->add_option("-o,--output", options->output, "text, md, json or junit")->capture_default_str();
  command->add_option("--junit", options->junit, "Also write JUnit XML into this file");
  command->add_option("--markdown", options->markdown, "Also write the Markdown summary into this file");
  command->add_flag("--annotations", options->annotations, "Also print ::error and ::warning lines for GitHub Actions");
  command->footer(
      policy_manual() +
      "\nExit codes: 0 pass; 1 regression; 2 usage; 3 inconclusive; 4 invalid (noise, something missing); 5 outputs "
      "differ; 130 interrupted.\n\n"
      "Example:\n"
      "  decodelab gate -m synthetic:tiny --baseline-worker 'release/decodelab worker --arm bigcode' \\\n"
      "      --candidate-worker 'build/decodelab worker --arm bigcode' --batch 1,8 --length 128\n"
      "  decodelab gate -m synthetic:tiny --self-test");
  command->callback([options, &exit_code] { exit_code = run_gate(*options); });
}

}  // namespace decodelab
