// `decodelab doctor`: what disturbs measurements here, how fast the machine is, and how small an effect it can resolve.
#include "bench/machine/doctor.h"

#include <algorithm>
#include <chrono>
#include <iostream>
#include <memory>

#include <fmt/format.h>

#include "base/table.h"
#include "bench/commands/commands.h"
#include "bench/commands/resolution.h"
#include "bench/commands/terminal.h"
#include "bench/machine/environment.h"
#include "bench/measure/interrupt.h"
#include "bench/measure/torch_roofline.h"
#include "engine/runtime.h"
#include "reports/statistics/estimates.h"

namespace decodelab {
namespace {

struct DoctorOptions {
  ResolutionRequest resolution{.seconds = 60};
  std::string dtype = "fp32";
};

/// How long each rate is measured; rates of a shared machine vary, so the range is shown.
constexpr auto kRateTime = std::chrono::seconds(3);
constexpr std::int64_t kReadBytes = std::int64_t{256} << 20;
constexpr std::int64_t kFlops = 1'000'000'000;

/// Returns the median and range of a rate: each call of `run` processes `amount` and returns the nanoseconds that it
/// took.
template <typename Run>
std::string rate(double amount, const char* unit, Run&& run) {
  std::vector<double> rates;
  run();  // The first call makes the buffers.
  const auto end = std::chrono::steady_clock::now() + kRateTime;
  while (rates.empty() || std::chrono::steady_clock::now() < end) {
    rates.push_back(amount / static_cast<double>(run()));
  }
  std::ranges::sort(rates);
  return fmt::format("{:.1f} {} (median of {}; {:.1f} to {:.1f})", quantile(rates, 0.5), unit, rates.size(),
                     rates.front(), rates.back());
}

Table system_table(const std::vector<Finding>& findings) {
  Table table{.title = "This machine", .columns = {{"what"}, {"found"}, {"advice"}}, .rows = {}, .notes = {}};
  for (const Finding& finding : findings) {
    table.rows.push_back({.fields = {finding.name, finding.value, ""}});
    if (!finding.advice.empty()) {
      table.notes.push_back(fmt::format("{}: {}.", finding.name, finding.advice));
    }
  }
  table.columns.pop_back();
  for (TableRow& row : table.rows) {
    row.fields.pop_back();
  }
  return table;
}

ExitCode run_doctor(DoctorOptions& options) {
  catch_interrupts();
  const MachineRecord machine = detect_machine();
  ResolutionRequest& resolution = options.resolution;
  resolution.threads = resolution.threads == 0 ? machine.cores : resolution.threads;
  set_threads(resolution.threads);
  place_threads(thread_places(resolution.threads));
  std::vector<Finding> findings{
      {.name = "processor", .value = machine.cpu, .advice = ""},
      {.name = "vector extensions", .value = machine.isa, .advice = ""},
      {.name = "cores", .value = fmt::format("{} that this process may use", machine.cores), .advice = ""}};
  std::ranges::move(examine_system("/"), std::back_inserter(findings));
  const std::string busy = preflight();
  findings.push_back({.name = "other processes",
                      .value = busy.empty() ? "leave the cores to us" : "keep the cores busy",
                      .advice = busy});
  const TimerCost timer = measure_timer();
  findings.push_back({.name = "timer",
                      .value = fmt::format("{:.0f} ns a call, steps of {} ns", timer.call_ns, timer.resolution_ns),
                      .advice = ""});
  findings.push_back({.name = "memory, reading",
                      .value = rate(static_cast<double>(kReadBytes), "GB/s", [] { return read_memory_ns(kReadBytes); }),
                      .advice = ""});
  for (const char* dtype : {"fp32", "bf16"}) {
    findings.push_back(
        {.name = fmt::format("products, {}", dtype),
         .value = rate(static_cast<double>(kFlops), "GFLOP/s", [&] { return multiply_ns(kFlops, dtype, "cpu"); }),
         .advice = ""});
  }
  std::cout << to_text(system_table(findings)) << std::flush;
  if (resolution.seconds <= 0) {
    return ExitCode::ok;
  }
  StatusLine line;
  const std::optional<Resolution> resolved = measure_resolution(
      resolution, [&](double seconds) { line.show(fmt::format("A/A of the same build: {:.0f} s left", seconds)); });
  line.clear();
  if (!resolved) {
    return ExitCode::interrupted;
  }
  std::cout << '\n' << to_text(resolution_table(*resolved, resolution));
  return ExitCode::ok;
}

}  // namespace

void add_doctor_command(CLI::App& app, ExitCode& exit_code) {
  auto options = std::make_shared<DoctorOptions>();
  CLI::App* command =
      app.add_subcommand("doctor", "Say what disturbs measurements here, and how small an effect can be resolved.");
  command->add_option("--seconds", options->resolution.seconds, "Time for the A/A; 0: none")->capture_default_str();
  command->add_option("-m,--model", options->resolution.model, "The model of the A/A")->capture_default_str();
  command->add_option("--arm", options->resolution.arm, "Its arm")->capture_default_str();
  command->add_option("--batch", options->resolution.batch, "Rows of its decode cell")->capture_default_str();
  command->add_option("--length", options->resolution.length, "Tokens that its cache holds")->capture_default_str();
  command->add_option("--threads", options->resolution.threads, "Threads of every operator; 0: one for each core")
      ->capture_default_str();
  command->footer("Example:\n  decodelab doctor\n  decodelab doctor --seconds 0");
  command->callback([options, &exit_code] { exit_code = run_doctor(*options); });
}

}  // namespace decodelab
