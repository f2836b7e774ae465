// Writes traces in every format, and beside each what a reader must find in it; tests/profiles/*_test.py hold other
// people's readers to that.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "profiles/trace/attribution.h"
#include "profiles/write/rows.h"
#include "profiles/write/write_trace.h"
#include "tests/profiles/write/sample_trace.h"

namespace decodelab {
namespace {

using nlohmann::json;

// By hand, from the rows: nothing of the writers.
class Expected {
 public:
  explicit Expected(const Trace& trace) : trace_(trace), events_(trace.events()) {
    for (const auto& row : events_.spans) {
      add(trace.text(row.name), row.start_ns, row.end_ns == 0 ? last() : row.end_ns);
    }
    for (const auto& row : events_.api_calls) {
      add(trace.text(row.name), row.start_ns, row.end_ns);
    }
    for (const auto& row : events_.operations) {
      add(trace.text(row.name), row.start_ns, row.end_ns);
    }
    for (const auto& row : events_.waits) {
      add(name_of(kWaitNames, row.kind), row.start_ns, row.end_ns);
    }
    for (const auto& row : events_.overheads) {
      add(name_of(kOverheadNames, row.kind), row.start_ns, row.end_ns);
    }
    for (const auto& row : events_.steps) {
      add("step " + std::to_string(row.index), row.start_ns, row.end_ns);
    }
  }

  json document(const Attribution& account) const {
    json slices = json::object();
    for (const auto& [name, sums] : slices_) {
      slices[name] = {sums.first, sums.second};
    }
    json counters = json::object();
    for (const CounterPoint& point : events_.counters) {
      counters[trace_.text(point.series)].push_back(point.value);
    }
    std::int64_t busy_ns = 0;
    std::int64_t first_ns = 0;
    std::int64_t last_ns = 0;
    add_device_time(busy_ns, first_ns, last_ns);
    return {{"slices", slices},
            {"counters", counters},
            {"flows", trace_.flows().size()},
            {"operations", events_.operations.size()},
            {"steps", events_.steps.size()},
            {"gaps", account.gaps.size()},
            {"device_busy_ns", busy_ns},
            {"device_span_ns", last_ns - first_ns}};
  }

 private:
  std::int64_t last() const { return std::max(bounds_of(events_).end_ns, events_.session.window_end_ns); }

  void add(const std::string& name, std::int64_t start_ns, std::int64_t end_ns) {
    auto& [count, sum_ns] = slices_[name];
    ++count;
    sum_ns += std::max<std::int64_t>(0, end_ns - start_ns);
  }

  // Of all devices as one, which is how HolisticTraceAnalysis sees a rank.
  void add_device_time(std::int64_t& busy_ns, std::int64_t& first_ns, std::int64_t& last_ns) const {
    if (events_.operations.empty()) {
      return;
    }
    first_ns = last_ns = events_.operations.front().start_ns;
    for (const DeviceOperation& row : events_.operations) {
      busy_ns += std::max<std::int64_t>(0, row.end_ns - std::max(row.start_ns, last_ns));
      last_ns = std::max(last_ns, row.end_ns);
    }
  }

  const Trace& trace_;
  const TraceEvents& events_;
  std::map<std::string, std::pair<std::int64_t, std::int64_t>> slices_;
};

// The traps that Perfetto's engine measures wrongly without a word, as rows.
TraceEvents trap_events() {
  TraceEvents events;
  events.session.uuid = "traps";
  events.session.process = 10;
  events.session.main_thread = 11;
  events.session.window_end_ns = 10'000;
  TraceStrings& text = events.strings;
  const auto kernel = [&](const char* name, std::int64_t start, std::int64_t end, std::int32_t stream) {
    events.operations.push_back(
        {.start_ns = start, .end_ns = end, .process = 10, .stream = stream, .name = text.id(name)});
  };
  const auto span = [&](const char* name, std::int64_t start, std::int64_t end) {
    events.spans.push_back(
        {.start_ns = start, .end_ns = end, .thread = 11, .name = text.id(name), .kind = SpanKind::operator_call});
  };
  // (a) Two kernels of one stream overlap, by half and by a nanosecond.
  kernel("overlaps next", 1'000, 1'010, 7);
  kernel("overlaps last", 1'005, 1'010, 7);
  kernel("long", 1'100, 1'200, 7);
  kernel("one ns into long", 1'199, 1'300, 7);
  // (b) One ends where the next begins; one of no length stands on the border.
  kernel("ends at 1500", 1'400, 1'500, 8);
  kernel("no length", 1'500, 1'500, 8);
  kernel("begins at 1500", 1'500, 1'600, 8);
  // (c) A launch 1 ns before the operator that made it.
  span("operator", 2'000, 2'100);
  events.api_calls.push_back({.start_ns = 1'999,
                              .end_ns = 2'050,
                              .process = 10,
                              .thread = 11,
                              .correlation = 1,
                              .name = text.id("launch before its operator"),
                              .kind = ApiKind::launch});
  // (d) A span that was never closed; (e) rows that end before they begin, whose ends would close what is around them.
  span("around", 3'000, 3'900);
  span("never closed", 3'100, 0);
  span("ends before it begins", 3'500, 3'400);
  return events;
}

void write_all(const std::filesystem::path& folder, const std::string& name, const Trace& trace) {
  const TraceQuality quality = verify(trace);
  for (const char* ending : {".pftrace", ".pt.trace.json.gz", ".sqlite"}) {
    write_trace(trace, quality, folder / (name + ending));
  }
  json document = Expected(trace).document(attribute(trace, quality));
  document["verdict"] = to_string(quality.verdict);
  std::ofstream(folder / (name + ".expected.json")) << document.dump(-1, ' ', false, json::error_handler_t::replace);
}

void write_samples(const std::filesystem::path& folder) {
  write_all(folder, "sample", seal(testing::sample_events()));
  write_all(folder, "eager", testing::synthetic({.layers = 4, .steps = 6}));
  write_all(folder, "graph", testing::synthetic({.layers = 4, .steps = 6, .graph = true}));
  write_all(folder, "cpu", testing::synthetic({.layers = 4, .steps = 6, .cpu_only = true}));
  write_all(folder, "traps", seal(trap_events()));
}

}  // namespace
}  // namespace decodelab

int main(int count, char** arguments) {
  if (count != 2) {
    std::cerr << "usage: trace_samples FOLDER\n";
    return 2;
  }
  decodelab::write_samples(arguments[1]);
  return 0;
}
