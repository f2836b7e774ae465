// A worker that behaves gives what it measured; one that does not gives a reason, in time, and never a hang.
#include "bench/measure/process/process_worker.h"

#include <chrono>
#include <csignal>
#include <fstream>
#include <thread>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sched.h>

#include "bench/machine/environment.h"
#include "bench/measure/process/child_process.h"
#include "bench/measure/process/process_group.h"

namespace decodelab {
namespace {

CellRecord cell(std::int64_t batch = 2) {
  return {.id = 1,
          .phase = Phase::decode,
          .batch = batch,
          .length = 5,
          .dtype = "fp32",
          .device = "cpu",
          .threads = 1,
          .fill = "generated",
          .steps = 8};
}

ProcessWorkerOptions options(const std::string& how, std::chrono::seconds limit = std::chrono::seconds(60)) {
  return {.command = "python3 " DECODELAB_TEST_DATA "/fake_worker.py " + how,
          .load = {.model = "m", .dtype = "fp32", .device = "cpu", .threads = 1, .seed = 1, .max_tokens = 4},
          .vocabulary = 100,
          .positions = 64,
          .reply_limit = limit,
          .identified = {}};
}

/// What the call throws as an Error.
template <typename Error, typename Call>
std::string reason(Call&& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing was thrown";
}

TEST(ProcessWorker, GivesWhatTheOtherSideMeasured) {
  WorkerHello heard;
  auto wanted = options("good");
  wanted.identified = [&](const WorkerHello& hello) { heard = hello; };
  ProcessWorker worker(std::move(wanted));
  const OutputTrace trace = worker.outputs(cell(), 3, nullptr);
  EXPECT_EQ(trace.tokens, std::vector<std::vector<std::int64_t>>(3, {3, 3}));
  EXPECT_EQ(worker.probe(cell()).counters, (Counters{{"things", 7}}));
  const VisitTimes times = worker.visit(cell());
  EXPECT_EQ(times.samples_ns, std::vector<std::int64_t>(8, 1000));
  EXPECT_EQ(times.warmup_steps, 2);
  EXPECT_EQ(heard.engine, "fake");
  EXPECT_EQ(heard.version, "1.0");
  EXPECT_EQ(heard.settings_json, R"({"mood":"good","threads":1})") << "what was decided at load is added";
  const std::int64_t filling_ns = worker.side_work().filling_ns;
  EXPECT_GT(filling_ns, 0) << "a cell is prepared before it is asked about";
  EXPECT_EQ(worker.visit(cell(4)).samples_ns.size(), 8U) << "another cell is prepared anew";
  EXPECT_GT(worker.side_work().filling_ns, filling_ns);
}

TEST(ProcessWorker, TimesAVisitInSlicesWhereTheOtherSideCan) {
  CellRecord slices = cell();
  slices.slice_steps = 5;
  ProcessWorker worker(options("takes-turns"));
  worker.start();
  EXPECT_TRUE(worker.times_slices());
  const auto visit = worker.open_visit(slices);
  visit->time_slice(5);
  visit->time_slice(3);
  EXPECT_EQ(visit->times().samples_ns, (std::vector<std::int64_t>{1005, 1005, 1005, 1005, 1005, 1008, 1008, 1008}));
  EXPECT_EQ(visit->times().wall_ns, 8000);
  EXPECT_EQ(visit->times().warmup_steps, 3);
  EXPECT_EQ(worker.visit(cell()).samples_ns.size(), 8U) << "and a whole visit where no turns are asked for";

  ProcessWorker other(options("good"));
  other.start();
  EXPECT_FALSE(other.times_slices());

  ProcessWorker dies(options("dies-in-turn"));
  const auto lost = dies.open_visit(slices);
  EXPECT_NE(reason<WorkerDied>([&] { lost->time_slice(5); }).find("exit code 3"), std::string::npos);
}

TEST(ProcessWorker, MayUseAllCoresAndIsToldWhereItsThreadsBelong) {
  const auto settings = [](const std::vector<std::int64_t>& places) {
    auto wanted = options("tells-its-places");
    wanted.places = places;
    WorkerHello heard;
    wanted.identified = [&](const WorkerHello& hello) { heard = hello; };
    // A thread of its own is bound to one core, as the first thread of a launch is.
    std::thread([&] {
      cpu_set_t one;
      CPU_ZERO(&one);
      CPU_SET(static_cast<std::size_t>(usable_cores().back()), &one);
      EXPECT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
      ProcessWorker(std::move(wanted)).start();
    }).join();
    return nlohmann::json::parse(heard.settings_json);
  };
  const auto placed = settings({4, 2});
  EXPECT_EQ(placed.at("places"), "{4},{2}");
  EXPECT_EQ(placed.at("bind"), "close");
  EXPECT_EQ(placed.at("cores"), std::ssize(usable_cores()));
  EXPECT_EQ(settings({}).at("places"), "") << "nothing is said where the system places threads";
}

TEST(ProcessWorker, IsHeldAgainstTheReferenceAsItsHelloSays) {
  ProcessWorker exact(options("exact"));
  ProcessWorker other(options("good"));
  ProcessWorker silent(options("shows-no-logits"));
  for (ProcessWorker* worker : {&exact, &other, &silent}) {
    worker->start();
  }
  EXPECT_EQ(exact.output_rule(cell()), OutputRule::free_running);
  EXPECT_EQ(other.output_rule(cell()), OutputRule::teacher_forced);
  EXPECT_EQ(silent.output_rule(cell()), OutputRule::tokens_only);
}

TEST(ProcessWorker, SaysHowAWorkerDiedAndWhatItPrintedLast) {
  for (const char* call : {"hello", "load", "prepare", "visit"}) {
    ProcessWorker worker(options(std::string("dies-in-") + call));
    const std::string why = reason<WorkerDied>([&] { worker.visit(cell()); });
    EXPECT_NE(why.find("exit code 3"), std::string::npos) << call << ": " << why;
    EXPECT_NE(why.find("the fake ran out of patience"), std::string::npos) << why;
  }
}

TEST(ProcessWorker, StartsAgainAfterADeathAndIsGivenUpAfterThree) {
  ProcessWorker worker(options("dies-in-visit"));
  for (int death = 0; death < ProcessWorker::kMostDeaths; ++death) {
    EXPECT_NE(reason<WorkerDied>([&] { worker.visit(cell()); }).find("exit code 3"), std::string::npos);
  }
  EXPECT_NE(reason<WorkerDied>([&] { worker.visit(cell()); }).find("given up"), std::string::npos);
}

TEST(ProcessWorker, NeverWaitsLongerThanItsLimit) {
  for (const char* call : {"hello", "visit"}) {
    ProcessWorker worker(options(std::string("hangs-in-") + call, std::chrono::seconds(1)));
    EXPECT_NE(reason<WorkerTimedOut>([&] { worker.visit(cell()); }).find("no reply within 1 s"), std::string::npos);
  }
}

TEST(ProcessWorker, NamesRubbishAndMissingCommands) {
  ProcessWorker rubbish(options("rubbish-in-visit"));
  const std::string why = reason<WorkerError>([&] { rubbish.visit(cell()); });
  EXPECT_NE(why.find("broke the protocol"), std::string::npos) << why;
  EXPECT_NE(why.find("Loading model"), std::string::npos) << why;
  auto nothing = options("");
  nothing.command = "/no/such/program";
  ProcessWorker missing(std::move(nothing));
  EXPECT_NE(reason<WorkerDied>([&] { missing.start(); }).find("not found"), std::string::npos);
}

TEST(ProcessWorker, BelievesNoVisitThatCannotBe) {
  ProcessWorker slow(options("one-step-short"));
  EXPECT_NE(reason<WorkerError>([&] { slow.visit(cell()); }).find("asked for 8 timed steps, got 7"), std::string::npos);
  ProcessWorker liar(options("claims-more-time-than-passed"));
  EXPECT_NE(reason<WorkerError>([&] { liar.visit(cell()); }).find("in a call that took"), std::string::npos);
}

TEST(ProcessWorker, RefusesAnotherVersionOfTheProtocol) {
  ProcessWorker worker(options("speaks-another-version"));
  EXPECT_NE(reason<WorkerError>([&] { worker.start(); }).find("speaks version 3"), std::string::npos);
}

TEST(ProcessWorker, PassesAnErrorOnWithItsKind) {
  ProcessWorker worker(options("oom-in-outputs"));
  try {
    worker.outputs(cell(), 2, nullptr);
    FAIL() << "expected an error";
  } catch (const WorkerError& error) {
    EXPECT_EQ(error.status, RowStatus::oom);
    EXPECT_STREQ(error.what(), "no room for this");
  }
  EXPECT_EQ(worker.visit(cell()).samples_ns.size(), 8U) << "and the worker stays usable";
}

TEST(ProcessWorker, SaysWhatAWorkerCannotDo) {
  ProcessWorker worker(options("good"));
  CellRecord other = cell();
  other.phase = Phase::prefill;
  try {
    worker.visit(other);
    FAIL() << "expected an error";
  } catch (const WorkerError& error) {
    EXPECT_EQ(error.status, RowStatus::unsupported);
    EXPECT_STREQ(error.what(), "the worker has no phase prefill; it has decode");
  }
}

TEST(ProcessWorker, IsStoppedWhileIdleAndItsTimeIsCounted) {
  ProcessWorker worker(options("busy"));
  worker.visit(cell());
  // The signal takes a moment to arrive.
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  const double after = worker.cpu_seconds();
  EXPECT_GT(after, 0.1) << "the visit alone kept a core busy for 0.2 s";
  EXPECT_GT(worker.resident_bytes(), 1'000'000);
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  EXPECT_EQ(worker.cpu_seconds(), after) << "nothing runs between calls";
}

TEST(ProcessWorker, ComesUpAndGoesWhileOthersDo) {
  ProcessWorker worker(options("good"));
  worker.begin_start();
  worker.begin_start();
  // It comes up by itself, though not at once: a process that was only just forked is not in its group yet.
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (worker.resident_bytes() == 0 && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_GT(worker.resident_bytes(), 0) << "its process is there";
  worker.start();
  EXPECT_EQ(worker.visit(cell()).samples_ns.size(), 8U);
  worker.begin_end();
  EXPECT_THROW(worker.probe(cell()), WorkerDied);
}

TEST(ChildProcess, LeavesANoteThatItsParentReadsAfterItsDeath) {
  ChildProcess child(
      {"/bin/sh", "-c", R"(printf '\007\001\000\000\000\000\000\000' >&4; echo said >&3; kill -KILL $$)"});
  EXPECT_EQ(child.read_line(10'000), "said");
  child.wait();
  EXPECT_EQ(child.note(), 0x107);
  ChildProcess silent({"/bin/sh", "-c", "exit 3"});
  silent.wait();
  EXPECT_EQ(silent.note(), 0);
}

TEST(ProcessWorker, LeavesBetweenCallsWhereMemoryIsShort) {
  ProcessWorker worker(options("good"));
  worker.leave_between_calls();
  EXPECT_EQ(worker.visit(cell()).samples_ns.size(), 8U);
  EXPECT_EQ(worker.resident_bytes(), 0);
  EXPECT_EQ(worker.visit(cell()).samples_ns.size(), 8U);
}

TEST(ProcessStat, ReadsALineWhoseNameHoldsAnything) {
  const auto stat = parse_process_stat(
      "4711 (a ) b) S 1 99 99 0 -1 4194304 1 2 3 4 10 20 3 4 20 0 1 0 100 1000 77 184 1 1 0 0 0 0 0 0 0 0 0 0 17 1 0 "
      "0");
  ASSERT_TRUE(stat);
  EXPECT_EQ(stat->group, 99);
  EXPECT_EQ(stat->cpu_ticks, 37);
  EXPECT_EQ(stat->resident_pages, 77);
  EXPECT_FALSE(parse_process_stat("4711 (x) S 1"));
  EXPECT_FALSE(parse_process_stat(""));
}

}  // namespace
}  // namespace decodelab
