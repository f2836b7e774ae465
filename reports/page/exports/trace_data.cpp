// Writes the accounts of traces; CSV and JSON lines share one table of keys.
#include "reports/page/exports/trace_data.h"

#include <unordered_map>
#include <vector>

#include <nlohmann/json.hpp>

#include "reports/page/exports/json.h"

namespace decodelab {
namespace {

using Json = nlohmann::ordered_json;

Json measured(const TraceRecord& trace, double value) { return trace.perturbation == 0 ? Json(nullptr) : Json(value); }

Json trace_to_json(const RunRecord& run, const CellRecord& cell, const ArmRecord& arm, const TraceRecord& trace) {
  return {{"schema_version", kReportSchemaVersion},
          {"run", run.uuid},
          {"arm", arm.label},
          {"phase", cell.phase},
          {"scope", cell.scope},
          {"batch", cell.batch},
          {"length", cell.length},
          {"dtype", cell.dtype},
          {"device", cell.device},
          {"threads", cell.threads},
          {"file", trace.file},
          {"command", trace.command},
          {"verdict", trace.verdict},
          {"reason", trace.reason.empty() ? Json(nullptr) : Json(trace.reason)},
          {"tier", trace.tier},
          {"steps", trace.steps},
          {"steps_ns", trace.steps_ns},
          {"residual_ns", trace.residual_ns},
          {"perturbation", measured(trace, trace.perturbation)},
          {"perturbation_low", measured(trace, trace.perturbation_low)},
          {"perturbation_high", measured(trace, trace.perturbation_high)}};
}

Json share_to_json(const TraceShareRecord& share) {
  return {{"kind", share.kind},
          {"name", share.name},
          {"host_ns", share.host_ns},
          {"device_ns", share.device_ns},
          {"operators", share.operators},
          {"kernels", share.kernels},
          {"allocations", share.allocations},
          {"allocated_bytes", share.allocated_bytes}};
}

/// Calls `use(trace, json)` for each trace of the arm, or of all.
template <class Use>
void each_trace(const RunData& data, const std::string& label, Use&& use) {
  std::unordered_map<std::int64_t, const CellRecord*> cells;
  for (const CellRecord& cell : data.cells) {
    cells.emplace(cell.id, &cell);
  }
  std::unordered_map<std::int64_t, const ArmRecord*> arms;
  for (const ArmRecord& arm : data.arms) {
    arms.emplace(arm.id, &arm);
  }
  for (const TraceRecord& trace : data.traces) {
    const ArmRecord& arm = *arms.at(trace.arm_id);
    if (label.empty() || arm.label == label) {
      use(trace, trace_to_json(data.run, *cells.at(trace.cell_id), arm, trace));
    }
  }
}

}  // namespace

std::string traces_to_csv(const RunData& data, const std::string& arm) {
  const auto line = [](Json trace, const TraceShareRecord& share) {
    trace.erase("schema_version");
    trace.update(share_to_json(share));
    return trace;
  };
  std::vector<Json> rows;
  each_trace(data, arm, [&](const TraceRecord& trace, const Json& json) {
    for (const TraceShareRecord& share : trace.shares) {
      rows.push_back(line(json, share));
    }
    TraceShareRecord residual;
    residual.kind = "residual";
    residual.host_ns = trace.residual_ns;
    rows.push_back(line(json, residual));
  });
  return objects_to_csv(line(trace_to_json({}, {}, {}, {}), {}), rows);
}

std::string traces_to_jsonl(const RunData& data, const std::string& arm) {
  std::string text;
  each_trace(data, arm, [&](const TraceRecord& trace, Json json) {
    json["shares"] = Json::array();
    for (const TraceShareRecord& share : trace.shares) {
      json["shares"].push_back(share_to_json(share));
    }
    text += json_text(json, -1) + "\n";
  });
  return text;
}

}  // namespace decodelab
