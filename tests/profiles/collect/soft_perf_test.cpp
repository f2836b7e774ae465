// Software events around steps, where the system gives them, and the reason where it does not.
#include "profiles/collect/soft_perf.h"

#include <map>

#include <gtest/gtest.h>
#include <sys/mman.h>

namespace decodelab {
namespace {

TEST(SoftPerf, CountsThePagesThatAStepTouches) {
  const auto collector = make_soft_perf_collector();
  collector->start({});
  constexpr std::size_t kPages = 64;
  constexpr std::size_t kPageBytes = 4096;
  std::vector<Step> steps{{.index = 0}, {.index = 1}};
  for (const Step& step : steps) {
    collector->begin_step(step);
    if (step.index == 1) {
      void* const memory =
          mmap(nullptr, kPages * kPageBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      ASSERT_NE(memory, MAP_FAILED);
      madvise(memory, kPages * kPageBytes, MADV_NOHUGEPAGE);
      for (std::size_t page = 0; page < kPages; ++page) {
        static_cast<volatile char*>(memory)[page * kPageBytes] = 1;
      }
      munmap(memory, kPages * kPageBytes);
    }
    collector->end_step(step);
  }
  collector->stop();
  TraceEvents events;
  collector->drain(events);
  ASSERT_EQ(events.session.collectors.size(), 1U);
  if (!events.session.collectors[0].on) {
    EXPECT_FALSE(events.session.collectors[0].reason.empty());
    EXPECT_TRUE(events.counters.empty()) << "an absent counter has no points";
    GTEST_SKIP() << events.session.collectors[0].reason;
  }
  std::map<std::string, std::vector<double>> series;
  for (const CounterPoint& point : events.counters) {
    series[events.strings.text(point.series)].push_back(point.value);
  }
  for (const auto& [name, values] : series) {
    EXPECT_EQ(values.size(), steps.size()) << name;
  }
  ASSERT_TRUE(series.contains("page_faults"));
  EXPECT_GE(series["page_faults"][1], static_cast<double>(kPages));
  EXPECT_LT(series["page_faults"][0], static_cast<double>(kPages));
}

}  // namespace
}  // namespace decodelab
