// Runs made-up gates through the very code that decides real ones.
#include "reports/statistics/operating_characteristics.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <random>

namespace decodelab {
namespace {

constexpr double kEffects[] = {0, 0.5, 1, 2};  // in margins

// Normal deviates that are the same with every standard library (Box and Muller 1958, doi:10.1214/aoms/1177706645).
class Noise {
 public:
  explicit Noise(std::uint64_t seed) : generator_(seed) {}
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
    if (verdict == LookVerdict::slower) return LookVerdict::slower;
    all_within = all_within && verdict == LookVerdict::within;
  }
  return all_within ? LookVerdict::within : LookVerdict::undecided;
}

}  // namespace

std::vector<OperatingPoint> operating_characteristics(const SimulatedGates& simulated, const GatePolicy& policy) {
  Noise noise(simulated.seed);
  const double spread = std::log1p(simulated.block_sd);
  const double margin = std::log1p(simulated.margin);
  const std::vector<LookMargin> margins(simulated.cells, LookMargin{margin, margin});
  std::vector<OperatingPoint> points;
  for (const double effect : kEffects) {
    OperatingPoint point{.effect = effect * simulated.margin};
    for (int gate = 0; gate < simulated.gates; ++gate) {
      std::vector<std::vector<double>> contrasts(simulated.cells);
      LookVerdict verdict = LookVerdict::undecided;
      for (const std::size_t look : policy.looks.looks) {
        for (std::size_t cell = 0; cell < contrasts.size(); ++cell) {
          const double center = cell == 0 ? std::log1p(point.effect) : 0;
          while (contrasts[cell].size() < look) contrasts[cell].push_back(center + spread * noise());
        }
        verdict = worst_verdict(look_verdicts(contrasts, margins, policy.looks));
        if (verdict != LookVerdict::undecided) break;
      }
      point.gate_blocks += static_cast<double>(contrasts.front().size());
      double& counted = verdict == LookVerdict::slower   ? point.fail
                        : verdict == LookVerdict::within ? point.pass
                                                         : point.inconclusive;
      ++counted;
    }
    for (double* sum : {&point.pass, &point.fail, &point.inconclusive, &point.gate_blocks}) *sum /= simulated.gates;
    points.push_back(point);
  }
  return points;
}

}  // namespace decodelab
