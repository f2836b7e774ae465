// Prints what reports/statistics computes for the values on standard input, for statistics_scipy_test.py.
#include <cstdio>
#include <iostream>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "reports/statistics/estimates.h"
#include "reports/statistics/looks.h"
#include "reports/statistics/sign_flip.h"
#include "tests/reports/statistics/operating_characteristics.h"

namespace decodelab {
namespace {

using Json = nlohmann::json;

Sides sides_of(const Json& query) { return query.at("sides") == "upper" ? Sides::upper : Sides::two; }

Json family_of(const Json& query) {
  const FamilyTest test = test_family(query.at("contrasts").get<std::vector<std::vector<double>>>(), sides_of(query),
                                      query.value("level", kFamilyLevel));
  return {{"p", test.p}, {"p_family", test.p_adjusted}, {"critical_t", test.critical_t}};
}

Json look_of(const Json& query) {
  const double margin = query.at("margin");
  const auto looked = decide_look({query.at("values").get<std::vector<double>>()}, {{margin, margin}}, gate_looks());
  const LookContrast& look = looked.front();
  return {{"estimate", look.estimate}, {"low", look.interval->low}, {"high", look.interval->high}, {"p_t", look.p_t}};
}

Json points_of(const Json& query) {
  GatePolicy policy;
  policy.looks.looks = query.at("looks").get<std::vector<std::size_t>>();
  Json points = Json::array();
  const SimulatedGates gates{
      .block_sd = query.at("sd"), .margin = query.at("margin"), .cells = 1, .gates = query.at("gates")};
  for (const OperatingPoint& point : operating_characteristics(gates, policy)) {
    points.push_back({{"effect", point.effect}, {"pass", point.pass}, {"fail", point.fail}});
  }
  return points;
}

Json answer(const Json& query) {
  const std::string what = query.at("what");
  if (what == "t_quantile") {
    return student_t_quantile(query.at("p"), query.at("n"));
  }
  if (what == "family") {
    return family_of(query);
  }
  if (what == "look") {
    return look_of(query);
  }
  if (what == "operating") {
    return points_of(query);
  }
  const auto values = query.at("values").get<std::vector<double>>();
  if (what == "t_p") {
    return student_t_p(values);
  }
  if (what == "t_p_above") {
    return student_t_p_above(values);
  }
  throw std::invalid_argument("no such value: " + what);
}

}  // namespace
}  // namespace decodelab

/// One JSON object a line in, one JSON value a line out.
int main() {
  for (std::string line; std::getline(std::cin, line);) {
    std::puts(decodelab::answer(nlohmann::json::parse(line)).dump().c_str());
  }
}
