// The subcommands of the one program, and what they share.
#pragma once

#include <stdexcept>
#include <string>

#include <CLI/CLI.hpp>

namespace decodelab {

/// Exit codes that scripts may rely on.
enum class ExitCode : int {
  ok = 0,
  regression = 1,
  usage = 2,
  inconclusive = 3,
  invalid = 4,
  outputs_differ = 5,
  internal = 70,
  absent_device = 77,
  interrupted = 130,
};

/// Thrown for a valid name of a device that is not there: exit code 77.
class AbsentDevice : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Add one subcommand each; its callback sets `exit_code` and throws on errors (std::invalid_argument: usage).
void add_sweep_command(CLI::App& app, ExitCode& exit_code);
void add_launch_command(CLI::App& app, ExitCode& exit_code);
void add_draft_command(CLI::App& app, ExitCode& exit_code);
void add_rank_command(CLI::App& app, ExitCode& exit_code);
void add_report_command(CLI::App& app, ExitCode& exit_code);
void add_history_command(CLI::App& app, ExitCode& exit_code);
void add_compare_command(CLI::App& app, ExitCode& exit_code);
void add_store_command(CLI::App& app, ExitCode& exit_code);
void add_counters_command(CLI::App& app, ExitCode& exit_code);
void add_generate_command(CLI::App& app, ExitCode& exit_code);
void add_doctor_command(CLI::App& app, ExitCode& exit_code);
void add_gate_command(CLI::App& app, ExitCode& exit_code);
void add_worker_command(CLI::App& app, ExitCode& exit_code);
void add_trace_command(CLI::App& app, ExitCode& exit_code);
void add_fetch_command(CLI::App& app, ExitCode& exit_code);
void add_list_command(CLI::App& app, ExitCode& exit_code);

/// The store that is used where `--store` is not given.
inline constexpr const char* kDefaultStore = "decodelab.sqlite";

/// Returns commit, compiler, libtorch and CUDA in one line each.
std::string version_text();

/// Returns the full name of a device that is there, `cuda:0` for `cuda`. Throws std::invalid_argument for a name that
/// is no device, AbsentDevice for one that is not there.
std::string require_device(const std::string& name);

}  // namespace decodelab
