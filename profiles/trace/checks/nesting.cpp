// I6: spans of a thread lie inside or beside one another, and none was open when collection stopped.
#include <unordered_map>

#include <fmt/format.h>

#include "profiles/trace/checks/check.h"

namespace decodelab {

CheckResult check_nesting(const CheckInput& input) {
  const TraceEvents& events = input.events();
  if (events.spans.empty()) {
    return not_applicable("no host span was recorded");
  }
  std::unordered_map<std::int64_t, std::vector<const HostSpan*>> stacks;
  NamedRows open;
  NamedRows crossed;
  for (const HostSpan& span : events.spans) {
    if (span.end_ns == 0 && span.start_ns > 0) {
      open.add([&] { return name_of(input.trace, span.name); });
      continue;
    }
    if (span.start_ns <= 0 || span.end_ns < span.start_ns) {
      continue;  // Check I2 reports it.
    }
    std::vector<const HostSpan*>& stack = stacks[span.thread];
    while (!stack.empty() && stack.back()->end_ns <= span.start_ns) {
      stack.pop_back();
    }
    if (!stack.empty() && span.end_ns > stack.back()->end_ns) {
      crossed.add([&] {
        return fmt::format("{} ends after {}, which it began in", name_of(input.trace, span.name),
                           name_of(input.trace, stack.back()->name));
      });
      continue;
    }
    stack.push_back(&span);
  }
  CheckResult result{.value = static_cast<double>(open.count() + crossed.count())};
  result.evidence = counted(static_cast<std::int64_t>(events.spans.size()), "span") + ", all nested and closed";
  if (result.value > 0) {
    // Ranges of a foreign trace may come from several libraries, which do not nest their ranges in one another's.
    result.status = events.session.foreign && open.count() == 0 ? CheckStatus::warned : CheckStatus::failed;
    result.evidence.clear();
    if (open.count() > 0) {
      result.evidence = counted(open.count(), "span") + " still open: " + open.text();
    }
    if (crossed.count() > 0) {
      result.evidence += (open.count() > 0 ? "; " : "") + counted(crossed.count(), "crossing") + ": " + crossed.text();
    }
  }
  return result;
}

}  // namespace decodelab
