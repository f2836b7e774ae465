// Writes and reads the parameters by their names in Hugging Face's generate().
#include "bench/plan/sampling_json.h"

#include <nlohmann/json.hpp>

namespace decodelab {

nlohmann::json sampling_to_json(const SamplingParameters& sampling) {
  return {{"sample", sampling.sample},       {"temperature", sampling.temperature},
          {"top_k", sampling.top_k},         {"top_p", sampling.top_p},
          {"typical_p", sampling.typical_p}, {"repetition_penalty", sampling.repetition_penalty}};
}

SamplingParameters sampling_from_json(const nlohmann::json& json) {
  SamplingParameters sampling;
  sampling.sample = json.at("sample");
  sampling.temperature = json.at("temperature");
  sampling.top_k = json.at("top_k");
  sampling.top_p = json.at("top_p");
  sampling.typical_p = json.at("typical_p");
  sampling.repetition_penalty = json.at("repetition_penalty");
  return sampling;
}

std::vector<std::string> used_parameters(const SamplingParameters& sampling) {
  const nlohmann::json neutral = sampling_to_json({});
  const nlohmann::json given = sampling_to_json(sampling);
  std::vector<std::string> names;
  for (const auto& [name, value] : given.items()) {
    if (value != neutral.at(name)) {
      names.push_back(name);
    }
  }
  return names;
}

}  // namespace decodelab
