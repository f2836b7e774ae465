// Looks after other ranks while the host waits for a device, which waits for them.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

namespace decodelab {

/// Calls `look` now and then in a thread of its own, for as long as it lives. Once that throws, `failed` is called with
/// what it says, and nothing more.
class RankWatch final {
 public:
  static constexpr std::chrono::milliseconds kBetweenLooks{20};

  RankWatch(std::function<void()> look, std::function<void(const std::string& why)> failed);
  ~RankWatch();
  RankWatch(const RankWatch&) = delete;
  RankWatch& operator=(const RankWatch&) = delete;

 private:
  void run();

  std::function<void()> look_;
  std::function<void(const std::string& why)> failed_;
  std::mutex mutex_{};
  std::condition_variable end_{};
  bool ended_ = false;
  std::thread thread_;  ///< Last: it begins when all else is there.
};

}  // namespace decodelab
