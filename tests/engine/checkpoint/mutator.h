// Damages files the way disks, networks and enemies do; the same damage in every run.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "engine/kernels/philox.h"

namespace decodelab {

/// How long a fuzz test goes on: DECODELAB_FUZZ_SECONDS where that is set, else DECODELAB_FUZZ_ITERATIONS rounds, else
/// 1,000.
class FuzzRounds {
 public:
  FuzzRounds() {
    if (const char* seconds = std::getenv("DECODELAB_FUZZ_SECONDS")) {
      end_ = Clock::now() + std::chrono::seconds(std::atoi(seconds));
    } else if (const char* iterations = std::getenv("DECODELAB_FUZZ_ITERATIONS")) {
      limit_ = std::atoi(iterations);
    }
  }

  /// Returns the number of the next round, from 0 on, or nothing after the last one. The first 1,000 are run however
  /// long they take.
  std::optional<int> next() {
    const bool over = end_ ? done_ >= kFewest && Clock::now() >= *end_ : done_ >= limit_;
    if (over) {
      return std::nullopt;
    }
    return done_++;
  }
  int done() const { return done_; }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr int kFewest = 1000;

  int done_ = 0;
  int limit_ = kFewest;
  std::optional<Clock::time_point> end_;
};

/// One to four changes to a copy of a file, drawn from the number of the iteration.
class Mutator {
 public:
  explicit Mutator(std::uint64_t iteration) : iteration_(iteration) {}

  /// A number below `limit`, which is at least 1.
  std::size_t below(std::size_t limit) {
    const PhiloxWords words = philox4x32(philox_counter(draws_++, 0), iteration_);
    return static_cast<std::size_t>((std::uint64_t{words.word[0]} << 32 | words.word[1]) % limit);
  }

  std::string mutate(std::string file) {
    const std::size_t changes = 1 + below(1 + below(4));  // Mostly one: more are seldom read.
    for (std::size_t i = 0; i < changes; ++i) {
      change(file);
    }
    return file;
  }

 private:
  void change(std::string& file) {
    const std::size_t at = below(file.size() + 1);
    const std::size_t length = std::min(file.size() - at, 1 + below(16));
    switch (below(7)) {
      case 0: flip_bit(file); break;
      case 1: file.insert(at, 1 + below(4), static_cast<char>(below(256))); break;
      case 2: file.erase(at, length); break;
      case 3: file.resize(below(8) == 0 ? at : file.size() - std::min(file.size(), below(4))); break;
      case 4:
        file.insert(below(file.size() + 1), file.substr(at, length));  // A splice.
        break;
      default: replace_number(file);
    }
  }

  void flip_bit(std::string& file) {
    if (!file.empty()) {
      const std::size_t at = below(file.size());
      file[at] = static_cast<char>(file[at] ^ (1 << below(8)));
    }
  }

  // Puts an extreme value in the place of a run of digits, the first one at or after a random position.
  void replace_number(std::string& file) {
    static constexpr std::array<std::string_view, 18> kExtremes{"0",
                                                                "-0",
                                                                "-1",
                                                                "1",
                                                                "2",
                                                                "4",
                                                                "255",
                                                                "1e308",
                                                                "1e999",
                                                                "0.5",
                                                                "2147483648",
                                                                "4294967296",
                                                                "9223372036854775807",
                                                                "9223372036854775808",
                                                                "18446744073709551615",
                                                                "18446744073709551616",
                                                                "null",
                                                                "[0]"};
    constexpr std::string_view kDigits = "0123456789";
    const std::size_t begin = file.find_first_of(kDigits, below(file.size() + 1));
    if (begin != std::string::npos) {
      const std::size_t end = std::min(file.find_first_not_of(kDigits, begin), file.size());
      file.replace(begin, end - begin, kExtremes[below(kExtremes.size())]);
    }
  }

  std::uint64_t iteration_;
  std::uint64_t draws_ = 0;
};

/// Runs `read` on damaged copies of `file`: each must pass or throw std::invalid_argument, and both must happen, or
/// nothing was tested.
template <typename Read>
void fuzz(const std::string& file, Read read) {
  FuzzRounds rounds;
  int accepted = 0;
  int refused = 0;
  while (const std::optional<int> round = rounds.next()) {
    const int i = *round;
    Mutator mutator(static_cast<std::uint64_t>(i));
    try {
      read(file, mutator);
      ++accepted;
    } catch (const std::invalid_argument& error) {
      ++refused;
      ASSERT_NE(std::string_view(error.what()), "") << "iteration " << i;
    } catch (const std::exception& error) {
      FAIL() << "iteration " << i << ": expected std::invalid_argument, got " << error.what();
    } catch (...) {
      FAIL() << "iteration " << i << ": expected std::invalid_argument, got something else";
    }
  }
  if (rounds.done() >= 1000) {
    EXPECT_GT(accepted, rounds.done() / 1000);
    EXPECT_GT(refused, rounds.done() / 1000);
  }
}

}  // namespace decodelab
