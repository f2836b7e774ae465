// Collects CUPTI's activity records of a device, with calls in the order in which CUPTI gives all of them.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "profiles/collect/collector.h"
#include "profiles/collect/device_collectors.h"

namespace decodelab {

struct CuptiFunctions;

/// Holds the one CUPTI subscription of this process. Records the layer and stage of the engine in which each node of a
/// graph is made, and makes a collector of activity records.
///
/// Construct it before the first graph is captured, on the thread that runs the steps. While it lives it is the
/// listener of that thread, and it passes every call on to the listener before it. There is never more than one: CUPTI
/// has one subscriber.
class CuptiSession final {
 public:
  /// Subscribes. Where that fails, why_not() says why and nothing else is done.
  explicit CuptiSession(const CuptiFunctions& functions);
  ~CuptiSession();
  CuptiSession(const CuptiSession&) = delete;
  CuptiSession& operator=(const CuptiSession&) = delete;

  /// Returns why subscribing failed; empty where it succeeded.
  const std::string& why_not() const;

  /// Returns a collector of records, which must not outlive this session.
  std::unique_ptr<Collector> collector();

  /// Returns the launches that callbacks counted since the collector was started; empty while none runs.
  std::optional<LaunchCounts> launches() const;

  struct Impl;

 private:
  std::unique_ptr<Impl> impl_;
};

/// Opens a session with the functions of the CUPTI that is loaded. Returns null, with the reason, where there is none,
/// or where subscribing failed.
std::unique_ptr<CuptiSession> open_cupti(std::string& reason);

}  // namespace decodelab
