// JSON, JSON lines and CSV of a run.
#include "reports/page/exports/json.h"

#include <algorithm>
#include <unordered_map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/escape.h"
#include "base/json_text.h"
#include "base/json_values.h"

namespace decodelab {
namespace {

using Json = nlohmann::ordered_json;

Json run_to_json(const RunRecord& run) {
  return {{"id", run.id},
          {"uuid", run.uuid},
          {"name", run.name},
          {"command", run.command},
          {"seed", run.seed},
          {"launches", run.launches},
          {"blocks_per_launch", run.blocks_per_launch},
          {"started_unix_ns", run.started_unix_ns},
          {"ended_unix_ns", run.ended_unix_ns == 0 ? Json(nullptr) : Json(run.ended_unix_ns)},
          {"quick", run.quick},
          {"build",
           {{"commit", run.build.commit},
            {"compiler", run.build.compiler},
            {"build_type", run.build.build_type},
            {"libtorch", run.build.libtorch},
            {"cuda", run.build.cuda}}},
          {"model",
           {{"name", run.model.name},
            {"family", run.model.family},
            {"parameters", run.model.parameters},
            {"positions", run.model.positions},
            {"random_weights", run.model.random_weights}}}};
}

Json machine_to_json(const MachineRecord& machine) {
  return {{"cpu", machine.cpu}, {"cores", machine.cores}, {"memory_bytes", machine.memory_bytes},
          {"isa", machine.isa}, {"os", machine.os},       {"accelerator", machine.accelerator}};
}

std::string csv_field(const Json& value) {
  if (value.is_null()) {
    return "";
  }
  if (value.is_string()) {
    return escape_csv(value.get<std::string>());
  }
  if (value.is_array()) {
    std::string joined;
    for (const Json& item : value) {
      joined += (joined.empty() ? "" : " ") + (item.is_string() ? item.get<std::string>() : json_text(item, -1));
    }
    return escape_csv(joined);
  }
  return escape_csv(json_text(value, -1));
}

Json verdict_of(const Decision& decision) {
  return decision.verdict ? Json(to_string(*decision.verdict)) : Json(nullptr);
}

// A p value has a meaning only where there was a contrast.
Json p_or_null(const SummaryRow& row, double p) {
  return row.comparison.launch_contrasts.size() < 2 ? Json(nullptr) : Json(p);
}

// Of each launch, in their order; the time ratio is their geometric mean.
Json launch_ratios(const SummaryRow& row) {
  Json ratios = Json::array();
  for (const double contrast : row.comparison.launch_contrasts) {
    ratios.push_back(std::exp(contrast));
  }
  return ratios;
}

// What the arm predicts of a text; null where it was not asked for or is not known.
Json quality_of(const SummaryRow& row) {
  if (!row.quality || !row.quality->reason.empty()) {
    return nullptr;
  }
  const QualityRecord& quality = *row.quality;
  return {{"tokens", quality.tokens},
          {"perplexity", std::exp(quality.log_perplexity)},
          {"log_perplexity_error", quality.log_perplexity_error},
          {"perplexity_ratio", std::exp(quality.log_ratio)},
          {"log_perplexity_ratio_error", quality.log_ratio_error},
          {"kl_divergence", quality.kl_divergence},
          {"kl_divergence_error", quality.kl_divergence_error},
          {"kl_divergence_999", quality.kl_divergence_999},
          {"top_1_agreement", quality.top_1_agreement},
          {"top_1_agreement_error", quality.top_1_agreement_error},
          {"rms_probability", quality.rms_probability}};
}

Json effect_or_null(const std::optional<LaunchEffect>& effect) { return effect ? Json(effect->mean) : Json(nullptr); }

Json composite_to_json(const Composite& composite) {
  return {{"arm", composite.arm.label},
          {"cells", composite.cells},
          {"time_ratio", composite.time_ratio},
          {"time_ratio_low", composite.interval ? Json(composite.interval->low) : Json(nullptr)},
          {"time_ratio_high", composite.interval ? Json(composite.interval->high) : Json(nullptr)},
          {"mde", or_null(composite.decision.mde)},
          {"verdict", verdict_of(composite.decision)},
          {"verdict_reason", composite.decision.reason.empty() ? Json(nullptr) : Json(composite.decision.reason)},
          {"p_family", composite.decision.p_family}};
}

/// By launch and arm; null stands for no single arm.
Json times_to_json(const RunSummary& summary) {
  Json times = Json::array();
  for (const TimeSpentRecord& time : summary.times_spent) {
    const auto arm = std::ranges::find(summary.arms, time.arm_id, &ArmRecord::id);
    times.push_back({{"launch", time.launch},
                     {"arm", arm == summary.arms.end() ? Json(nullptr) : Json(arm->label)},
                     {"activity", to_string(time.activity)},
                     {"ns", time.ns}});
  }
  return times;
}

}  // namespace

std::string json_text(const Json& json, int indent) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

std::string objects_to_csv(const Json& header, const std::vector<Json>& rows) {
  std::string text;
  for (const auto& [key, value] : header.items()) {
    text += (text.empty() ? "" : ",") + key;
  }
  text += "\n";
  for (const Json& row : rows) {
    std::string line;
    for (const auto& [key, value] : row.items()) {
      line += (line.empty() ? "" : ",") + csv_field(value);
    }
    text += line + "\n";
  }
  return text;
}

Json row_to_json(const SummaryRow& row) {
  return {{"arm", row.arm.label},
          {"model", row.model},
          {"phase", row.cell.phase},
          {"scope", row.cell.scope},
          {"batch", row.cell.batch},
          {"length", row.cell.length},
          {"dtype", row.cell.dtype},
          {"device", row.cell.device},
          {"threads", row.cell.threads},
          {"status", to_string(row.status)},
          {"reason", row.reason.empty() ? Json(nullptr) : Json(row.reason)},
          {"engaged", or_null(row.engaged)},
          {"launches", row.launches},
          {"blocks", row.blocks},
          {"steps", row.steps},
          {"turn_steps", row.cell.slice_steps},
          {"warmup", row.warmup},
          {"median_ns", or_null(row.median_ns)},
          {"mean_ns", or_null(row.mean_ns)},
          {"min_ns", or_null(row.min_ns)},
          {"max_ns", or_null(row.max_ns)},
          {"p90_ns", or_null(row.p90_ns)},
          {"p95_ns", or_null(row.p95_ns)},
          {"p99_ns", or_null(row.p99_ns)},
          {"time_ratio", or_null(row.time_ratio)},
          {"time_ratio_low", or_null(row.time_ratio_low)},
          {"time_ratio_high", or_null(row.time_ratio_high)},
          {"speedup", or_null(row.speedup)},
          {"mde", or_null(row.mde)},
          {"verdict", verdict_of(row.decision)},
          {"bound_share", or_null(row.bound_share)},
          {"peak_bytes", or_null(row.peak_bytes)},
          {"flags", row.flags},
          {"counters", row.counters.empty() ? Json::object() : Json(row.counters)},
          {"verdict_reason", row.decision.reason.empty() ? Json(nullptr) : Json(row.decision.reason)},
          {"p_t", p_or_null(row, row.decision.p_t)},
          {"p_sign_flip", p_or_null(row, row.decision.p_sign_flip)},
          {"p_family", p_or_null(row, row.decision.p_family)},
          {"bound_share_low", or_null(row.bound_share_low)},
          {"bound_share_high", or_null(row.bound_share_high)},
          {"slot_effect", effect_or_null(row.slot)},
          {"carry_over", effect_or_null(row.carry_over)},
          {"ties", row.agreement ? Json(row.ties) : Json(nullptr)},
          {"logit_error", row.agreement ? Json(row.agreement->logit_error) : Json(nullptr)},
          {"kl_divergence", row.agreement ? Json(row.agreement->kl_divergence) : Json(nullptr)},
          {"top_1_agreement", row.agreement ? Json(row.agreement->top_1_agreement) : Json(nullptr)},
          {"launch_ratios", launch_ratios(row)},
          {"quality", quality_of(row)}};
}

Json summary_to_json(const RunSummary& summary) {
  Json rows = Json::array();
  for (const SummaryRow& row : summary.rows) {
    rows.push_back(row_to_json(row));
  }
  Json composites = Json::array();
  for (const Composite& composite : summary.composites) {
    composites.push_back(composite_to_json(composite));
  }
  return {{"schema_version", kReportSchemaVersion},
          {"run", run_to_json(summary.run)},
          {"machine", machine_to_json(summary.run.machine)},
          {"rows", std::move(rows)},
          {"composites", std::move(composites)},
          {"interval_level", summary.interval_level()},
          {"times_spent", times_to_json(summary)}};
}

Json completions_to_json(const RunData& data) {
  Json completions = Json::array();
  for (const CompletionRecord& completion : data.completions) {
    const auto arm = std::ranges::find(data.arms, completion.arm_id, &ArmRecord::id);
    completions.push_back({{"arm", arm == data.arms.end() ? Json(nullptr) : Json(arm->label)},
                           {"prompt", completion.prompt},
                           {"prompt_text", completion.prompt_text},
                           {"class", completion.prompt_class},
                           {"prompt_tokens", completion.prompt_tokens},
                           {"token_ids", completion.token_ids},
                           {"text", completion.text}});
  }
  return completions;
}

std::string to_json(const RunSummary& summary) { return json_text(summary_to_json(summary), 2) + "\n"; }

std::string to_jsonl(const RunSummary& summary) {
  std::string text;
  for (const SummaryRow& row : summary.rows) {
    Json line{{"schema_version", kReportSchemaVersion}, {"run", summary.run.uuid}};
    line.update(row_to_json(row));
    text += json_text(line, -1) + "\n";
  }
  return text;
}

std::string to_csv(const RunSummary& summary) {
  const auto with_run = [&](const SummaryRow& row) {
    Json object{{"run", summary.run.uuid}};
    object.update(row_to_json(row));
    return object;
  };
  std::vector<Json> rows;
  for (const SummaryRow& row : summary.rows) {
    rows.push_back(with_run(row));
  }
  return objects_to_csv(with_run({}), rows);
}

std::string blocks_to_csv(const RunData& data) {
  std::unordered_map<std::int64_t, const CellRecord*> cells;
  for (const CellRecord& cell : data.cells) {
    cells.emplace(cell.id, &cell);
  }
  std::unordered_map<std::int64_t, std::string> arms{{0, ""}};
  for (const ArmRecord& arm : data.arms) {
    arms.emplace(arm.id, arm.label);
  }
  std::string text =
      "run,launch,block,cell_id,phase,batch,length,started_unix_ns,other_cpu_share,position,arm,previous_arm,warmup_"
      "steps,quiet,steps,wall_ns,"
      "visit_mean_ns,visit_median_ns\n";
  for (const BlockRecord& block : data.blocks) {
    const CellRecord& cell = *cells.at(block.cell_id);
    for (const VisitRecord& visit : block.visits) {
      std::vector<double> sorted(visit.samples_ns.begin(), visit.samples_ns.end());
      std::sort(sorted.begin(), sorted.end());
      text += fmt::format("{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}\n", escape_csv(data.run.uuid),
                          block.launch, block.block, cell.id, to_string(cell.phase), cell.batch, cell.length,
                          block.started_unix_ns, block.other_cpu_share, visit.position,
                          escape_csv(arms.at(visit.arm_id)), escape_csv(arms.at(visit.previous_arm_id)),
                          visit.warmup_steps, visit.quiet ? 1 : 0, sorted.size(), visit.wall_ns,
                          sorted.empty() ? "" : fmt::format("{:.0f}", visit_statistic(visit.samples_ns)),
                          sorted.empty() ? "" : fmt::format("{:.0f}", quantile(sorted, 0.5)));
    }
  }
  return text;
}

}  // namespace decodelab
