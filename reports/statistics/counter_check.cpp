// Reads and writes lines of accepted counters and compares them by name.
#include "reports/statistics/counter_check.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <stdexcept>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "reports/store/flags.h"

namespace decodelab {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array kProofs{"lm_head_rows", "counted_steps"};
/// What was saved, of which less is worse.
constexpr std::array kSavings{"accepted_tokens", "kept_masks", "prefix_tokens", "prefix_pages"};

bool is_among(const auto& names, const std::string& name) { return std::ranges::find(names, name) != names.end(); }

std::string device_kind(const std::string& device) { return device.substr(0, device.find(':')); }

Json key_of(const RunSummary& summary, const SummaryRow& row) {
  return {{"device", device_kind(row.cell.device)},
          {"libtorch", summary.run.build.libtorch},
          {"model", row.model},
          {"dtype", row.cell.dtype},
          {"threads", row.cell.threads},
          {"phase", row.cell.phase},
          {"scope", row.cell.scope},
          {"batch", row.cell.batch},
          {"length", row.cell.length},
          {"arm", row.arm.label}};
}

// Key as text -> counters. The order of keys within a line does not matter.
using Lines = std::map<std::string, Counters>;

Lines parse_lines(std::string_view text) {
  Lines lines;
  std::size_t number = 0;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
    ++number;
    if (line.empty()) {
      continue;
    }
    try {
      nlohmann::json json = parse_json(line);
      const auto counters = json.at("counters").get<Counters>();
      json.erase("counters");
      lines[json.dump()] = counters;
    } catch (const nlohmann::json::exception& error) {
      throw std::invalid_argument(
          fmt::format("line {} of the accepted counters is none that `decodelab counters --accept` writes ({}).",
                      number, error.what()));
    }
  }
  return lines;
}

Lines lines_of(const RunSummary& summary) {
  Lines lines;
  for (const SummaryRow& row : summary.rows) {
    if (!row.counters.empty()) {
      lines[nlohmann::json(key_of(summary, row)).dump()] = row.counters;
    }
  }
  return lines;
}

std::string to_text(const Lines& lines) {
  std::string text;
  for (const auto& [key, counters] : lines) {
    Json line = Json::parse(key);
    line["counters"] = counters;
    text += line.dump() + "\n";
  }
  return text;
}

std::int64_t value_of(const Counters& counters, const std::string& name) {
  const auto found = counters.find(name);
  return found == counters.end() ? 0 : found->second;
}

std::vector<CounterFinding> compare(const SummaryRow& row, const Counters& accepted) {
  const Counters& counted = row.counters;
  std::set<std::string> names;
  for (const Counters* counters : {&accepted, &counted}) {
    for (const auto& [name, value] : *counters) {
      names.insert(name);
    }
  }
  std::vector<CounterFinding> findings;
  for (const std::string& name : names) {
    const std::int64_t before = value_of(accepted, name);
    const std::int64_t now = value_of(counted, name);
    if (before == now) {
      continue;
    }
    // Rows that verify guesses run the head on as many positions as they guess.
    const bool guesses = name == "lm_head_rows" && value_of(accepted, "rounds") + value_of(counted, "rounds") > 0;
    const bool proof = is_among(kProofs, name) && !guesses;
    const bool worse = proof || (is_among(kSavings, name) ? now < before : now > before);
    findings.push_back({.outcome = worse ? CounterOutcome::regression : CounterOutcome::improved,
                        .cell = row.cell,
                        .arm = row.arm.label,
                        .counter = name,
                        .accepted = before,
                        .counted = now,
                        .words = fmt::format("{} {} from {} to {}", name,
                                             proof          ? "must not change, and went"
                                             : now > before ? "rose"
                                                            : "fell",
                                             before, now)});
  }
  return findings;
}

}  // namespace

std::string counter_lines(const RunSummary& summary) { return to_text(lines_of(summary)); }

std::string accept_counters(std::string_view accepted, const RunSummary& summary) {
  Lines lines = parse_lines(accepted);
  for (auto& [key, counters] : lines_of(summary)) {
    lines[key] = counters;
  }
  return to_text(lines);
}

std::vector<CounterFinding> check_counters(std::string_view accepted, const RunSummary& summary) {
  const Lines lines = parse_lines(accepted);
  std::vector<CounterFinding> findings;
  for (const SummaryRow& row : summary.rows) {
    if (row.counters.empty()) {
      continue;
    }
    for (const std::string& flag : row.flags) {
      if (!flag.starts_with(kUnsteadyFlag)) {
        continue;
      }
      findings.push_back(
          {.outcome = CounterOutcome::invalid,
           .cell = row.cell,
           .arm = row.arm.label,
           .counter = flag.substr(kUnsteadyFlag.size()),
           .words = fmt::format("{} differed when it was counted again", flag.substr(kUnsteadyFlag.size()))});
    }
    const auto found = lines.find(nlohmann::json(key_of(summary, row)).dump());
    if (found == lines.end()) {
      findings.push_back({.outcome = CounterOutcome::invalid,
                          .cell = row.cell,
                          .arm = row.arm.label,
                          .counter = "",
                          .words = "no counters were accepted for this row on this device and libtorch"});
      continue;
    }
    for (CounterFinding& finding : compare(row, found->second)) {
      findings.push_back(std::move(finding));
    }
  }
  std::ranges::stable_sort(findings, {}, &CounterFinding::outcome);
  return findings;
}

}  // namespace decodelab
