// Prints what both implementations of the warpers make of the logits on standard input, for
// warpers_transformers_test.py.
#include <cmath>
#include <cstdio>
#include <iostream>
#include <limits>
#include <string>

#include <nlohmann/json.hpp>

#include "engine/sampling/warpers.h"
#include "engine/tensor.h"
#include "variants/token_choice/batch_warpers.h"

namespace decodelab {
namespace {

using Json = nlohmann::json;

/// Rows of numbers as [B, V]; null is -infinity, which JSON has no word for.
at::Tensor matrix(const Json& rows) {
  at::Tensor values = at::empty({static_cast<std::int64_t>(rows.size()), static_cast<std::int64_t>(rows[0].size())});
  float* value = values.mutable_data_ptr<float>();
  for (const Json& row : rows) {
    for (const Json& number : row) {
      *value++ = number.is_null() ? -std::numeric_limits<float>::infinity() : number.get<float>();
    }
  }
  return values;
}

Json rows_of(const at::Tensor& values) {
  Json rows = Json::array();
  const at::Tensor whole = values.contiguous();
  const float* value = whole.const_data_ptr<float>();
  for (std::int64_t row = 0; row < whole.size(0); ++row) {
    Json& numbers = rows.emplace_back(Json::array());
    for (std::int64_t column = 0; column < whole.size(1); ++column, ++value) {
      numbers.push_back(std::isinf(*value) ? Json() : Json(static_cast<double>(*value)));
    }
  }
  return rows;
}

Json answer(const Json& query) {
  const at::Tensor logits = matrix(query.at("logits"));
  std::vector<SamplingParameters> rows;
  at::Tensor seen = at::zeros(logits.sizes(), at::kBool);
  for (const Json& wishes : query.at("rows")) {
    for (const std::int64_t id : wishes.at("history")) {
      seen[static_cast<std::int64_t>(rows.size())][id] = true;
    }
    rows.push_back({.sample = true,
                    .temperature = wishes.value("temperature", 1.0),
                    .top_k = wishes.value("top_k", std::int64_t{0}),
                    .top_p = wishes.value("top_p", 1.0),
                    .typical_p = wishes.value("typical_p", 1.0),
                    .repetition_penalty = wishes.value("repetition_penalty", 1.0)});
  }
  std::vector<at::Tensor> by_row;
  for (std::size_t row = 0; row < rows.size(); ++row) {
    const auto index = static_cast<std::int64_t>(row);
    by_row.push_back(warp_row(penalize_row(logits[index], seen[index], rows[row]), rows[row]));
  }
  const at::Tensor penalized = BatchPenalty(rows, at::kCPU).penalize(logits, seen);
  return {{"by_row", rows_of(at::stack(by_row))}, {"together", rows_of(BatchWarpers(rows, at::kCPU).warp(penalized))}};
}

}  // namespace
}  // namespace decodelab

/// One JSON object a line in, one a line out.
int main() {
  const c10::InferenceMode inference;
  for (std::string line; std::getline(std::cin, line);) {
    std::puts(decodelab::answer(nlohmann::json::parse(line)).dump().c_str());
  }
}
