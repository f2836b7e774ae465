// Compiles the templates that base/json_instances.h declares.
#include "base/json_instances.h"

template class nlohmann::basic_json<>;
template class nlohmann::basic_json<nlohmann::ordered_map>;
