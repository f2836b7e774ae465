// CUPTI's activity records of a device, asked for in the order of calls in which CUPTI gives all of them.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "profiles/collect/collector.h"
#include "profiles/collect/device_collectors.h"

namespace decodelab {

struct CuptiFunctions;

/// The one subscription of this process: the engine's place when nodes of graphs are made, and a collector of records.
///
/// Made before the first graph is captured, on the thread that runs the steps, whose listener it replaces while it
/// lives (and goes on telling). Never more than one: CUPTI has one subscriber.
class CuptiSession final {
 public:
  /// Subscribes. Where that fails, why_not() says why and nothing else is done.
  explicit CuptiSession(const CuptiFunctions& functions);
  ~CuptiSession();
  CuptiSession(const CuptiSession&) = delete;
  CuptiSession& operator=(const CuptiSession&) = delete;

  /// Empty where it is subscribed.
  const std::string& why_not() const;

  /// Must not outlive this.
  std::unique_ptr<Collector> collector();

  /// Launches that callbacks counted since the collector was started; empty while none runs.
  std::optional<LaunchCounts> launches() const;

  struct Impl;

 private:
  std::unique_ptr<Impl> impl_;
};

/// With the functions of the CUPTI that is loaded. Null, with the reason, where there is none, or where subscribing
/// failed.
std::unique_ptr<CuptiSession> open_cupti(std::string& reason);

}  // namespace decodelab
