// Names of the statuses of a row, as they stand in the store and in every output.
#include "reports/store/record.h"

#include <array>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

namespace decodelab {
namespace {

constexpr std::array<std::pair<RowStatus, const char*>, 9> kStatusNames{{
    {RowStatus::planned, "planned"},
    {RowStatus::ok, "ok"},
    {RowStatus::oom, "oom"},
    {RowStatus::unsupported, "unsupported"},
    {RowStatus::incorrect, "incorrect"},
    {RowStatus::not_engaged, "not-engaged"},
    {RowStatus::failed, "failed"},
    {RowStatus::timeout, "timeout"},
    {RowStatus::throttled, "throttled"},
}};

}  // namespace

const char* to_string(RowStatus status) {
  for (const auto& [value, name] : kStatusNames) {
    if (value == status) return name;
  }
  throw std::invalid_argument(fmt::format("{} is no row status.", static_cast<int>(status)));
}

RowStatus row_status_from_string(const std::string& name) {
  std::string known;
  for (const auto& [value, known_name] : kStatusNames) {
    if (name == known_name) return value;
    known += fmt::format("{}{}", known.empty() ? "" : ", ", known_name);
  }
  throw std::invalid_argument(fmt::format("'{}' is no row status; expected one of {}.", name, known));
}

}  // namespace decodelab
