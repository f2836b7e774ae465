// Each part of a summary is one function, and each of its keys one line.
#include "profiles/trace/summary_json.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "profiles/trace/ranges.h"

namespace decodelab {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kIndent = 2;

Json or_null(std::int64_t value, std::int64_t unknown) { return value == unknown ? Json(nullptr) : Json(value); }

Json name_json(const Trace& trace, StringId name) {
  return name < trace.events().strings.size() ? Json(trace.text(name)) : Json("");
}

Json checks_json(const TraceQuality& quality) {
  Json checks = Json::array();
  for (const TraceCheck& check : quality.checks) {
    checks.push_back({{"id", check.id},
                      {"title", check.title},
                      {"status", to_string(check.status)},
                      {"value", check.value},
                      {"limit", check.limit},
                      {"evidence", check.evidence}});
  }
  return checks;
}

Json session_json(const TraceSession& session) {
  Json versions = Json::object();
  for (const auto& [name, version] : session.versions) {
    versions[name] = version;
  }
  Json collectors = Json::array();
  for (const CollectorState& collector : session.collectors) {
    collectors.push_back({{"name", collector.name}, {"on", collector.on}, {"reason", collector.reason}});
  }
  Json devices = Json::array();
  for (const TraceDevice& device : session.devices) {
    const double nominal = device.nominal_bytes_per_second;
    const double measured = device.measured_bytes_per_second;
    devices.push_back({{"index", device.index},
                       {"name", device.name},
                       {"memory_bytes", device.memory_bytes},
                       {"nominal_bytes_per_second", nominal > 0 ? Json(nominal) : Json(nullptr)},
                       {"measured_bytes_per_second", measured > 0 ? Json(measured) : Json(nullptr)}});
  }
  return {{"uuid", session.uuid},
          {"host", session.host},
          {"source", session.source},
          {"model", session.model},
          {"arm", session.arm},
          {"cell", session.cell},
          {"device", session.device},
          {"devices", devices},
          {"tier", static_cast<int>(session.tier)},
          {"process", session.process},
          {"steps_from", session.steps_from.empty() ? Json(nullptr) : Json(session.steps_from)},
          {"versions", versions},
          {"collectors", collectors}};
}

Json clock_json(const TraceSession& session) {
  Json brackets = Json::array();
  for (const ClockBracket& bracket : session.clocks) {
    brackets.push_back(
        {{"before_ns", bracket.before_ns}, {"device_ns", bracket.device_ns}, {"after_ns", bracket.after_ns}});
  }
  return {{"id", session.clock},
          {"unix_offset_ns", session.unix_offset_ns},
          {"window_start_ns", session.window_start_ns},
          {"window_end_ns", session.window_end_ns},
          {"brackets", brackets}};
}

Json perturbation_json(const Perturbation& slow_down) {
  if (slow_down.ratio <= 0) {
    return nullptr;
  }
  return {{"ratio", slow_down.ratio}, {"low", slow_down.low}, {"high", slow_down.high}, {"pairs", slow_down.pairs}};
}

/// Returns what lies across the edges of a foreign capture; null for a trace of ours.
Json edges_json(const TraceSession& session) {
  if (!session.foreign) {
    return nullptr;
  }
  return {{"capture_start_ns", session.capture_start_ns}, {"capture_end_ns", session.capture_end_ns},
          {"launched_before", session.launched_before},   {"outlasting", session.outlasting},
          {"open_ranges", session.open_ranges},           {"negative_times", session.negative_times}};
}

Json ranges_json(const Trace& trace, const Attribution& attribution) {
  Json rows = Json::array();
  if (!trace.events().session.foreign || !attribution.believable) {
    return rows;
  }
  for (const RangeCost& cost : range_costs(trace)) {
    rows.push_back({{"name", cost.name},
                    {"count", cost.count},
                    {"host_ns", cost.host_ns},
                    {"device_ns", cost.device_ns},
                    {"operations", cost.operations}});
  }
  return rows;
}

Json counts_json(const TraceEvents& events) {
  return {{"spans", events.spans.size()},
          {"api_calls", events.api_calls.size()},
          {"operations", events.operations.size()},
          {"waits", events.waits.size()},
          {"overheads", events.overheads.size()},
          {"counters", events.counters.size()},
          {"steps", events.steps.size()},
          {"graph_nodes", events.nodes.size()},
          {"dropped_records", events.session.dropped_records},
          {"zero_times", events.session.zero_times},
          {"unknown_records", events.session.unknown_records},
          {"out_of_window", events.session.out_of_window}};
}

template <std::size_t Size>
Json by_name(const std::array<const char*, Size>& names, const std::array<std::int64_t, Size>& values) {
  Json object = Json::object();
  for (std::size_t i = 0; i < Size; ++i) {
    object[names[i]] = values[i];
  }
  return object;
}

/// Returns every step of the trace. Steps that statistics leave out lack the parts that are taken from the account.
Json steps_json(const Trace& trace, const Attribution& attribution) {
  Json steps = Json::array();
  auto account = attribution.steps.begin();  // In the order of the steps, without those that are left out.
  for (const Step& step : trace.events().steps) {
    Json row = {{"index", step.index},
                {"start_ns", step.start_ns},
                {"end_ns", step.end_ns},
                {"batch", step.batch},
                {"keys", step.keys},
                {"timer_ns", or_null(step.timer_ns, 0)},
                {"launches_counted", or_null(step.launches, -1)},
                {"graph_launches_counted", or_null(step.graph_launches, -1)},
                {"excluded_reason", step.excluded_reason.empty() ? Json(nullptr) : Json(step.excluded_reason)}};
    if (account != attribution.steps.end() && account->index == step.index) {
      row["span_ns"] = account->span_ns;
      row["residual_ns"] = account->residual_ns;
      row["operators"] = account->operators;
      row["host_stage_ns"] = by_name(kStageNames, account->host_stage_ns);
      const bool device = attribution.on_device;
      row["busy_ns"] = device ? Json(account->busy_ns) : Json(nullptr);
      row["gap_ns"] = device ? by_name(kGapCauseNames, account->gap_ns) : Json(nullptr);
      row["launches"] = device ? Json(account->launches) : Json(nullptr);
      row["host_margin_ns"] = device ? Json(account->host_margin_ns) : Json(nullptr);
      row["launch_to_start_ns"] = device ? Json(account->launch_to_start_ns) : Json(nullptr);
      row["kernel_ns"] = device ? Json(account->kernel_ns) : Json(nullptr);
      row["graph_kernel_ns"] = device ? Json(account->graph_kernel_ns) : Json(nullptr);
      ++account;
    }
    steps.push_back(std::move(row));
  }
  return steps;
}

Json stages_json(const Attribution& attribution) {
  Json stages = Json::array();
  for (const StageCost& stage : attribution.stages) {
    stages.push_back({{"stage", stage_name(stage.stage)},
                      {"host_ns", stage.host_ns},
                      {"device_ns", attribution.on_device ? Json(stage.device_ns) : Json(nullptr)},
                      {"operators", stage.operators},
                      {"kernels", attribution.on_device ? Json(stage.kernels) : Json(nullptr)},
                      {"allocations", stage.allocations},
                      {"allocated_bytes", stage.allocated_bytes},
                      {"expected_bytes", or_null(stage.expected_bytes, 0)},
                      {"bandwidth_share", stage.bandwidth_share ? Json(*stage.bandwidth_share) : Json(nullptr)}});
  }
  return stages;
}

Json gaps_json(const Attribution& attribution) {
  if (!attribution.on_device) {
    return nullptr;
  }
  std::array<std::int64_t, kGapCauseNames.size()> sums{};
  for (const StepAccount& step : attribution.steps) {
    for (std::size_t i = 0; i < sums.size(); ++i) {
      sums[i] += step.gap_ns[i];
    }
  }
  return by_name(kGapCauseNames, sums);
}

Json costs_json(const Trace& trace, const std::vector<OperatorCost>& costs) {
  Json rows = Json::array();
  for (const OperatorCost& cost : costs) {
    rows.push_back({{"name", name_json(trace, cost.name)},
                    {"stage", stage_name(cost.stage)},
                    {"layer", or_null(cost.layer, kNoLayer)},
                    {"calls", cost.calls},
                    {"self_ns", cost.self_ns},
                    {"total_ns", cost.total_ns}});
  }
  return rows;
}

}  // namespace

Json summary_json(const Trace& trace, const TraceQuality& quality, const Attribution& attribution) {
  const TraceEvents& events = trace.events();
  return {{"verdict", to_string(quality.verdict)},
          {"reason", quality.reason},
          {"believe", quality.believe.empty() ? Json(nullptr) : Json(quality.believe)},
          {"refusal", attribution.believable ? Json(nullptr) : Json(attribution.refusal)},
          {"bound_by", attribution.believable ? Json(attribution.bound_by) : Json(nullptr)},
          {"checks", checks_json(quality)},
          {"session", session_json(events.session)},
          {"clock", clock_json(events.session)},
          {"perturbation", perturbation_json(events.session.perturbation)},
          {"counts", counts_json(events)},
          {"steps_ns", attribution.steps_ns},
          {"steps", steps_json(trace, attribution)},
          {"stages", stages_json(attribution)},
          {"gaps", gaps_json(attribution)},
          {"operators", costs_json(trace, attribution.operators)},
          {"kernels", costs_json(trace, attribution.kernels)},
          {"ranges", ranges_json(trace, attribution)},
          {"edges", edges_json(events.session)}};
}

std::string summary_text(const Trace& trace, const TraceQuality& quality, const Attribution& attribution) {
  return summary_json(trace, quality, attribution).dump(kIndent, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace decodelab
