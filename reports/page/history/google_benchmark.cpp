// Visits of a run as repetitions of google-benchmark.
#include "reports/page/history/google_benchmark.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "base/units.h"
#include "reports/page/exports/json.h"
#include "reports/statistics/estimates.h"
#include "reports/statistics/labels.h"

namespace decodelab {
namespace {

using Json = nlohmann::ordered_json;

/// Schema version of google-benchmark's JSON; readers refuse any other.
constexpr int kGoogleBenchmarkSchema = 1;

struct Visit {
  double ns;
  std::int64_t steps;
};

std::vector<Visit> visits_of(const RunData& data, std::int64_t cell_id, std::int64_t arm_id) {
  std::vector<Visit> visits;
  for (const BlockRecord& block : data.blocks) {
    if (block.cell_id != cell_id) {
      continue;
    }
    for (const VisitRecord& visit : block.visits) {
      if (visit.arm_id != arm_id || visit.samples_ns.empty()) {
        continue;
      }
      visits.push_back({.ns = visit_statistic(visit.samples_ns), .steps = std::ssize(visit.samples_ns)});
    }
  }
  return visits;
}

std::string name_of(const CellRecord& cell, const ArmRecord& arm, bool with_arm) {
  const std::string place = fmt::format("{}/batch:{}/length:{}", to_string(cell.phase), cell.batch, cell.length);
  return with_arm ? place + "/" + arm.label : place;
}

/// What all entries of a row share, in the order in which google-benchmark writes it.
Json entry(const std::string& name, const std::string& run_name, std::int64_t family, const char* run_type,
           std::size_t repetitions, const CellRecord& cell) {
  return {{"name", name},
          {"family_index", family},
          {"per_family_instance_index", 0},
          {"run_name", run_name},
          {"run_type", run_type},
          {"repetitions", repetitions},
          {"threads", cell.threads},
          {"label", setting_label(cell)}};
}

void add_row(Json& benchmarks, const CellRecord& cell, const std::string& name, std::int64_t family,
             const std::vector<Visit>& visits) {
  std::vector<double> times;
  for (const Visit& visit : visits) {
    times.push_back(visit.ns);
  }
  for (std::size_t i = 0; i < visits.size(); ++i) {
    Json visit = entry(name, name, family, "iteration", visits.size(), cell);
    visit.update({{"repetition_index", i},
                  {"iterations", visits[i].steps},
                  {"real_time", times[i]},
                  {"cpu_time", times[i]},
                  {"time_unit", "ns"}});
    benchmarks.push_back(std::move(visit));
  }
  const double center = mean(times);
  const double spread = times.size() < 2 ? 0 : standard_deviation(times);
  std::ranges::sort(times);
  const auto add_aggregate = [&](const char* aggregate, const char* unit, double value) {
    Json summary = entry(fmt::format("{}_{}", name, aggregate), name, family, "aggregate", visits.size(), cell);
    summary.update({{"aggregate_name", aggregate},
                    {"aggregate_unit", unit},
                    {"iterations", visits.size()},
                    {"real_time", value},
                    {"cpu_time", value},
                    {"time_unit", "ns"}});
    benchmarks.push_back(std::move(summary));
  };
  add_aggregate("mean", "time", center);
  add_aggregate("median", "time", quantile(times, 0.5));
  add_aggregate("stddev", "time", spread);
  add_aggregate("cv", "percentage", spread / center);
}

Json context_of(const RunRecord& run, Json not_measured) {
  return {
      {"date", format_date(run.started_unix_ns)},
      {"executable", "decodelab"},
      {"num_cpus", run.machine.cores},
      {"caches", Json::array()},
      {"load_avg", Json::array()},
      {"library_build_type", run.build.build_type == "Debug" ? "debug" : "release"},
      {"json_schema_version", kGoogleBenchmarkSchema},
      {"run", run.uuid},
      {"run_name", run.name},
      {"model", run.model.name},
      {"cpu", run.machine.cpu},
      {"commit", run.build.commit},
      {"not_measured", std::move(not_measured)},
      {"notes",
       {"cpu_time repeats real_time: decodelab measures wall time.",
        "Repetitions are visits; those of one launch share a process, so a test that takes them for independent finds "
        "differences where there are none. 'decodelab compare' pairs them."}}};
}

}  // namespace

std::string to_google_benchmark(const RunData& data, std::string_view only_arm) {
  std::vector<std::string> labels;
  for (const ArmRecord& arm : data.arms) {
    labels.push_back(arm.label);
  }
  if (!only_arm.empty() && std::ranges::find(labels, only_arm) == labels.end()) {
    throw std::invalid_argument(fmt::format("The run has no arm '{}'; it has {}.", only_arm, fmt::join(labels, ", ")));
  }
  Json benchmarks = Json::array();
  Json not_measured = Json::array();
  std::int64_t family = 0;
  for (const CellRecord& cell : data.cells) {
    for (const ArmRecord& arm : data.arms) {
      if (!only_arm.empty() && arm.label != only_arm) {
        continue;
      }
      const std::vector<Visit> visits = visits_of(data, cell.id, arm.id);
      if (visits.empty()) {
        not_measured.push_back(name_of(cell, arm, true));
        continue;
      }
      add_row(benchmarks, cell, name_of(cell, arm, only_arm.empty()), family++, visits);
    }
  }
  return json_text({{"context", context_of(data.run, std::move(not_measured))}, {"benchmarks", std::move(benchmarks)}},
                   2) +
         "\n";
}

}  // namespace decodelab
