// A launch plan as JSON, as it stands in the store.
#include <stdexcept>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "bench/machine/environment.h"
#include "bench/plan/sampling_json.h"
#include "bench/plan/sweep_plan.h"

namespace decodelab {
namespace {

std::vector<RealPrompt> prompts_of(const nlohmann::json& json) {
  std::vector<RealPrompt> prompts;
  for (const nlohmann::json& prompt : json.value("prompts", nlohmann::json::array())) {
    prompts.push_back({.text = prompt.at("text"), .prompt_class = prompt.at("class"), .ids = prompt.at("ids")});
  }
  return prompts;
}

std::vector<NamedDraft> drafts_of(const nlohmann::json& json) {
  std::vector<NamedDraft> drafts;
  for (const nlohmann::json& draft : json.value("drafts", nlohmann::json::array())) {
    drafts.push_back({.name = draft.at("name"), .model = draft.at("model"), .checkpoint = draft.at("checkpoint")});
  }
  return drafts;
}

}  // namespace

std::vector<std::int64_t> places_of(const LaunchPlan& plan) {
  return plan.pin && plan.device == "cpu" ? thread_places(plan.threads) : std::vector<std::int64_t>();
}

std::string to_json(const LaunchPlan& plan) {
  nlohmann::json json{
      {"model", plan.model},   {"checkpoint", plan.checkpoint}, {"dtype", plan.dtype},
      {"device", plan.device}, {"threads", plan.threads},       {"seed", plan.seed},
      {"fill", plan.fill},     {"max_tokens", plan.max_tokens}, {"worker_seconds", plan.worker_seconds}};
  if (!plan.affinity.empty()) {
    json["affinity"] = plan.affinity;
  }
  for (const RealPrompt& prompt : plan.prompts) {
    json["prompts"].push_back({{"text", prompt.text}, {"class", prompt.prompt_class}, {"ids", prompt.ids}});
  }
  if (!plan.quality_ids.empty()) {
    json["quality"] = {{"ids", plan.quality_ids}, {"limit", to_string(plan.quality_limit)}};
  }
  for (const NamedDraft& draft : plan.drafts) {
    json["drafts"].push_back({{"name", draft.name}, {"model", draft.model}, {"checkpoint", draft.checkpoint}});
  }
  if (plan.slice_ns > 0) {
    json["turn_ns"] = plan.slice_ns;
  }
  if (plan.pin) {
    json["pin"] = true;
  }
  if (plan.tail) {
    json["tail"] = true;
  }
  if (!plan.sampling.plain_greedy()) {
    json["sampling"] = sampling_to_json(plan.sampling);
  }
  if (plan.adaptive) {
    json["adaptive"] = true;
  }
  if (!plan.ablate.empty()) {
    json["ablate"] = plan.ablate;
  }
  if (plan.shard) {
    json["shard"] = to_string(*plan.shard);
  }
  return json.dump();
}

LaunchPlan launch_plan_from_json(const std::string& text) {
  try {
    const auto json = parse_json(text);
    const auto quality = json.value("quality", nlohmann::json::object());
    return {.model = json.at("model"),
            .checkpoint = json.at("checkpoint"),
            .dtype = json.at("dtype"),
            .device = json.at("device"),
            .threads = json.at("threads"),
            .seed = json.at("seed"),
            .max_tokens = json.at("max_tokens"),
            .fill = json.at("fill"),
            .prompts = prompts_of(json),
            .quality_ids = quality.value("ids", std::vector<std::int64_t>{}),
            .quality_limit = parse_quality_limit(quality.value("limit", std::string())),
            .drafts = drafts_of(json),
            // Runs of older programs had no workers.
            .worker_seconds = json.value("worker_seconds", std::int64_t{0}),
            .affinity = json.value("affinity", std::vector<std::int64_t>{}),
            // Runs of older programs timed whole visits, on threads that the system placed.
            .slice_ns = json.value("turn_ns", std::int64_t{0}),
            .pin = json.value("pin", false),
            .tail = json.value("tail", false),
            .sampling = json.contains("sampling") ? sampling_from_json(json.at("sampling")) : SamplingParameters(),
            .adaptive = json.value("adaptive", false),
            .ablate = json.value("ablate", std::string()),
            .shard = json.contains("shard") ? std::optional(parse_shard(json.at("shard").get<std::string>()))
                                            : std::nullopt};
  } catch (const nlohmann::json::exception& error) {
    throw std::invalid_argument(fmt::format(
        "the plan that the store holds for this run cannot be read ({}): the store is damaged", error.what()));
  }
}

}  // namespace decodelab
