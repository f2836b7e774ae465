// Matches the shares of two accounts and rounds what differs so that it adds up.
#include "profiles/trace/difference.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

#include "profiles/trace/names.h"

namespace decodelab {
namespace {

/// How finely the rows of a table tell places apart.
enum class Detail { stages, layers, operations };

struct Sums {
  std::int64_t a_ns = 0;
  std::int64_t b_ns = 0;
  std::int64_t a_calls = 0;
  std::int64_t b_calls = 0;
};

using Key = std::tuple<ShareKind, GapCause, Stage, std::int32_t, std::string>;

Key key_of(const Trace& trace, const TimeShare& share, Detail detail) {
  const bool by_layer = detail != Detail::stages && share.kind == ShareKind::operation;
  const bool by_name = detail == Detail::operations && share.kind != ShareKind::gap;
  const bool named = by_name && share.name < trace.events().strings.size();
  // Time in no stage is told apart by operators at most: its layer means nothing.
  const Stage stage = share.kind == ShareKind::operation ? share.stage : Stage::other;
  std::string name = named ? trace.text(share.name) : "";
  // Foreign traces have kernels in dozens of kinds of one template.
  if (trace.events().session.foreign) {
    name = short_name(name);
  }
  return {share.kind, share.cause, stage, by_layer ? share.layer : kNoLayer, std::move(name)};
}

/// b / b_steps - a / a_steps as a whole number and a rest in units of 1 / (a_steps * b_steps).
struct Quotient {
  std::int64_t whole = 0;
  std::int64_t rest = 0;
};

Quotient difference_of_means(std::int64_t a, std::int64_t a_steps, std::int64_t b, std::int64_t b_steps) {
  const std::int64_t numerator = (b % b_steps) * a_steps - (a % a_steps) * b_steps;
  const std::int64_t denominator = a_steps * b_steps;
  Quotient quotient{.whole = b / b_steps - a / a_steps + numerator / denominator, .rest = numerator % denominator};
  if (quotient.rest < 0) {
    quotient.rest += denominator;
    --quotient.whole;
  }
  return quotient;
}

Change change_of(const Sums& sums, std::int64_t delta_ns) {
  const bool in_a = sums.a_ns > 0 || sums.a_calls > 0;
  const bool in_b = sums.b_ns > 0 || sums.b_calls > 0;
  if (in_a && !in_b) {
    return Change::removed;
  }
  if (in_b && !in_a) {
    return Change::added;
  }
  if (delta_ns > 0) {
    return Change::slower;
  }
  return delta_ns < 0 ? Change::faster : Change::same;
}

class Differ {
 public:
  Differ(const Trace& a, const Attribution& a_account, const Trace& b, const Attribution& b_account)
      : a_(a), a_account_(a_account), b_(b), b_account_(b_account) {
    result_.on_device = a_account.on_device;
    result_.host_time_believable = a_account.host_time_believable && b_account.host_time_believable;
    result_.a_steps = static_cast<std::int64_t>(a_account.steps.size());
    result_.b_steps = static_cast<std::int64_t>(b_account.steps.size());
  }

  TraceDifference run() {
    result_.a_step_ns = per_a(a_account_.steps_ns);
    result_.b_step_ns = per_b(b_account_.steps_ns);
    const std::int64_t denominator = result_.a_steps * result_.b_steps;
    const Quotient whole =
        difference_of_means(a_account_.steps_ns, result_.a_steps, b_account_.steps_ns, result_.b_steps);
    result_.delta_ns = whole.whole + (2 * whole.rest >= denominator ? 1 : 0);
    result_.stages = table(Detail::stages);
    result_.layers = table(Detail::layers);
    result_.operations = table(Detail::operations);
    add_amounts();
    return std::move(result_);
  }

 private:
  double per_a(std::int64_t sum) const { return static_cast<double>(sum) / static_cast<double>(result_.a_steps); }
  double per_b(std::int64_t sum) const { return static_cast<double>(sum) / static_cast<double>(result_.b_steps); }

  std::map<Key, Sums> sums(Detail detail) const {
    std::map<Key, Sums> rows;
    for (const TimeShare& share : a_account_.shares) {
      Sums& row = rows[key_of(a_, share, detail)];
      row.a_ns += share.ns;
      row.a_calls += share.calls;
    }
    for (const TimeShare& share : b_account_.shares) {
      Sums& row = rows[key_of(b_, share, detail)];
      row.b_ns += share.ns;
      row.b_calls += share.calls;
    }
    // The residual has a row of its own even where it is 0.
    if (!result_.on_device) {
      rows[{ShareKind::residual, GapCause::unknown, Stage::other, kNoLayer, ""}];
    }
    return rows;
  }

  std::vector<DifferenceRow> table(Detail detail) const {
    const std::map<Key, Sums> all = sums(detail);
    std::vector<DifferenceRow> rows;
    std::vector<std::int64_t> rests;
    std::int64_t missing_ns = result_.delta_ns;
    for (const auto& [key, sum] : all) {
      const Quotient delta = difference_of_means(sum.a_ns, result_.a_steps, sum.b_ns, result_.b_steps);
      const auto& [kind, cause, stage, layer, name] = key;
      rows.push_back({.kind = kind,
                      .cause = cause,
                      .stage = stage,
                      .layer = layer,
                      .name = name,
                      .a_ns = per_a(sum.a_ns),
                      .b_ns = per_b(sum.b_ns),
                      .delta_ns = delta.whole,
                      .a_calls = per_a(sum.a_calls),
                      .b_calls = per_b(sum.b_calls)});
      rests.push_back(delta.rest);
      missing_ns -= delta.whole;
    }
    round_up_largest(rests, missing_ns, rows);
    std::size_t i = 0;
    for (const auto& [key, sum] : all) {
      rows[i].change = change_of(sum, rows[i].delta_ns);
      ++i;
    }
    std::stable_sort(rows.begin(), rows.end(), [](const DifferenceRow& x, const DifferenceRow& y) {
      return std::abs(x.delta_ns) > std::abs(y.delta_ns);
    });
    return rows;
  }

  /// Adds the `missing_ns`, which are missing because every row was rounded down, to the rows that lost most.
  static void round_up_largest(const std::vector<std::int64_t>& rests, std::int64_t missing_ns,
                               std::vector<DifferenceRow>& rows) {
    std::vector<std::size_t> order(rows.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](std::size_t x, std::size_t y) { return rests[x] > rests[y]; });
    for (std::size_t i = 0; i < order.size() && static_cast<std::int64_t>(i) < missing_ns; ++i) {
      ++rows[order[i]].delta_ns;
    }
  }

  template <typename Row>
  void add_amount(const char* name, std::vector<Row> Attribution::* rows, std::int64_t Row::* count) {
    std::int64_t a = 0;
    std::int64_t b = 0;
    for (const Row& row : a_account_.*rows) {
      a += row.*count;
    }
    for (const Row& row : b_account_.*rows) {
      b += row.*count;
    }
    result_.amounts.push_back({.name = name, .a = per_a(a), .b = per_b(b)});
  }

  void add_amounts() {
    add_amount("launches", &Attribution::steps, &StepAccount::launches);
    add_amount("operators", &Attribution::steps, &StepAccount::operators);
    add_amount("allocations", &Attribution::stages, &StageCost::allocations);
    add_amount("allocated_bytes", &Attribution::stages, &StageCost::allocated_bytes);
    add_amount("modelled_bytes", &Attribution::stages, &StageCost::expected_bytes);
    add_amount("kernel_ns_in_graphs", &Attribution::steps, &StepAccount::graph_kernel_ns);
    result_.amounts.push_back(
        {.name = "device_bytes", .a = per_a(a_account_.device_bytes), .b = per_b(b_account_.device_bytes)});
  }

  const Trace& a_;
  const Attribution& a_account_;
  const Trace& b_;
  const Attribution& b_account_;
  TraceDifference result_;
};

std::string why_not_comparable(const Attribution& a, const Attribution& b) {
  if (!a.believable) {
    return "the first trace cannot be believed: " + a.refusal;
  }
  if (!b.believable) {
    return "the second trace cannot be believed: " + b.refusal;
  }
  if (a.steps.empty() || b.steps.empty()) {
    return "a trace without steps has no mean step to compare";
  }
  if (a.on_device != b.on_device) {
    return "one trace is of a device and the other of a CPU: their steps are not made of the same parts";
  }
  return "";
}

}  // namespace

const char* to_string(Change change) {
  switch (change) {
    case Change::same: return "same";
    case Change::removed: return "removed";
    case Change::added: return "added";
    case Change::slower: return "slower";
    case Change::faster: return "faster";
  }
  return "unknown";
}

TraceDifference difference(const Trace& a, const Attribution& a_account, const Trace& b, const Attribution& b_account) {
  TraceDifference refused{.refusal = why_not_comparable(a_account, b_account)};
  if (!refused.refusal.empty()) {
    return refused;
  }
  return Differ(a, a_account, b, b_account).run();
}

}  // namespace decodelab
