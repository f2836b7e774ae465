// Walks each thread's ranges and calls in the order of time, with a stack of the ranges that are open.
#include "profiles/trace/ranges.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

#include "profiles/trace/names.h"

namespace decodelab {
namespace {

/// What one call launched, counting only operations in steps that statistics use.
struct Launched {
  std::int64_t ns = 0;
  std::int64_t operations = 0;
};

class Ranges {
 public:
  explicit Ranges(const Trace& trace) : events_(trace.events()) {
    for (const Step& step : events_.steps) {
      if (step.excluded_reason.empty()) {
        steps_.insert(step.index);
      }
    }
  }

  std::vector<RangeCost> run() {
    add_launches();
    std::size_t row = 0;
    for (std::size_t call = 0; call < events_.api_calls.size(); ++call) {
      const ApiCall& launch = events_.api_calls[call];
      for (; row < events_.spans.size() && events_.spans[row].start_ns <= launch.start_ns; ++row) {
        enter(row);
      }
      if (launched_[call].operations > 0) {
        give(launch, launched_[call]);
      }
    }
    for (; row < events_.spans.size(); ++row) {
      enter(row);
    }
    std::vector<RangeCost> costs;
    for (auto& [name, cost] : costs_) {
      cost.name = name;
      if (!name.empty()) {
        costs.push_back(cost);
      }
    }
    std::stable_sort(costs.begin(), costs.end(), [](const RangeCost& a, const RangeCost& b) {
      return a.device_ns != b.device_ns ? a.device_ns > b.device_ns : a.host_ns > b.host_ns;
    });
    return costs;
  }

 private:
  struct Open {
    std::int64_t end_ns = 0;
    RangeCost* cost = nullptr;
  };

  void add_launches() {
    launched_.resize(events_.api_calls.size());
    for (const DeviceOperation& row : events_.operations) {
      if (row.api_row == kNoRow || !steps_.contains(row.step)) {
        continue;
      }
      Launched& launched = launched_[static_cast<std::size_t>(row.api_row)];
      launched.ns += std::max<std::int64_t>(0, row.end_ns - row.start_ns);
      ++launched.operations;
    }
  }

  RangeCost* cost_of(StringId id) {
    const auto [place, is_new] = by_id_.try_emplace(id, nullptr);
    if (is_new) {
      place->second = &costs_[range_kind(events_.strings.text(id))];
    }
    return place->second;
  }

  std::vector<Open>& open_at(std::int64_t thread, std::int64_t time_ns) {
    std::vector<Open>& open = threads_[thread];
    while (!open.empty() && open.back().end_ns <= time_ns) {
      open.pop_back();
    }
    return open;
  }

  static bool is_open(const std::vector<Open>& open, const RangeCost* cost) {
    return std::any_of(open.begin(), open.end(), [&](const Open& range) { return range.cost == cost; });
  }

  void enter(std::size_t row) {
    const HostSpan& span = events_.spans[row];
    std::vector<Open>& open = open_at(span.thread, span.start_ns);
    if (span.kind == SpanKind::step || span.end_ns <= span.start_ns || !steps_.contains(span.step)) {
      return;
    }
    RangeCost* cost = cost_of(span.name);
    ++cost->count;
    if (!is_open(open, cost)) {
      cost->host_ns += span.end_ns - span.start_ns;
    }
    open.push_back({.end_ns = span.end_ns, .cost = cost});
  }

  void give(const ApiCall& call, const Launched& launched) {
    std::vector<Open>& open = open_at(call.thread, call.start_ns);
    std::set<RangeCost*> costs;
    for (const Open& range : open) {
      costs.insert(range.cost);
    }
    for (RangeCost* cost : costs) {
      cost->device_ns += launched.ns;
      cost->operations += launched.operations;
    }
  }

  const TraceEvents& events_;
  std::set<std::int32_t> steps_;
  std::vector<Launched> launched_;
  std::map<std::string, RangeCost> costs_;
  std::unordered_map<StringId, RangeCost*> by_id_;
  std::unordered_map<std::int64_t, std::vector<Open>> threads_;
};

}  // namespace

std::vector<RangeCost> range_costs(const Trace& trace) { return Ranges(trace).run(); }

}  // namespace decodelab
