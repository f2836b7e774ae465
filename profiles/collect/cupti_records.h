// Turns buffers of CUPTI's activity records into rows of a trace.
#pragma once

#include "profiles/collect/cupti_functions.h"
#include "profiles/trace/events.h"

#ifdef DECODELAB_HAS_CUPTI

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace decodelab {

/// Packs the layer and stage of the span that launched something into the id of an external correlation: layer + 1 in
/// the upper half, stage in the lower one.
std::uint64_t correlation_of(std::int32_t layer, Stage stage);

/// Walks buffers with CUPTI's own cuptiActivityGetNextRecord, which needs no driver.
class CuptiRecords final {
 public:
  /// Appends rows to `events`, and counts in its session what could not become a row.
  CuptiRecords(const CuptiFunctions& functions, TraceEvents& events, std::int64_t process)
      : cupti_(functions), events_(events), process_(process) {}

  /// Adds all records of one buffer. A record whose start or end is 0 is counted and left out; one that ends before it
  /// starts becomes a row, so that the verifier sees it. Where CUPTI cannot walk a buffer to its end, the rest counts
  /// as one dropped record.
  void add(std::uint8_t* buffer, std::size_t valid_bytes);

  /// Fills the threads of waits and the layers and stages of operations, both by correlation. Call it once, after the
  /// last buffer.
  void finish();

  std::int64_t records() const { return records_; }

 private:
  void add(const CUpti_Activity& record);
  /// Returns an operation with the fields that kernels, copies and sets have in common.
  template <typename Record>
  DeviceOperation operation(const Record& record, DeviceOperationKind kind, StringId name) const;
  void add_kernel(const CUpti_ActivityKernel10& record);
  template <typename Record>
  void add_copy(const Record& record, DeviceOperationKind kind);
  void add_graph(const CUpti_ActivityGraphTrace2& record);
  void add_call(const CUpti_ActivityAPI& record, bool driver);
  void add_wait(const CUpti_ActivitySynchronization2& record);
  void add_overhead(const CUpti_ActivityOverhead3& record);
  bool has_times(std::uint64_t start, std::uint64_t end);
  StringId kernel_name(const char* mangled);

  struct Call {
    StringId name = 0;
    ApiKind kind = ApiKind::other;
  };
  const Call& call(bool driver, std::uint32_t callback_id);

  const CuptiFunctions& cupti_;
  TraceEvents& events_;
  std::int64_t process_;
  std::int64_t records_ = 0;
  std::unordered_map<const char*, StringId> kernel_names_;  ///< CUPTI keeps one pointer for each name.
  std::unordered_map<std::uint64_t, Call> calls_;
  std::unordered_map<std::uint32_t, std::uint64_t> correlations_;  ///< From CUPTI's id to that of correlation_of().
};

}  // namespace decodelab

#endif
