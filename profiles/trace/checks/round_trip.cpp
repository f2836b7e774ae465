// I14 and I15: counts, sums, flows and texts of two collections.
#include "profiles/trace/checks/round_trip.h"

#include <map>
#include <set>

#include <fmt/format.h>

#include "profiles/trace/checks/check.h"

namespace decodelab {
namespace {

/// Sums wrap around instead of overflowing: equal collections still have equal sums.
struct Sums {
  std::uint64_t rows = 0;
  std::uint64_t ns = 0;

  template <typename Row>
  void add(const Row& row) {
    ++rows;
    ns += static_cast<std::uint64_t>(row.end_ns) - static_cast<std::uint64_t>(row.start_ns);
  }
};

template <typename Rows>
Sums sums_of(const Rows& rows) {
  Sums sums;
  for (const auto& row : rows) sums.add(row);
  return sums;
}

class Comparison {
 public:
  Comparison(const TraceEvents& written, const TraceEvents& read, const ComparedParts& parts)
      : written_(written), read_(read), parts_(parts) {}

  std::vector<std::string> run() {
    if (parts_.spans) compare_rows("spans", written_.spans, read_.spans);
    if (parts_.api_calls) compare_rows("calls", written_.api_calls, read_.api_calls);
    if (parts_.operations) compare_rows("operations", written_.operations, read_.operations);
    if (parts_.waits) compare_rows("waits", written_.waits, read_.waits);
    if (parts_.overheads) compare_rows("overheads", written_.overheads, read_.overheads);
    if (parts_.steps) compare_rows("steps", written_.steps, read_.steps);
    if (parts_.counters) compare_counts("counter points", written_.counters.size(), read_.counters.size());
    if (parts_.api_calls && parts_.operations) compare_counts("flows", flows(written_), flows(read_));
    compare_texts();
    return std::move(differences_);
  }

 private:
  void compare_counts(const char* what, std::size_t written, std::size_t read) {
    if (written != read) differences_.push_back(fmt::format("{} {} written, {} read", written, what, read));
  }

  template <typename Rows>
  void compare_rows(const char* what, const Rows& written_rows, const Rows& read_rows) {
    const Sums written = sums_of(written_rows);
    const Sums read = sums_of(read_rows);
    compare_counts(what, written.rows, read.rows);
    const auto off = static_cast<std::int64_t>(read.ns - written.ns);
    const std::uint64_t magnitude = off < 0 ? 0 - static_cast<std::uint64_t>(off) : static_cast<std::uint64_t>(off);
    if (magnitude > static_cast<std::uint64_t>(parts_.rounding_ns) * written.rows) {
      differences_.push_back(fmt::format("the durations of {} differ by {} ns in all", what, off));
    }
  }

  static std::size_t flows(const TraceEvents& events) {
    std::size_t count = 0;
    for (const DeviceOperation& operation : events.operations) count += operation.api_row == kNoRow ? 0 : 1;
    return count;
  }

  /// Texts that rows of the compared parts use, with how often each is used.
  std::map<std::string, std::int64_t> texts(const TraceEvents& events) const {
    std::vector<std::int64_t> uses(events.strings.size(), 0);
    const auto use = [&](StringId id) {
      if (id < uses.size()) ++uses[id];
    };
    if (parts_.spans) {
      for (const HostSpan& span : events.spans) use(span.name);
    }
    if (parts_.api_calls) {
      for (const ApiCall& call : events.api_calls) use(call.name);
    }
    if (parts_.operations) {
      for (const DeviceOperation& operation : events.operations) use(operation.name);
    }
    if (parts_.counters) {
      for (const CounterPoint& point : events.counters) use(point.series);
    }
    std::map<std::string, std::int64_t> used;
    for (StringId id = 0; id < uses.size(); ++id) {
      if (uses[id] > 0) used.emplace(events.strings.text(id), uses[id]);
    }
    return used;
  }

  void compare_texts() {
    const auto written = texts(written_);
    const auto read = texts(read_);
    const auto of = [](const std::map<std::string, std::int64_t>& texts, const std::string& text) {
      const auto found = texts.find(text);
      return found == texts.end() ? 0 : found->second;
    };
    std::set<std::string> all;
    for (const auto& [text, uses] : written) all.insert(text);
    for (const auto& [text, uses] : read) all.insert(text);
    NamedRows rows;
    for (const std::string& text : all) {
      if (of(written, text) == of(read, text)) continue;
      rows.add([&] {
        return fmt::format("'{}' {} times written, {} read", text.substr(0, 60), of(written, text), of(read, text));
      });
    }
    if (rows.count() > 0) differences_.push_back("texts differ: " + rows.text());
  }

  const TraceEvents& written_;
  const TraceEvents& read_;
  const ComparedParts& parts_;
  std::vector<std::string> differences_;
};

/// As the table names it.
TraceCheck named(const char* id, const std::vector<std::string>& faults, const char* all_well) {
  TraceCheck check{.id = id};
  for (const CheckDefinition& definition : check_table()) {
    if (check.id == definition.id) check.title = definition.title;
  }
  check.value = static_cast<double>(faults.size());
  check.status = faults.empty() ? CheckStatus::passed : CheckStatus::failed;
  check.evidence = all_well;
  if (faults.empty()) return check;
  NamedRows rows;
  for (const std::string& fault : faults) rows.add([&] { return fault; });
  check.evidence = rows.text();
  return check;
}

}  // namespace

std::vector<std::string> compare_events(const TraceEvents& written, const TraceEvents& read,
                                        const ComparedParts& parts) {
  return Comparison(written, read, parts).run();
}

TraceCheck round_trip_check(const std::vector<std::string>& differences) {
  return named("I14", differences, "counts, durations, flows and texts are those that were written");
}

TraceCheck importer_check(const std::vector<std::string>& errors) {
  return named("I15", errors, "no error was reported");
}

CheckResult check_export(const CheckInput&) { return not_applicable("made where a file is written and read again"); }

CheckResult check_importer(const CheckInput&) { return not_applicable("made where a file is read by another program"); }

}  // namespace decodelab
