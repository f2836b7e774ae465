// Launches on arms that are made up, for the tests of what a launch does.
#pragma once

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <limits>
#include <map>
#include <stdexcept>
#include <thread>

#include <gtest/gtest.h>

#include "bench/measure/launch_runner.h"
#include "tests/temporary_folder.h"

namespace decodelab::testing {

/// What a made-up arm does.
struct Behaviour {
  std::int64_t step_ns = 1'000'000;
  std::int64_t bytes = 1000;        ///< For a batch of 1.
  std::int64_t token = 3;           ///< What it chooses in every step.
  std::vector<float> logits;        ///< Of every row, where it shows any.
  std::vector<float> fed_logits{};  ///< Of every row where it is fed the reference's tokens; none: as ever.
  double logit_bound = 0;           ///< Of an arm that is lossy on purpose.
  bool throws_in_outputs = false;
  int throws_in_visit = -1;  ///< Number of the visit that throws.
  bool times_slices = true;
  int rounds = 0;  ///< Of a step of a continuation; 0: it is timed whole.
  std::chrono::milliseconds start{0};
  std::chrono::milliseconds outputs{0};
  bool cannot_be_made = false;
  std::int64_t filling_ns = 0;       ///< What it says that it spent on each fill.
  Counters counters;                 ///< Of its steps.
  std::vector<std::string> flags{};  ///< That its visits mark the row with.
};

struct Log {
  std::vector<std::string> outputs;  ///< "arm bN" for each call
  std::vector<std::string> visits;
  std::vector<std::string> slices;  ///< "arm steps" for each slice, "arm round" for each round
};

class FakeWorker final : public Worker {
 public:
  FakeWorker(std::string label, Behaviour behaviour, Log& log)
      : label_(std::move(label)), behaviour_(std::move(behaviour)), log_(log) {}

  void start() override { std::this_thread::sleep_for(behaviour_.start); }
  std::int64_t bytes_needed(const CellRecord& cell) const override { return behaviour_.bytes * cell.batch; }
  OutputTrace outputs(const CellRecord& cell, std::int64_t steps, const OutputTrace* fed) override {
    log_.outputs.push_back(label_ + " b" + std::to_string(cell.batch));
    side_.filling_ns += behaviour_.filling_ns;
    std::this_thread::sleep_for(behaviour_.outputs);
    if (behaviour_.throws_in_outputs) {
      throw std::runtime_error("this arm is broken\nand this line is a stack trace");
    }
    OutputTrace trace{.first = {}, .tokens = {}, .logits = {}, .batch = cell.batch, .vocabulary = 4};
    for (std::int64_t step = 0; step < steps; ++step) {
      trace.tokens.emplace_back(static_cast<std::size_t>(cell.batch), behaviour_.token);
      const bool other = fed != nullptr && !behaviour_.fed_logits.empty();
      if (const std::vector<float>& row = other ? behaviour_.fed_logits : behaviour_.logits; !row.empty()) {
        trace.logits.emplace_back();
        for (std::int64_t copies = 0; copies < cell.batch; ++copies) {
          trace.logits.back().insert(trace.logits.back().end(), row.begin(), row.end());
        }
      }
    }
    return trace;
  }
  Probe probe(const CellRecord&) override {
    return {.peak_bytes = behaviour_.bytes, .counters = behaviour_.counters, .step_ns = behaviour_.step_ns};
  }
  double logit_bound() const override { return behaviour_.logit_bound; }
  bool times_slices() const override { return behaviour_.times_slices; }
  bool times_rounds(const CellRecord&) const override { return behaviour_.rounds > 0; }
  SideWork side_work() const override { return side_; }
  std::unique_ptr<OpenVisit> open_visit(const CellRecord& cell) override {
    return std::make_unique<Visit>(*this, cell.steps);
  }

 private:
  class Visit final : public OpenVisit {
   public:
    Visit(FakeWorker& worker, std::int64_t steps) : worker_(worker), rounds_left_(worker.behaviour_.rounds * steps) {
      if (worker.visits_++ == worker.behaviour_.throws_in_visit) {
        throw std::bad_alloc();
      }
      worker.log_.visits.push_back(worker.label_);
      worker.side_.filling_ns += worker.behaviour_.filling_ns;
      times_ = {.warmup_steps = 2, .quiet = true, .wall_ns = 0, .samples_ns = {}, .flags = worker.behaviour_.flags};
    }
    void time_slice(std::int64_t steps) override {
      worker_.log_.slices.push_back(worker_.label_ + " " + std::to_string(steps));
      times_.wall_ns += worker_.behaviour_.step_ns * steps;
      times_.samples_ns.resize(times_.samples_ns.size() + static_cast<std::size_t>(steps), worker_.behaviour_.step_ns);
    }
    double time_round(std::int64_t steps) override {
      if (worker_.behaviour_.rounds == 0) {
        return OpenVisit::time_round(steps);
      }
      const std::int64_t rounds = worker_.behaviour_.rounds;
      worker_.log_.slices.push_back(worker_.label_ + " round");
      times_.wall_ns += worker_.behaviour_.step_ns / rounds;
      if (--rounds_left_ % rounds == 0) {
        times_.samples_ns.push_back(worker_.behaviour_.step_ns);
      }
      return 1 - static_cast<double>(rounds_left_) / static_cast<double>(rounds * steps);
    }
    const VisitTimes& times() const override { return times_; }

   private:
    FakeWorker& worker_;
    std::int64_t rounds_left_;
    VisitTimes times_;
  };

  std::string label_;
  Behaviour behaviour_;
  Log& log_;
  SideWork side_;
  int visits_ = 0;
};

class LaunchRunnerTest : public ::testing::Test {
 protected:
  LaunchRunnerTest() { store_.emplace(folder_ / "store.sqlite", StoreAccess::write); }

  /// A run of one decode cell of the given batch for each of `batches`.
  void add_run(const std::vector<std::string>& arms, const std::vector<std::int64_t>& batches = {2},
               std::int64_t blocks = 2, const std::string& plan_json = "") {
    RunData data;
    data.run.plan_json = plan_json;
    data.run.seed = 1;
    data.run.launches = 2;
    data.run.blocks_per_launch = blocks;
    data.run.model.positions = 2048;
    for (const std::string& arm : arms) {
      data.arms.push_back({.id = 0, .label = arm, .baseline = arm == arms.front()});
    }
    for (const std::int64_t batch : batches) {
      data.cells.push_back({.phase = phase_,
                            .batch = batch,
                            .length = 16,
                            .dtype = dtype_,
                            .device = "cpu",
                            .threads = 1,
                            .fill = fill_});
      for (std::size_t arm = 0; arm < arms.size(); ++arm) {
        data.cell_arms.push_back(
            {.cell_id = static_cast<std::int64_t>(data.cells.size() - 1), .arm_id = static_cast<std::int64_t>(arm)});
        if (arms[arm] == ruled_out_) {
          data.cell_arms.back().status = RowStatus::unsupported;
        }
      }
    }
    store_->add_run(data);
    run_ = data.run.id;
  }

  LaunchEnd launch(std::int64_t index, int stop_after_pieces = -1) {
    int pieces = 0;
    const LaunchContext context{
        .make_worker =
            [&](const ArmRecord& arm) {
              made_.push_back(arm.label);
              if (behaviours_[arm.label].cannot_be_made) {
                throw std::runtime_error("not enough memory: packed weights");
              }
              return std::make_unique<FakeWorker>(arm.label, behaviours_[arm.label], log_);
            },
        .make_exact =
            [&](const std::string&) {
              return behaviours_.contains("exact") ? std::make_unique<FakeWorker>("exact", behaviours_["exact"], log_)
                                                   : nullptr;
            },
        .available_memory_bytes = [&] { return available_; },
        .piece_started = [](const LaunchPiece&) {},
        .piece_done = [&](const LaunchPiece&, double) { ++pieces; },
        .arm_started = [](std::int64_t) {},
        .stop_requested = [&] { return stop_after_pieces >= 0 && pieces >= stop_after_pieces; },
        .kept_outputs = kept_,
        .visits = {.slice_ns = slice_ns_},
        .quality = quality_,
        .fitted_seconds = fitted_seconds_,
    };
    return run_launch(*store_, run_, index, context);
  }

  CellArmRecord row(const std::string& arm, std::size_t cell = 0) {
    const RunData data = store_->load_run(run_);
    const std::int64_t arm_id = std::find_if(data.arms.begin(), data.arms.end(), [&](const ArmRecord& record) {
                                  return record.label == arm;
                                })->id;
    return *std::find_if(data.cell_arms.begin(), data.cell_arms.end(), [&](const CellArmRecord& record) {
      return record.arm_id == arm_id && record.cell_id == data.cells[cell].id;
    });
  }

  TemporaryFolder folder_;
  std::optional<Store> store_;
  std::int64_t run_ = 0;
  std::map<std::string, Behaviour> behaviours_;
  QualityPlan quality_;
  std::int64_t available_ = 1'000'000;
  Phase phase_ = Phase::decode;
  std::string dtype_ = "fp32";
  std::string fill_ = "random";
  Log log_;
  std::int64_t slice_ns_ = 0;
  double fitted_seconds_ = std::numeric_limits<double>::infinity();
  std::shared_ptr<const KeptOutputs> kept_;
  std::string ruled_out_;          ///< An arm all of whose rows add_run() makes unsupported.
  std::vector<std::string> made_;  ///< Arms that workers were made for.
};

}  // namespace decodelab::testing
