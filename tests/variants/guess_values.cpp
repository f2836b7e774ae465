// Prints what proposers guess behind the tokens on standard input, for guesses_transformers_test.py.
#include <cstdint>
#include <cstdio>
#include <iostream>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "bench/plan/arm.h"
#include "engine/plan.h"
#include "engine/sequences/proposer.h"

namespace decodelab {
namespace {

/// Of `tokens`, what `variant` guesses behind each beginning of them: a list for each token.
nlohmann::json answer(const nlohmann::json& query) {
  const EnginePlan plan = bind_arm(parse_arm("causal,+" + query.at("variant").get<std::string>()), reference_plan());
  const auto proposer = plan.proposer.value().make({.rows = 1});
  const std::vector<std::int64_t> budget{query.at("most").get<std::int64_t>()};
  nlohmann::json guesses = nlohmann::json::array();
  for (const std::int64_t token : query.at("tokens")) {
    proposer->add(0, {&token, 1});
    guesses.push_back(proposer->propose(budget).front());
  }
  return guesses;
}

}  // namespace
}  // namespace decodelab

/// One JSON object a line in, a list a line out.
int main() {
  for (std::string line; std::getline(std::cin, line);) {
    std::puts(decodelab::answer(nlohmann::json::parse(line)).dump().c_str());
  }
}
