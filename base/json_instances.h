// Declares the templates of nlohmann::json that would otherwise be compiled again in every file;
// base/json_instances.cpp compiles them once.
#pragma once

#include <nlohmann/json.hpp>

extern template class nlohmann::basic_json<>;
extern template class nlohmann::basic_json<nlohmann::ordered_map>;
