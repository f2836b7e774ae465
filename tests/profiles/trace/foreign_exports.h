// Exports as nsys would make them of a synthetic decode, whose account is known, to be cut and changed in SQL.
#pragma once

#include <numeric>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "profiles/trace/attribution.h"
#include "profiles/trace/view.h"
#include "profiles/write/import_trace.h"
#include "profiles/write/write_trace.h"
#include "tests/profiles/synthetic/synthetic.h"
#include "tests/profiles/write/nsys_fixture.h"
#include "tests/temporary_folder.h"

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
    std::string statements = "PRAGMA synchronous = OFF; BEGIN; DELETE FROM META_DATA_CAPTURE;";
    const auto drop = [&](const std::string& table, const std::vector<const char*>& columns) {
      for (const char* column : columns) {
        statements += "ALTER TABLE " + table + " DROP COLUMN " + column + ";";
      }
    };
    for (const char* table : {"KERNEL", "MEMCPY", "MEMSET"}) {
      drop(std::string("CUPTI_ACTIVITY_KIND_") + table, {"lane", "step", "layer", "stage"});
    }
    drop("CUPTI_ACTIVITY_KIND_RUNTIME", {"kind"});
    drop("NVTX_EVENTS", {"kind", "step", "layer", "stage"});
    sql(statements + "COMMIT;");
  }

  std::filesystem::path path() const { return folder_ / "t.sqlite"; }
  const std::vector<SyntheticStep>& truth() const { return truth_; }
  void sql(const std::string& statements) const { execute(path(), statements); }

  std::int64_t number(const std::string& question) const {
    SQLite::Database database(path().string());
    return database.execAndGet(question).getInt64();
  }

  /// Adds the rows of another export, under names of their own; the other one is not to be read any more.
  void add(const ForeignExport& other) const {
    const std::string shift = " + 1000000";
    std::string statements = "UPDATE StringIds SET id = id" + shift + ";";
    const std::string tables = "CUPTI_ACTIVITY_KIND_";
    statements += "UPDATE " + tables + "KERNEL SET demangledName = demangledName" + shift + ", shortName = shortName" +
                  shift + ";UPDATE NVTX_EVENTS SET textId = textId" + shift + ";";
    for (const char* table : {"MEMCPY", "MEMSET", "RUNTIME", "OVERHEAD"}) {
      statements += "UPDATE " + tables + table + " SET nameId = nameId" + shift + ";";
    }
    other.sql(statements);
    statements = "ATTACH '" + other.path().string() + "' AS other;";
    for (const std::string& table :
         {tables + "KERNEL", tables + "MEMCPY", tables + "MEMSET", tables + "RUNTIME", tables + "SYNCHRONIZATION",
          tables + "OVERHEAD", std::string("NVTX_EVENTS"), std::string("StringIds")}) {
      statements += "INSERT INTO " + table + " SELECT * FROM other." + table + ";";
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
    for (HostSpan& row : events.spans) {
      row.thread += moved;
    }
    for (ApiCall& row : events.api_calls) {
      row.process += moved, row.thread += moved;
    }
    for (Wait& row : events.waits) {
      row.process += moved, row.thread += moved;
    }
    for (Overhead& row : events.overheads) {
      row.thread += moved;
    }
    for (DeviceOperation& row : events.operations) {
      row.process += moved, row.device = device;
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
  for (const OperatorCost& cost : account.kernels) {
    kernels_ns += cost.self_ns;
  }
  EXPECT_EQ(kernels_ns, busy_ns) << "kernels keep the device busy, and nothing else does";
  std::int64_t shares_ns = 0;
  for (const TimeShare& share : account.shares) {
    shares_ns += share.ns;
  }
  EXPECT_EQ(shares_ns, account.steps_ns);
}

}  // namespace decodelab::testing
