// Runs made-up gates through the very code that decides real ones.
#include "tests/reports/statistics/operating_characteristics.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <random>

namespace decodelab {
namespace {

constexpr double kEffects[] = {0, 0.5, 1, 2};  // in margins

// Normal deviates that are the same with every standard library (Box and Muller 1958, doi:10.1214/aoms/1177706645).
class LaunchNoise {
 public:
  explicit LaunchNoise(std::uint64_t seed) : generator_(seed) {}
  double operator()() {
    const double radius = (static_cast<double>(generator_() >> 11) + 1) * 0x1p-53;
    const double angle = static_cast<double>(generator_() >> 11) * 0x1p-53;
    return std::sqrt(-2 * std::log(radius)) * std::cos(2 * std::numbers::pi * angle);
  }

 private:
  std::mt19937_64 generator_;
};

LookVerdict worst_verdict(const std::vector<LookVerdict>& verdicts) {
  bool all_within = true;
  for (const LookVerdict verdict : verdicts) {
    if (verdict == LookVerdict::slower) {
      return LookVerdict::slower;
    }
    all_within = all_within && verdict == LookVerdict::within;
  }
  return all_within ? LookVerdict::within : LookVerdict::undecided;
}

// One made-up gate: its contrasts grow with the gate blocks that the looks and their fresh blocks ask for.
class SimulatedGate {
 public:
  SimulatedGate(const SimulatedGates& simulated, const GatePolicy& policy, double effect, LaunchNoise& noise)
      : spread_(std::log1p(simulated.block_sd)),
        policy_(policy),
        margins_(simulated.cells, LookMargin{std::log1p(simulated.margin), std::log1p(simulated.margin)}),
        effect_(std::log1p(effect)),
        noise_(noise),
        contrasts_(simulated.cells) {}

  LookVerdict run() {
    for (const std::size_t look : policy_.looks.looks) {
      grow(look);
      const auto verdicts = look_verdicts(values(0, look), margins_, policy_.looks);
      const LookVerdict verdict = worst_verdict(verdicts);
      if (verdict == LookVerdict::within || (verdict == LookVerdict::slower && confirmed(verdicts, look))) {
        return verdict;
      }
    }
    return LookVerdict::undecided;
  }
  std::size_t gate_blocks() const { return contrasts_.front().size(); }

 private:
  bool confirmed(const std::vector<LookVerdict>& verdicts, std::size_t look) {
    if (policy_.fresh_blocks == 0) {
      return true;
    }
    SecondLook second;
    while (second.evidence == Evidence::awaited) {
      grow(look + second.values);
      const auto fresh = values(look, second.values);
      std::vector<std::vector<double>> suspects;
      for (std::size_t cell = 0; cell < verdicts.size(); ++cell) {
        if (verdicts[cell] == LookVerdict::slower) {
          suspects.push_back(fresh[cell]);
        }
      }
      const std::vector<LookMargin> margins(suspects.size(), margins_.front());
      second = second_look(suspects, margins, policy_.looks, policy_.fresh_blocks);
    }
    return second.evidence == Evidence::borne_out;
  }

  void grow(std::size_t gate_blocks) {
    for (std::size_t cell = 0; cell < contrasts_.size(); ++cell) {
      const double center = cell == 0 ? effect_ : 0;
      while (contrasts_[cell].size() < gate_blocks) {
        contrasts_[cell].push_back(center + spread_ * noise_());
      }
    }
  }

  std::vector<std::vector<double>> values(std::size_t first, std::size_t count) const {
    std::vector<std::vector<double>> slices;
    for (const std::vector<double>& all : contrasts_) {
      const auto begin = all.begin() + static_cast<std::ptrdiff_t>(first);
      slices.emplace_back(begin, begin + static_cast<std::ptrdiff_t>(count));
    }
    return slices;
  }

  double spread_;
  const GatePolicy& policy_;
  std::vector<LookMargin> margins_;
  double effect_;
  LaunchNoise& noise_;
  std::vector<std::vector<double>> contrasts_;
};

}  // namespace

std::vector<OperatingPoint> operating_characteristics(const SimulatedGates& simulated, const GatePolicy& policy) {
  LaunchNoise noise(simulated.seed);
  std::vector<OperatingPoint> points;
  for (const double effect : kEffects) {
    OperatingPoint point{.effect = effect * simulated.margin};
    for (int number = 0; number < simulated.gates; ++number) {
      SimulatedGate gate(simulated, policy, point.effect, noise);
      const LookVerdict verdict = gate.run();
      point.gate_blocks += static_cast<double>(gate.gate_blocks());
      double& counted = verdict == LookVerdict::slower   ? point.fail
                        : verdict == LookVerdict::within ? point.pass
                                                         : point.inconclusive;
      ++counted;
    }
    for (double* sum : {&point.pass, &point.fail, &point.inconclusive, &point.gate_blocks}) {
      *sum /= simulated.gates;
    }
    points.push_back(point);
  }
  return points;
}

}  // namespace decodelab
