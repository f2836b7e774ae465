// A collector that cannot run says why, and collects nothing.
#include "profiles/collect/collector.h"

#include <gtest/gtest.h>

namespace decodelab {
namespace {

TEST(NullCollector, LeavesItsReasonAndNothingElse) {
  NullCollector collector("cupti", "no driver");
  EXPECT_FALSE(collector.probe().available);
  collector.start({});
  collector.begin_step({});
  collector.end_step({});
  collector.stop();
  TraceEvents events;
  collector.drain(events);
  ASSERT_EQ(events.session.collectors.size(), 1U);
  EXPECT_EQ(events.session.collectors[0].name, "cupti");
  EXPECT_EQ(events.session.collectors[0].reason, "no driver");
  EXPECT_FALSE(events.session.collectors[0].on);
  EXPECT_TRUE(events.spans.empty());
}

}  // namespace
}  // namespace decodelab
