// Reads the counts of rounds.
#include "engine/sequences/round_trace.h"

#include <stdexcept>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "base/json_text.h"

namespace decodelab {
namespace {

/// More than any model has positions.
constexpr std::int64_t kMostGuessesOfARound = std::int64_t{1} << 20;

std::int64_t count_of(const nlohmann::json& value, const std::string& place) {
  if (!value.is_number_integer() || value.get<std::int64_t>() < 0 || value.get<std::int64_t>() > kMostGuessesOfARound) {
    throw std::invalid_argument(
        fmt::format("{}: a round has two numbers of guesses, 0 or more, but one is {}", place, shown(value)));
  }
  return value.get<std::int64_t>();
}

RoundCounts rounds_of(const nlohmann::json& list, const std::string& place) {
  if (!list.is_array()) {
    throw std::invalid_argument(fmt::format("{}: 'rounds' is a list of pairs, not {}", place, shown(list)));
  }
  RoundCounts rounds;
  for (const nlohmann::json& pair : list) {
    if (!pair.is_array() || pair.size() != 2) {
      throw std::invalid_argument(
          fmt::format("{}: a round is a pair, guesses and those that stood, not {}", place, shown(pair)));
    }
    const RoundCount round{.proposed = count_of(pair[0], place), .accepted = count_of(pair[1], place)};
    if (round.accepted > round.proposed) {
      throw std::invalid_argument(
          fmt::format("{}: of {} guesses {} stood, which are more", place, round.proposed, round.accepted));
    }
    rounds.push_back(round);
  }
  return rounds;
}

}  // namespace

std::vector<RoundCounts> parse_round_trace(std::string_view text, const std::string& name) {
  std::vector<RoundCounts> completions;
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (line.empty()) {
      continue;
    }
    const std::string place = fmt::format("{}, line {}", name, number);
    const nlohmann::json object = parse_json_object(line, place);
    const auto found = object.find("rounds");
    if (found == object.end()) {
      continue;
    }
    RoundCounts rounds = rounds_of(*found, place);
    if (!rounds.empty()) {
      completions.push_back(std::move(rounds));
    }
  }
  if (completions.empty()) {
    throw std::invalid_argument(
        fmt::format("{} holds no rounds; 'decodelab generate --speculate N -o jsonl' writes them", name));
  }
  return completions;
}

std::vector<RoundCounts> load_round_trace(const std::filesystem::path& file) {
  return parse_round_trace(read_file("oracle-draft:trace", file.string()), file.string());
}

}  // namespace decodelab
