// I1: what the collectors dropped. I2: stamps that are zero, inverted, or too far apart to be added up.
#include <algorithm>
#include <unordered_set>

#include <fmt/format.h>

#include "profiles/trace/checks/check.h"

namespace decodelab {
namespace {

template <typename Row>
bool is_bad(const Row& row) {
  return row.start_ns <= 0 || row.end_ns < row.start_ns;
}

class BadStamps {
 public:
  explicit BadStamps(const CheckInput& input) : input_(input) {
    for (const Step& step : input.events().steps) {
      if (counts(step)) {
        counted_steps_.insert(step.index);
      }
    }
  }

  /// Adds a row with bad stamps. Only operations are known to be in a step or not; other rows might belong to any step.
  void add(const char* what, const std::string& name, std::int64_t start_ns, std::int64_t end_ns, bool in_step) {
    if (in_step) {
      ++in_steps_;
    }
    rows_.add([&] {
      return fmt::format("{} [{}, {}]", name.empty() ? what : fmt::format("{} {}", what, name), start_ns, end_ns);
    });
  }

  template <typename Row>
  void add_all(const std::vector<Row>& rows, const char* what) {
    for (const Row& row : rows) {
      if (is_bad(row)) {
        add(what, "", row.start_ns, row.end_ns, true);
      }
    }
  }

  void add_operations() {
    for (const DeviceOperation& operation : input_.events().operations) {
      if (!is_bad(operation)) {
        continue;
      }
      const bool in_step = operation.step == kNoStep || counted_steps_.contains(operation.step);
      add("operation", name_of(input_.trace, operation.name), operation.start_ns, operation.end_ns, in_step);
    }
  }

  void add_spans() {
    for (const HostSpan& span : input_.events().spans) {
      if (span.end_ns == 0 && span.start_ns > 0) {
        continue;  // Check I6 reports spans that are still open.
      }
      if (is_bad(span)) {
        add("span", name_of(input_.trace, span.name), span.start_ns, span.end_ns, true);
      }
    }
  }

  CheckResult result() const {
    const std::int64_t dropped = input_.events().session.zero_times;
    CheckResult result{.value = static_cast<double>(rows_.count()) + static_cast<double>(dropped)};
    if (dropped > 0) {
      result.status = CheckStatus::failed;
      result.evidence = counted(dropped, "record") + " had zero stamps and could not be kept; ";
    }
    if (rows_.count() > 0) {
      if (in_steps_ > 0) {
        result.status = CheckStatus::failed;
      }
      if (in_steps_ == 0 && dropped == 0) {
        result.status = CheckStatus::warned;
      }
      result.evidence += fmt::format("{} with a zero or inverted stamp{}: {}", counted(rows_.count(), "row"),
                                     in_steps_ == 0 ? ", in no step that counts" : "", rows_.text());
    }
    if (result.evidence.empty()) {
      result.evidence = "all stamps are set and in order";
    }
    return result;
  }

 private:
  const CheckInput& input_;
  std::unordered_set<std::int32_t> counted_steps_;
  NamedRows rows_;
  std::int64_t in_steps_ = 0;
};

}  // namespace

CheckResult check_nothing_dropped(const CheckInput& input) {
  const TraceSession& session = input.events().session;
  CheckResult result{.value = static_cast<double>(session.dropped_records)};
  if (session.dropped_records > 0) {
    result.status = CheckStatus::failed;
    result.evidence = counted(session.dropped_records, "record") +
                      " dropped by the collectors: trace fewer steps, or allow more events";
  } else if (session.unknown_records > 0) {
    result.status = CheckStatus::warned;
    result.value = static_cast<double>(session.unknown_records);
    result.evidence = counted(session.unknown_records, "record") + " of a kind that is not known were passed over";
  } else {
    result.evidence = "nothing was dropped";
  }
  return result;
}

CheckResult check_stamps(const CheckInput& input) {
  if (!input.times_add_up) {
    const TraceReach reach = reach_of(input.events());
    return {
        .status = CheckStatus::failed,
        .value = reach.largest,
        .evidence = fmt::format("stamps lie {:.3g} s apart, or amounts are as large, over {}: they cannot be added up",
                                reach.largest * 1e-9, counted(reach.rows, "row"))};
  }
  BadStamps bad(input);
  bad.add_operations();
  bad.add_spans();
  bad.add_all(input.events().api_calls, "call");
  bad.add_all(input.events().waits, "wait");
  bad.add_all(input.events().overheads, "overhead");
  return bad.result();
}

}  // namespace decodelab
