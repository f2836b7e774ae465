// What the variants share that guess tokens.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "variants/registry.h"

namespace decodelab {

/// The most guesses of a round that an arm may ask for.
inline constexpr std::int64_t kMostGuesses = 64;

/// What a proposer reads from a file: once for all sessions of an engine, when the first of them is made.
template <typename Value>
class LoadedOnce {
 public:
  /// Calls `load()`, which returns a Value, the first time, and returns the same object ever after.
  template <typename Load>
  std::shared_ptr<const Value> get(Load&& load) {
    const std::lock_guard lock(mutex_);
    if (value_ == nullptr) {
      value_ = std::make_shared<const Value>(load());
    }
    return value_;
  }

 private:
  std::mutex mutex_;
  std::shared_ptr<const Value> value_;
};

/// Returns the parameter `tokens`, the most guesses of a row in a round.
ParameterSpec guesses_parameter(std::int64_t default_value);

/// Returns what shows that guesses were checked, in a step that goes on by several tokens; `always`: there is a guess
/// wherever one may be.
std::vector<Expectation> expected_rounds(const CountedSteps& counted, bool always);

/// Returns why the draft that the arm's plan names cannot guess there; empty if it can.
std::string reason_against_draft(const RunsOn& where);

/// Returns why the proposer `name` cannot be combined with what else is bound; empty if it can.
std::string proposer_conflict(const std::string& name, const EnginePlan& plan);

}  // namespace decodelab
