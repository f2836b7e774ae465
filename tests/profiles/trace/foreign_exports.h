// Exports as nsys would make them of a synthetic decode, whose account is known, to be cut and changed in SQL.
#pragma once

#include "profiles/trace/attribution.h"
#include "profiles/trace/view.h"
#include "profiles/write/import_trace.h"
#include "profiles/write/write_trace.h"
#include "tests/profiles/synthetic/synthetic.h"
#include "tests/profiles/write/nsys_fixture.h"
#include "tests/temporary_folder.h"

#include <numeric>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace decodelab::testing {

/// Everything that a view of a file comes to.
struct Seen {
  Trace trace;
  TraceQuality quality;
  Attribution account;
};

/// A file whose tables have nothing of ours: no session, and none of the columns that nsys does not write.
class ForeignExport {
 public:
  explicit ForeignExport(const SyntheticShape& shape, std::int64_t process = 0, std::int32_t device = 0) {
    SyntheticTrace made = synthetic_trace(shape);
    truth_ = made.truth;
    move_to(made.events, process, device);
    const Trace trace = seal(std::move(made.events));
    write_trace(trace, verify(trace), path());
    sql("DELETE FROM META_DATA_CAPTURE");
    for (const char* table : {"KERNEL", "MEMCPY", "MEMSET"}) drop(std::string("CUPTI_ACTIVITY_KIND_") + table);
    sql("ALTER TABLE CUPTI_ACTIVITY_KIND_RUNTIME DROP COLUMN kind");
    for (const char* column : {"kind", "step", "layer", "stage"}) {
      sql(std::string("ALTER TABLE NVTX_EVENTS DROP COLUMN ") + column);
    }
  }

  std::filesystem::path path() const { return folder_ / "t.sqlite"; }
  const std::vector<SyntheticStep>& truth() const { return truth_; }
  void sql(const std::string& statements) const { execute(path(), statements); }

  std::int64_t number(const std::string& question) const {
    SQLite::Database database(path().string());
    return database.execAndGet(question).getInt64();
  }

  /// Adds the rows of another export; names are those of this one, as both are of the same decode.
  void add(const ForeignExport& other) const {
    std::string statements = "ATTACH '" + other.path().string() + "' AS other;";
    for (const char* table : {"CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_MEMCPY", "CUPTI_ACTIVITY_KIND_MEMSET",
                              "CUPTI_ACTIVITY_KIND_RUNTIME", "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION",
                              "CUPTI_ACTIVITY_KIND_OVERHEAD", "NVTX_EVENTS"}) {
      statements += std::string("INSERT INTO ") + table + " SELECT * FROM other." + table + ";";
    }
    sql(statements);
  }

  std::vector<TraceView> views(const ViewRequest& request = {}) const {
    return views_of(import_trace(path()), request);
  }

  Seen see(const ViewRequest& request = {}, std::size_t place = 0) const {
    const TraceEvents events = import_trace(path());
    Seen seen{
        .trace = seal(view_events(events, views_of(events, request).at(place), request)), .quality = {}, .account = {}};
    seen.quality = verify(seen.trace);
    seen.account = attribute(seen.trace, seen.quality);
    return seen;
  }

 private:
  static void move_to(TraceEvents& events, std::int64_t process, std::int32_t device) {
    const std::int64_t moved = process == 0 ? 0 : process - events.session.process;
    events.session.process += moved;
    events.session.main_thread += moved;
    for (HostSpan& row : events.spans) row.thread += moved;
    for (ApiCall& row : events.api_calls) row.process += moved, row.thread += moved;
    for (Wait& row : events.waits) row.process += moved, row.thread += moved;
    for (Overhead& row : events.overheads) row.thread += moved;
    for (DeviceOperation& row : events.operations) row.process += moved, row.device = device;
  }

  void drop(const std::string& table) const {
    for (const char* column : {"lane", "step", "layer", "stage"}) {
      sql("ALTER TABLE " + table + " DROP COLUMN " + column);
    }
  }

  TemporaryFolder folder_;
  std::vector<SyntheticStep> truth_;
};

/// Every nanosecond of what is claimed is in one place.
inline void expect_conserved(const Attribution& account) {
  ASSERT_TRUE(account.believable) << account.refusal;
  std::int64_t busy_ns = 0;
  std::int64_t spans_ns = 0;
  for (const StepAccount& step : account.steps) {
    EXPECT_EQ(std::accumulate(step.gap_ns.begin(), step.gap_ns.end(), step.busy_ns), step.span_ns);
    busy_ns += step.busy_ns;
    spans_ns += step.span_ns;
  }
  EXPECT_EQ(spans_ns, account.steps_ns);
  std::int64_t kernels_ns = 0;
  for (const OperatorCost& cost : account.kernels) kernels_ns += cost.self_ns;
  EXPECT_EQ(kernels_ns, busy_ns) << "kernels keep the device busy, and nothing else does";
  std::int64_t shares_ns = 0;
  for (const TimeShare& share : account.shares) shares_ns += share.ns;
  EXPECT_EQ(shares_ns, account.steps_ns);
}

}  // namespace decodelab::testing
