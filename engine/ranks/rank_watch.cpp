// A thread that sleeps between looks.
#include "engine/ranks/rank_watch.h"

#include <stdexcept>
#include <utility>

namespace decodelab {

RankWatch::RankWatch(std::function<void()> look, std::function<void(const std::string& why)> failed)
    : look_(std::move(look)), failed_(std::move(failed)), thread_([this] { run(); }) {}

RankWatch::~RankWatch() {
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  end_.notify_one();
  thread_.join();
}

void RankWatch::run() {
  std::unique_lock lock(mutex_);
  while (!end_.wait_for(lock, kBetweenLooks, [this] { return ended_; })) {
    lock.unlock();
    try {
      look_();
    } catch (const std::exception& error) {
      failed_(error.what());
      return;
    }
    lock.lock();
  }
}

}  // namespace decodelab
