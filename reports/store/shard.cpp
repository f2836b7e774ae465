// Shards in the plans of runs, and the identity of a plan.
#include "reports/store/shard.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <stdexcept>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/digest.h"
#include "base/json_text.h"
#include "base/text.h"

namespace decodelab {
namespace {

using Json = nlohmann::json;

// Keys of plan_json.
constexpr const char* kShard = "shard";
constexpr const char* kShards = "shards";
// Nodes of the same kind report totals that differ by some pages.
constexpr double kMemoryGrain = 1024.0 * 1024.0 * 1024.0;

// Runs of tests and of other tools may have a plan that is no object; they have no shards.
Json plan_of(const RunRecord& run) {
  Json plan = parse_json_or_discard(run.plan_json);
  return plan.is_object() ? plan : Json::object();
}

// What must be equal, beside the plan, for two shards to be united.
Json place_of(const RunData& data) {
  Json threads = Json::array();
  for (const CellRecord& cell : data.cells) {
    threads.push_back(cell.threads);
  }
  const MachineRecord& machine = data.run.machine;
  const BuildRecord& build = data.run.build;
  return {threads,
          machine.cpu,
          machine.cores,
          std::llround(static_cast<double>(machine.memory_bytes) / kMemoryGrain),
          machine.isa,
          machine.os,
          machine.accelerator,
          build.commit,
          build.compiler,
          build.build_type,
          build.libtorch,
          build.cuda};
}

std::string merged_uuid(const RunData& data) {
  std::string hex = digest(Json{plan_hash(data), place_of(data)}.dump(-1, ' ', false, Json::error_handler_t::replace));
  hex[12] = '8';  // RFC 9562: version 8, made by decodelab's own rule
  hex[16] = 'a';
  return fmt::format("{}-{}-{}-{}-{}", hex.substr(0, 8), hex.substr(8, 4), hex.substr(12, 4), hex.substr(16, 4),
                     hex.substr(20));
}

}  // namespace

bool Shard::has(std::size_t cell) const { return static_cast<std::int64_t>(cell) % count == index - 1; }

std::string to_string(const Shard& shard) { return fmt::format("{}/{}", shard.index, shard.count); }

Shard parse_shard(std::string_view text) {
  const std::size_t slash = text.find('/');
  if (slash != std::string_view::npos) {
    const auto index = whole_number(text.substr(0, slash));
    const auto count = whole_number(text.substr(slash + 1));
    if (index && count && *index >= 1 && *index <= *count) {
      return {.index = *index, .count = *count};
    }
  }
  throw std::invalid_argument(
      fmt::format("--shard '{}': expected i/n with i from 1 to n, such as 1/4 for the first of four", text));
}

std::optional<Shard> shard_of(const RunRecord& run) {
  const Json plan = plan_of(run);
  const auto found = plan.find(kShard);
  if (found == plan.end() || !found->is_string()) {
    return std::nullopt;
  }
  return parse_shard(found->get<std::string>());
}

MergedShards merged_shards(const RunRecord& run) {
  const Json plan = plan_of(run);
  const auto found = plan.find(kShards);
  return found == plan.end() ? MergedShards() : found->get<MergedShards>();
}

bool covers(const MergedShards& shards, std::size_t cells) {
  std::vector<Shard> ended;
  for (const auto& [name, ended_unix_ns] : shards) {
    if (ended_unix_ns != 0) {
      ended.push_back(parse_shard(name));
    }
  }
  for (std::size_t cell = 0; cell < cells; ++cell) {
    if (std::ranges::none_of(ended, [&](const Shard& shard) { return shard.has(cell); })) {
      return false;
    }
  }
  return true;
}

void set_merged_shards(RunRecord& run, const MergedShards& shards, std::size_t cells) {
  Json plan = plan_of(run);
  plan[kShards] = shards;
  run.plan_json = plan.dump();
  if (!covers(shards, cells)) {
    return;
  }
  for (const auto& [name, ended_unix_ns] : shards) {
    run.ended_unix_ns = std::max(run.ended_unix_ns, ended_unix_ns);
  }
}

// The command line without `--shard I/N` or `--shard=I/N`.
std::string without_shard(std::string command) {
  constexpr std::string_view kFlag = " --shard";
  std::size_t begin = 0;
  while ((begin = command.find(kFlag, begin)) != std::string::npos) {
    const std::size_t value = begin + kFlag.size() + 1;
    if (value >= command.size() || (command[value - 1] != ' ' && command[value - 1] != '=')) {
      begin += kFlag.size();
      continue;
    }
    const std::size_t end = std::min(command.find(' ', value), command.size());
    command.erase(begin, end - begin);
  }
  return command;
}

std::string shard_name(const RunRecord& run) {
  const auto shard = shard_of(run);
  return shard ? to_string(*shard) : "";
}

void make_merged(RunData& data) {
  const auto shard = shard_of(data.run);
  if (!shard) {
    return;
  }
  data.run.uuid = merged_uuid(data);
  Json plan = plan_of(data.run);
  plan.erase(kShard);
  data.run.plan_json = plan.dump();
  data.run.command = without_shard(std::move(data.run.command));
  const MergedShards shards{{to_string(*shard), data.run.ended_unix_ns}};
  data.run.ended_unix_ns = 0;
  set_merged_shards(data.run, shards, data.cells.size());
}

std::string plan_hash(const RunData& data) {
  Json plan = plan_of(data.run);
  for (const char* key : {kShard, kShards, "checkpoint", "threads"}) {
    plan.erase(key);
  }
  Json cells = Json::array();
  for (const CellRecord& cell : data.cells) {
    cells.push_back({to_string(cell.phase), cell.batch, cell.length, cell.dtype, cell.device, cell.scope, cell.fill});
  }
  Json arms = Json::array();
  for (const ArmRecord& arm : data.arms) {
    arms.push_back({arm.label, arm.baseline, arm.command});
  }
  const ModelRecord& model = data.run.model;
  const Json whole{data.run.name,
                   data.run.seed,
                   data.run.launches,
                   data.run.blocks_per_launch,
                   data.run.quick,
                   {model.name, model.family, model.parameters, model.positions, model.random_weights},
                   plan,
                   cells,
                   arms};
  return digest(whole.dump(-1, ' ', false, Json::error_handler_t::replace));
}

}  // namespace decodelab
