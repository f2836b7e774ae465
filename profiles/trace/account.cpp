// Adds up steps, stages, operators and shares in one pass each over spans and operations.
#include "profiles/trace/account.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "profiles/trace/device_time.h"
#include "profiles/trace/host_time.h"

namespace decodelab {
namespace {

std::size_t index_of(Stage stage) { return std::min(static_cast<std::size_t>(stage), kStageNames.size() - 1); }

class Account {
 public:
  explicit Account(const Trace& trace) : events_(trace.events()) {}

  Attribution build() {
    result_.on_device = has_device(events_);
    for (const Step& step : events_.steps) {
      if (!step.excluded_reason.empty()) {
        continue;
      }
      if (!places_.emplace(step.index, steps_.size()).second) {
        continue;
      }
      steps_.push_back(&step);
      result_.steps.push_back({.index = step.index, .span_ns = step.end_ns - step.start_ns});
      result_.steps_ns += step.end_ns - step.start_ns;
    }
    for (std::size_t i = 0; i < kStageNames.size(); ++i) {
      stages_[i].stage = static_cast<Stage>(i);
    }
    add_host();
    add_spans();
    if (result_.on_device) {
      add_device();
    }
    if (result_.on_device) {
      add_operations();
    }
    finish();
    return std::move(result_);
  }

 private:
  using ShareKey = std::tuple<ShareKind, GapCause, Stage, std::int32_t, StringId>;
  using CostKey = std::tuple<StringId, Stage, std::int32_t>;

  StepAccount* step_of(std::int32_t index) {
    if (index == last_index_ && last_step_ != nullptr) {
      return last_step_;
    }
    const auto found = places_.find(index);
    if (found == places_.end()) {
      return nullptr;
    }
    last_index_ = index;
    last_step_ = &result_.steps[found->second];
    return last_step_;
  }

  void share(const ShareKey& key, std::int64_t ns, std::int64_t calls) {
    auto& [sum_ns, sum_calls] = shares_[key];
    sum_ns += ns;
    sum_calls += calls;
  }

  ShareKey host_key(const SpanPlace& place) const {
    const StringId name =
        place.operator_row == kNoRow ? 0 : events_.spans[static_cast<std::size_t>(place.operator_row)].name;
    return {place.in_stage ? ShareKind::operation : ShareKind::residual, GapCause::unknown, place.stage, place.layer,
            name};
  }

  /// Visits the pieces of `segments` (disjoint, in order) that lie inside of one step.
  template <typename Segment, typename Visit>
  void for_each_in_step(const std::vector<Segment>& segments, std::size_t step, Visit visit) {
    const std::int64_t start_ns = steps_[step]->start_ns;
    const std::int64_t end_ns = steps_[step]->end_ns;
    auto segment =
        std::upper_bound(segments.begin(), segments.end(), start_ns,
                         [](std::int64_t time, const Segment& candidate) { return time < candidate.end_ns; });
    for (; segment != segments.end() && segment->start_ns < end_ns; ++segment) {
      visit(std::max(segment->start_ns, start_ns), std::min(segment->end_ns, end_ns), *segment);
    }
  }

  void add_host() {
    times_ = host_times(events_, step_thread(events_));
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      StepAccount& step = result_.steps[i];
      std::int64_t in_stages_ns = 0;
      std::int64_t in_spans_ns = 0;
      for_each_in_step(times_.segments, i, [&](std::int64_t start, std::int64_t end, const HostSegment& segment) {
        const SpanPlace& place = times_.places[static_cast<std::size_t>(segment.span_row)];
        const std::int64_t ns = end - start;
        in_spans_ns += ns;
        if (!result_.on_device) {
          share(host_key(place), ns, 0);
        }
        if (!place.in_stage) {
          return;
        }
        in_stages_ns += ns;
        step.host_stage_ns[index_of(place.stage)] += ns;
      });
      step.residual_ns = step.span_ns - in_stages_ns;
      if (!result_.on_device) {
        share({ShareKind::residual, GapCause::unknown, Stage::other, kNoLayer, 0}, step.span_ns - in_spans_ns, 0);
      }
      for (std::size_t stage = 0; stage < kStageNames.size(); ++stage) {
        stages_[stage].host_ns += step.host_stage_ns[stage];
      }
    }
  }

  void add_spans() {
    for (std::size_t row = 0; row < events_.spans.size(); ++row) {
      const HostSpan& span = events_.spans[row];
      StepAccount* step = step_of(span.step);
      if (step == nullptr) {
        continue;
      }
      const SpanPlace& place = times_.places[row];
      StageCost& stage = stages_[index_of(place.stage)];
      stage.allocations += span.allocations;
      stage.allocated_bytes += span.allocated_bytes;
      stage.expected_bytes += span.expected_bytes;
      if (span.kind != SpanKind::operator_call) {
        continue;
      }
      ++stage.operators;
      ++step->operators;
      OperatorCost& cost = operators_[{span.name, place.stage, place.layer}];
      ++cost.calls;
      cost.self_ns += times_.self_ns[row];
      cost.total_ns += std::max<std::int64_t>(0, span.end_ns - span.start_ns);
      if (!result_.on_device) {
        share(host_key(place), 0, 1);
      }
    }
  }

  void add_device() {
    const std::int32_t device = busiest_device(events_);
    const std::vector<BusySegment> segments = busy_segments(events_, device);
    const GapCauses causes(events_);
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      StepAccount& step = result_.steps[i];
      std::int64_t cursor_ns = steps_[i]->start_ns;
      bool before_first = true;
      for_each_in_step(segments, i, [&](std::int64_t start, std::int64_t end, const BusySegment& segment) {
        const std::size_t first_new = result_.gaps.size();
        if (start > cursor_ns && before_first) {
          add_edge(device, cursor_ns, start, segment.operation_row);
        } else if (start > cursor_ns) {
          causes.explain(cursor_ns, start, segment.operation_row, result_.gaps);
        }
        for (std::size_t gap = first_new; gap < result_.gaps.size(); ++gap) {
          result_.gaps[gap].step = step.index;
        }
        before_first = false;
        cursor_ns = end;
        step.busy_ns += end - start;
        const auto row = static_cast<std::size_t>(segment.operation_row);
        const DeviceOperation& operation = events_.operations[row];
        share({ShareKind::operation, GapCause::unknown, operation.stage, operation.layer, operation.name}, end - start,
              0);
        kernels_[{operation.name, operation.stage, operation.layer}].self_ns += end - start;
      });
      if (cursor_ns < steps_[i]->end_ns) {
        add_edge(device, cursor_ns, steps_[i]->end_ns, kNoRow);
        result_.gaps.back().step = step.index;
      }
    }
    for (const Gap& gap : result_.gaps) {
      const std::int64_t ns = gap.end_ns - gap.start_ns;
      result_.steps[places_.at(gap.step)].gap_ns[static_cast<std::size_t>(gap.cause)] += ns;
      share({ShareKind::gap, gap.cause, Stage::other, kNoLayer, 0}, ns, 1);
    }
  }

  void add_edge(std::int32_t device, std::int64_t start_ns, std::int64_t end_ns, std::int64_t next) {
    result_.gaps.push_back(
        {.device = device, .start_ns = start_ns, .end_ns = end_ns, .cause = GapCause::edge, .next_operation = next});
  }

  void add_operations() {
    const std::vector<bool> first = first_of_launch(events_);
    std::unordered_map<std::int32_t, std::int64_t> busy_until_ns;
    for (std::size_t row = 0; row < events_.operations.size(); ++row) {
      const DeviceOperation& operation = events_.operations[row];
      if (operation.start_ns <= 0 || operation.end_ns < operation.start_ns) {
        continue;
      }
      const auto [until, nothing_before] = busy_until_ns.emplace(operation.device, operation.start_ns);
      const std::int64_t before_ns = until->second;
      until->second = std::max(until->second, operation.end_ns);
      StepAccount* step = step_of(operation.step);
      if (step == nullptr) {
        continue;
      }
      add_operation(operation, *step);
      if (!first[row]) {
        continue;
      }
      ++step->launches;
      if (operation.api_row == kNoRow) {
        continue;
      }
      const ApiCall& launch = events_.api_calls[static_cast<std::size_t>(operation.api_row)];
      step->launch_to_start_ns += operation.start_ns - launch.start_ns;
      if (!nothing_before) {
        step->host_margin_ns += std::max<std::int64_t>(0, before_ns - launch.start_ns);
      }
    }
  }

  void add_operation(const DeviceOperation& operation, StepAccount& step) {
    const std::int64_t ns = operation.end_ns - operation.start_ns;
    StageCost& stage = stages_[index_of(operation.stage)];
    stage.device_ns += ns;
    ++stage.kernels;
    OperatorCost& cost = kernels_[{operation.name, operation.stage, operation.layer}];
    ++cost.calls;
    cost.total_ns += ns;
    share({ShareKind::operation, GapCause::unknown, operation.stage, operation.layer, operation.name}, 0, 1);
    result_.device_bytes += operation.bytes;
    const bool graph = operation.kind == DeviceOperationKind::graph;
    if (operation.kind != DeviceOperationKind::kernel && !graph) {
      return;
    }
    step.kernel_ns += ns;
    if (operation.graph_id != 0 || graph) {
      step.graph_kernel_ns += ns;
    }
  }

  static std::vector<OperatorCost> by_cost(const std::map<CostKey, OperatorCost>& costs,
                                           std::int64_t OperatorCost::* first) {
    std::vector<OperatorCost> rows;
    for (const auto& [key, cost] : costs) {
      OperatorCost row = cost;
      std::tie(row.name, row.stage, row.layer) = key;
      rows.push_back(row);
    }
    std::stable_sort(rows.begin(), rows.end(),
                     [&](const OperatorCost& a, const OperatorCost& b) { return a.*first > b.*first; });
    return rows;
  }

  void finish() {
    result_.operators = by_cost(operators_, &OperatorCost::self_ns);
    result_.kernels = by_cost(kernels_, &OperatorCost::total_ns);
    for (const auto& [key, sums] : shares_) {
      const auto& [kind, cause, stage, layer, name] = key;
      if (sums.first == 0 && sums.second == 0) {
        continue;
      }
      result_.shares.push_back({.kind = kind,
                                .cause = cause,
                                .stage = stage,
                                .layer = layer,
                                .name = name,
                                .ns = sums.first,
                                .calls = sums.second});
    }
    double bandwidth = 0;
    for (const TraceDevice& device : events_.session.devices) {
      bandwidth = std::max(bandwidth, device.measured_bytes_per_second);
    }
    for (StageCost& stage : stages_) {
      const std::int64_t ns = result_.on_device ? stage.device_ns : stage.host_ns;
      if (stage.expected_bytes > 0 && ns > 0 && bandwidth > 0) {
        stage.bandwidth_share =
            static_cast<double>(stage.expected_bytes) / (static_cast<double>(ns) * 1e-9) / bandwidth;
      }
      const bool empty = stage.host_ns == 0 && stage.device_ns == 0 && stage.operators == 0 && stage.kernels == 0 &&
                         stage.allocations == 0;
      if (!empty) {
        result_.stages.push_back(stage);
      }
    }
  }

  const TraceEvents& events_;
  Attribution result_;
  HostTimes times_;
  std::vector<const Step*> steps_;  // In the order of result_.steps.
  std::unordered_map<std::int32_t, std::size_t> places_;
  std::int32_t last_index_ = kNoStep;
  StepAccount* last_step_ = nullptr;
  std::array<StageCost, kStageNames.size()> stages_{};
  std::map<CostKey, OperatorCost> operators_;
  std::map<CostKey, OperatorCost> kernels_;
  std::map<ShareKey, std::pair<std::int64_t, std::int64_t>> shares_;  // ns and calls
};

}  // namespace

bool has_device(const TraceEvents& events) { return events.session.device != "cpu" || !events.operations.empty(); }

Attribution account(const Trace& trace) { return Account(trace).build(); }

}  // namespace decodelab
