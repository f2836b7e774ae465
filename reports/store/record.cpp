// Names of the statuses of a row and of what launches do, as they stand in the store and in every output.
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

constexpr std::array<std::pair<Activity, const char*>, kActivities> kActivityNames{{
    {Activity::loading, "loading"},
    {Activity::packing, "packing"},
    {Activity::starting, "starting"},
    {Activity::checking, "checking"},
    {Activity::counting, "counting"},
    {Activity::filling, "filling"},
    {Activity::warming, "warming"},
    {Activity::timing, "timing"},
    {Activity::rest, "rest"},
}};

template <typename Names, typename Value>
const char* name_of(const Names& names, Value value, const char* what) {
  for (const auto& [known, name] : names) {
    if (known == value) {
      return name;
    }
  }
  throw std::invalid_argument(fmt::format("{} is no {}.", static_cast<int>(value), what));
}

template <typename Names>
auto value_of(const Names& names, const std::string& name, const char* what) {
  std::string expected;
  for (const auto& [value, known] : names) {
    if (name == known) {
      return value;
    }
    expected += fmt::format("{}{}", expected.empty() ? "" : ", ", known);
  }
  throw std::invalid_argument(fmt::format("'{}' is no {}; expected one of {}.", name, what, expected));
}

}  // namespace

const char* to_string(RowStatus status) { return name_of(kStatusNames, status, "row status"); }
RowStatus row_status_from_string(const std::string& name) { return value_of(kStatusNames, name, "row status"); }

const char* to_string(Activity activity) { return name_of(kActivityNames, activity, "activity"); }
Activity activity_from_string(const std::string& name) { return value_of(kActivityNames, name, "activity"); }

}  // namespace decodelab
