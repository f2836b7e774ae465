// Reads, checks and writes the policy of a gate; every key is one row of a table.
#include "reports/statistics/gate_policy.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <stdexcept>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "base/digest.h"
#include "base/nearest_names.h"

namespace decodelab {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kPolicyVersion = 1;
constexpr double kLargestMargin = 0.5;  // 3 meant as 3 % must not become 300 %
constexpr double kLargestLevel = 0.05;
constexpr std::int64_t kLargestLook = 64;  // sign patterns have 64 bits
constexpr std::int64_t kMostFreshBlocks = 64;
constexpr std::size_t kLongestKey = 100;  // a longer one is no misspelling

constexpr const char* kShare = "a share from 0 to 0.5, as 0.03 for 3 %";
constexpr const char* kCount = "a whole number from 1";

// JSON on one line, in ASCII and short: what is wrong may be anything.
std::string shown(const Json& json) {
  constexpr std::size_t kMostShown = 60;
  const std::string text = json.dump(-1, ' ', true, Json::error_handler_t::replace);
  return text.size() > kMostShown ? text.substr(0, kMostShown) + "..." : text;
}

// Where a value stands, and the sentence that refuses it.
struct JsonPath {
  std::string source;
  std::string key;

  JsonPath at(const std::string& name) const { return {source, key.empty() ? name : key + "." + name}; }
  JsonPath at(std::size_t index) const { return {source, fmt::format("{}[{}]", key, index)}; }
  [[noreturn]] void refuse(const std::string& expected, const Json& got) const {
    throw std::invalid_argument(fmt::format("{}: {} must be {}, got {}.", source,
                                            key.empty() ? "the policy" : "'" + key + "'", expected, shown(got)));
  }
};

double number(const Json& json, const JsonPath& place, const char* expected,
              const std::function<bool(double)>& possible) {
  if (!json.is_number()) {
    place.refuse(expected, json);
  }
  const auto value = json.get<double>();
  if (!std::isfinite(value) || !possible(value)) {
    place.refuse(expected, json);
  }
  return value;
}

double share(const Json& json, const JsonPath& place) {
  return number(json, place, kShare, [](double value) { return value >= 0 && value <= kLargestMargin; });
}

std::int64_t count(const Json& json, const JsonPath& place, const std::string& expected, std::int64_t least,
                   std::int64_t most) {
  if (!json.is_number_integer()) {
    place.refuse(expected, json);
  }
  if (json.is_number_unsigned() && json.get<std::uint64_t>() > static_cast<std::uint64_t>(most)) {
    place.refuse(expected, json);
  }
  const auto value = json.get<std::int64_t>();
  if (value < least || value > most) {
    place.refuse(expected, json);
  }
  return value;
}

template <class Choice, std::size_t N>
Choice one_of(const Json& json, const JsonPath& place, const Choice (&choices)[N]) {
  std::vector<std::string> names;
  for (const Choice choice : choices) {
    names.emplace_back(to_string(choice));
  }
  if (json.is_string()) {
    for (const Choice choice : choices) {
      if (json.get<std::string>() == to_string(choice)) {
        return choice;
      }
    }
  }
  place.refuse(fmt::format("one of {}", fmt::join(names, ", ")), json);
}

constexpr OnInconclusive kOnInconclusive[] = {OnInconclusive::report, OnInconclusive::pass, OnInconclusive::fail};
constexpr CompositeWeights kCompositeWeights[] = {CompositeWeights::phase_then_batch, CompositeWeights::cell};

void require_known(const Json& object, const JsonPath& place, const std::vector<std::string>& known) {
  if (!object.is_object()) {
    place.refuse(fmt::format("an object with the keys {}", fmt::join(known, ", ")), object);
  }
  for (const auto& [key, value] : object.items()) {
    if (std::ranges::find(known, key) != known.end()) {
      continue;
    }
    throw std::invalid_argument(fmt::format(
        "{}: there is no key {}; the nearest is '{}', and all are {}.", place.source, shown(place.at(key).key),
        nearest_names(std::string_view(key).substr(0, kLongestKey), known, 1).front(), fmt::join(known, ", ")));
  }
}

std::vector<MarginOverride> read_overrides(const Json& json, const JsonPath& place) {
  if (!json.is_array()) {
    place.refuse("a list of objects such as {\"phase\": \"decode\", \"margin\": 0.05}", json);
  }
  std::vector<MarginOverride> overrides;
  for (std::size_t i = 0; i < json.size(); ++i) {
    const Json& item = json[i];
    const JsonPath here = place.at(i);
    require_known(item, here, {"phase", "batch", "length", "margin"});
    if (!item.contains("margin")) {
      here.refuse("an object with a margin", item);
    }
    MarginOverride rule{.phase = {}, .batch = {}, .length = {}, .margin = share(item["margin"], here.at("margin"))};
    if (item.contains("phase")) {
      const Json& phase = item["phase"];
      if (std::ranges::none_of(kPhaseWords, [&](const PhaseWords& words) { return phase == words.name; })) {
        here.at("phase").refuse("one of " + phase_names(), phase);
      }
      rule.phase = phase_from_string(phase.get<std::string>());
    }
    if (item.contains("batch")) {
      rule.batch = count(item["batch"], here.at("batch"), kCount, 1, INT64_MAX);
    }
    if (item.contains("length")) {
      rule.length = count(item["length"], here.at("length"), kCount, 1, INT64_MAX);
    }
    overrides.push_back(rule);
  }
  return overrides;
}

Json write_overrides(const std::vector<MarginOverride>& overrides) {
  Json json = Json::array();
  for (const MarginOverride& rule : overrides) {
    Json item = Json::object();
    if (rule.phase) {
      item["phase"] = *rule.phase;
    }
    if (rule.batch) {
      item["batch"] = *rule.batch;
    }
    if (rule.length) {
      item["length"] = *rule.length;
    }
    item["margin"] = rule.margin;
    json.push_back(std::move(item));
  }
  return json;
}

std::vector<std::size_t> read_looks(const Json& json, const JsonPath& place) {
  const std::string expected = fmt::format("an ascending list of whole numbers from 2 to {}", kLargestLook);
  if (!json.is_array() || json.empty()) {
    place.refuse(expected, json);
  }
  std::vector<std::size_t> looks;
  for (std::size_t i = 0; i < json.size(); ++i) {
    const auto look = static_cast<std::size_t>(count(json[i], place.at(i), expected, 2, kLargestLook));
    if (!looks.empty() && look <= looks.back()) {
      place.refuse(expected, json);
    }
    looks.push_back(look);
  }
  return looks;
}

struct KeyRow {
  const char* name;
  const char* expected;
  const char* meaning;
  void (*read)(GatePolicy&, const Json&, const JsonPath&);
  Json (*write)(const GatePolicy&);
};

const KeyRow kKeys[] = {
    {"schema_version", "1", "Version of this format.",
     [](GatePolicy&, const Json& json, const JsonPath& place) {
       if (json != kPolicyVersion) {
         place.refuse("1, the only version that this program knows", json);
       }
     },
     [](const GatePolicy&) { return Json(kPolicyVersion); }},
    {"margins.decode", kShare, "Slow-down of a decode cell from which on it fails.",
     [](GatePolicy& p, const Json& json, const JsonPath& place) { p.decode_margin = share(json, place); },
     [](const GatePolicy& p) { return Json(p.decode_margin); }},
    {"margins.prefill", kShare, "The same for prefill cells.",
     [](GatePolicy& p, const Json& json, const JsonPath& place) { p.prefill_margin = share(json, place); },
     [](const GatePolicy& p) { return Json(p.prefill_margin); }},
    {"margins.generate", kShare, "The same for whole completions, and for batches that serve requests.",
     [](GatePolicy& p, const Json& json, const JsonPath& place) { p.generate_margin = share(json, place); },
     [](const GatePolicy& p) { return Json(p.generate_margin); }},
    {"margins.composite", kShare, "The same for all cells together.",
     [](GatePolicy& p, const Json& json, const JsonPath& place) { p.composite_margin = share(json, place); },
     [](const GatePolicy& p) { return Json(p.composite_margin); }},
    {"overrides", "a list of {phase, batch, length, margin}",
     "Margins of single cells; what is left out matches all, and the last that matches holds.",
     [](GatePolicy& p, const Json& json, const JsonPath& place) { p.overrides = read_overrides(json, place); },
     [](const GatePolicy& p) { return write_overrides(p.overrides); }},
    {"composite_weights", "phase-then-batch or cell",
     "Phases weigh the same in the composite, then batches, then lengths; or every cell the same.",
     [](GatePolicy& p, const Json& json, const JsonPath& place) {
       p.composite_weights = one_of(json, place, kCompositeWeights);
     },
     [](const GatePolicy& p) { return Json(to_string(p.composite_weights)); }},
    {"looks", "an ascending list of whole numbers from 2 to 64", "Gate blocks after which a decision is tried.",
     [](GatePolicy& p, const Json& json, const JsonPath& place) { p.looks.looks = read_looks(json, place); },
     [](const GatePolicy& p) { return Json(p.looks.looks); }},
    {"level", "above 0 and at most 0.05", "One-sided level of each look, of one cell and of its interval.",
     [](GatePolicy& p, const Json& json, const JsonPath& place) {
       p.looks.level = number(json, place, "above 0 and at most 0.05",
                              [](double value) { return value > 0 && value <= kLargestLevel; });
     },
     [](const GatePolicy& p) { return Json(p.looks.level); }},
    {"family_level", "above 0 and at most 0.05",
     "The same for all cells and the composite together, where it is lower.",
     [](GatePolicy& p, const Json& json, const JsonPath& place) {
       p.looks.family_level = number(json, place, "above 0 and at most 0.05",
                                     [](double value) { return value > 0 && value <= kLargestLevel; });
     },
     [](const GatePolicy& p) { return Json(p.looks.family_level); }},
    {"void_share", "a share from 0 to 1", "Core time of other processes beyond which a block is void.",
     [](GatePolicy& p, const Json& json, const JsonPath& place) {
       p.void_share = number(json, place, "a share from 0 to 1", [](double value) { return value >= 0 && value <= 1; });
     },
     [](const GatePolicy& p) { return Json(p.void_share); }},
    {"most_void", "a share from 0 to 0.5", "Void blocks of a cell beyond which the gate is invalid.",
     [](GatePolicy& p, const Json& json, const JsonPath& place) {
       p.most_void =
           number(json, place, "a share from 0 to 0.5", [](double value) { return value >= 0 && value <= 0.5; });
     },
     [](const GatePolicy& p) { return Json(p.most_void); }},
    {"fresh_blocks", "a whole number from 0 to 64",
     "Most gate blocks, by the same looks, that may bear out what a look saw slower; 0: the look is enough.",
     [](GatePolicy& p, const Json& json, const JsonPath& place) {
       p.fresh_blocks =
           static_cast<std::size_t>(count(json, place, "a whole number from 0 to 64", 0, kMostFreshBlocks));
     },
     [](const GatePolicy& p) { return Json(p.fresh_blocks); }},
    {"on_inconclusive", "report, pass or fail", "Exit code where nothing could be decided: 3, 0 or 1.",
     [](GatePolicy& p, const Json& json, const JsonPath& place) {
       p.on_inconclusive = one_of(json, place, kOnInconclusive);
     },
     [](const GatePolicy& p) { return Json(to_string(p.on_inconclusive)); }},
    {"time_budget_s", "seconds above 0, or null",
     "No look is begun that would probably end later; launches are so short that a failure fits.",
     [](GatePolicy& p, const Json& json, const JsonPath& place) {
       p.time_budget_s.reset();
       if (!json.is_null()) {
         p.time_budget_s = number(json, place, "seconds above 0, or null", [](double value) { return value > 0; });
       }
     },
     [](const GatePolicy& p) { return p.time_budget_s ? Json(*p.time_budget_s) : Json(nullptr); }},
};

// The part of a dotted name before or after the dot; a name without one has no group.
std::pair<std::string, std::string> split(const std::string& name) {
  const std::size_t dot = name.find('.');
  return dot == std::string::npos ? std::pair{std::string(), name}
                                  : std::pair{name.substr(0, dot), name.substr(dot + 1)};
}

std::vector<std::string> names_in(const std::string& group) {
  std::vector<std::string> names;
  for (const KeyRow& row : kKeys) {
    const auto [prefix, name] = split(row.name);
    const std::string& shown = prefix == group ? name : prefix;
    if ((group.empty() || prefix == group) && std::ranges::find(names, shown) == names.end()) {
      names.push_back(shown);
    }
  }
  return names;
}

void require_possible_looks(const GatePolicy& policy, const JsonPath& place) {
  if (policy.fresh_blocks > 0 && policy.fresh_blocks < policy.looks.looks.front()) {
    place.at("fresh_blocks")
        .refuse(fmt::format("0, or at least the first look ({})", policy.looks.looks.front()),
                Json(policy.fresh_blocks));
  }
  const double least = std::pow(2.0, -static_cast<double>(policy.looks.looks.front()));
  const double level = policy.looks.p_family_level(2);
  if (least <= level) {
    return;
  }
  place.at("looks").refuse(
      fmt::format("such that the first look can find anything: at level {} that takes {} gate blocks, since sign flips "
                  "of n have no p below 1 / 2^n",
                  level, std::ceil(-std::log2(level))),
      Json(policy.looks.looks));
}

}  // namespace

const char* to_string(OnInconclusive choice) {
  switch (choice) {
    case OnInconclusive::report: return "report";
    case OnInconclusive::pass: return "pass";
    case OnInconclusive::fail: return "fail";
  }
  return "";
}

const char* to_string(CompositeWeights weights) {
  return weights == CompositeWeights::cell ? "cell" : "phase-then-batch";
}

double GatePolicy::margin_of(const CellRecord& cell) const {
  for (auto rule = overrides.rbegin(); rule != overrides.rend(); ++rule) {
    if (rule->phase.value_or(cell.phase) == cell.phase && rule->batch.value_or(cell.batch) == cell.batch &&
        rule->length.value_or(cell.length) == cell.length) {
      return rule->margin;
    }
  }
  switch (cell.phase) {
    case Phase::prefill: return prefill_margin;
    case Phase::decode:
    case Phase::continuation: return decode_margin;
    case Phase::generate:
    case Phase::batching: break;
  }
  return generate_margin;
}

std::vector<PolicyKey> gate_policy_keys() {
  std::vector<PolicyKey> keys;
  for (const KeyRow& row : kKeys) {
    keys.push_back({row.name, row.expected, row.meaning});
  }
  return keys;
}

GatePolicy parse_gate_policy(std::string_view json, const std::string& source) {
  Json file;
  try {
    file = Json::parse(json);
  } catch (const nlohmann::json::exception&) {
    throw std::invalid_argument(
        fmt::format("{}: a gate policy is a JSON object such as {{\"margins\": {{\"decode\": 0.03}}}}, and this is no "
                    "JSON.",
                    source));
  }
  const JsonPath top{source, ""};
  require_known(file, top, names_in(""));
  GatePolicy policy;
  for (const KeyRow& row : kKeys) {
    const auto [group, name] = split(row.name);
    if (group.empty()) {
      if (file.contains(name)) {
        row.read(policy, file[name], top.at(name));
      }
      continue;
    }
    if (!file.contains(group)) {
      continue;
    }
    require_known(file[group], top.at(group), names_in(group));
    if (file[group].contains(name)) {
      row.read(policy, file[group][name], top.at(row.name));
    }
  }
  require_possible_looks(policy, top);
  return policy;
}

std::string to_json(const GatePolicy& policy) {
  Json file = Json::object();
  for (const KeyRow& row : kKeys) {
    const auto [group, name] = split(row.name);
    (group.empty() ? file : file[group])[name] = row.write(policy);
  }
  return file.dump(2) + "\n";
}

std::string gate_plan_hash(const GatePolicy& policy, const std::vector<CellRecord>& cells) {
  std::vector<std::string> lines;
  for (const CellRecord& cell : cells) {
    lines.push_back(
        Json{cell.phase, cell.batch, cell.length, cell.dtype, cell.device, cell.threads, cell.scope, cell.fill}.dump(
            -1, ' ', true, Json::error_handler_t::replace));
  }
  std::ranges::sort(lines);
  constexpr std::size_t kDigits = 16;
  return digest(fmt::format("{}{}", to_json(policy), fmt::join(lines, "\n"))).substr(kDigits);
}

std::string looks_caution(const GatePolicy& policy) {
  const LookRule checked = gate_looks();
  if (policy.looks.looks == checked.looks && policy.looks.level <= checked.level &&
      policy.looks.p_family_level(2) <= checked.family_level) {
    return {};
  }
  const double most = policy.looks.level * static_cast<double>(policy.looks.looks.size());
  if (most <= kFamilyLevel) {
    return {};
  }
  return fmt::format(
      "The looks of this policy are not those that were checked: {} looks at {} may give false alarms in up to {:.1f} "
      "% "
      "of all gates.",
      policy.looks.looks.size(), policy.looks.level, 100 * most);
}

}  // namespace decodelab
