// I16: the parts of each step add up to its span, as integers.
#include <numeric>
#include <unordered_map>

#include <fmt/format.h>

#include "profiles/trace/checks/check.h"

namespace decodelab {

CheckResult check_conservation(const CheckInput& input) {
  const Attribution& account = input.account;
  if (account.steps.empty()) {
    return not_applicable("no step counts");
  }
  std::unordered_map<std::int32_t, std::int64_t> listed_ns;
  for (const Gap& gap : account.gaps) {
    listed_ns[gap.step] += gap.end_ns - gap.start_ns;
  }
  NamedRows rows;
  for (const StepAccount& step : account.steps) {
    const std::int64_t gaps_ns = std::accumulate(step.gap_ns.begin(), step.gap_ns.end(), std::int64_t{0});
    const std::int64_t stages_ns =
        std::accumulate(step.host_stage_ns.begin(), step.host_stage_ns.end(), step.residual_ns);
    const std::int64_t device_off_ns = account.on_device ? step.busy_ns + gaps_ns - step.span_ns : 0;
    const std::int64_t listed_off_ns = account.on_device ? listed_ns[step.index] - gaps_ns : 0;
    const std::int64_t host_off_ns = stages_ns - step.span_ns;
    if (device_off_ns == 0 && listed_off_ns == 0 && host_off_ns == 0 && step.residual_ns >= 0) {
      continue;
    }
    rows.add([&] {
      return fmt::format("step {}: device {} ns, gaps {} ns, host {} ns off", step.index, device_off_ns, listed_off_ns,
                         host_off_ns);
    });
  }
  std::int64_t shares_ns = 0;
  for (const TimeShare& share : account.shares) {
    shares_ns += share.ns;
  }
  if (shares_ns != account.steps_ns) {
    rows.add([&] { return fmt::format("shares: {} ns off", shares_ns - account.steps_ns); });
  }
  CheckResult result{.value = static_cast<double>(rows.count())};
  result.evidence = fmt::format("{} add up to {}", counted(static_cast<std::int64_t>(account.steps.size()), "step"),
                                time_text(account.steps_ns));
  if (rows.count() > 0) {
    result.status = CheckStatus::failed;
    result.evidence = rows.text();
  }
  return result;
}

}  // namespace decodelab
