// Sums over ranks in processes that share memory, by ranks and bytes: percentiles of a sum, one after the other.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <vector>

#include <benchmark/benchmark.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/ranks/rank_memory.h"

namespace decodelab {
namespace {

constexpr int kSums = 4096;
constexpr double kNanosecondsInASecond = 1e9;

/// Binds the calling thread to a core of its own, where there are as many as ranks.
void place(std::int64_t rank) {
  cpu_set_t usable;
  sched_getaffinity(0, sizeof usable, &usable);
  std::int64_t seen = 0;
  for (std::size_t core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &usable) && seen++ == rank) {
      cpu_set_t own;
      CPU_ZERO(&own);
      CPU_SET(core, &own);
      sched_setaffinity(0, sizeof own, &own);
      return;
    }
  }
}

std::vector<double> timed_sums(RankMemory& memory, std::size_t bytes, ElementType dtype) {
  place(memory.rank());
  std::vector<std::byte> values(bytes);
  std::vector<double> seconds;
  seconds.reserve(kSums);
  for (int sum = 0; sum < kSums; ++sum) {
    const auto start = std::chrono::steady_clock::now();
    memory.sum(values, dtype);
    seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  return seconds;
}

/// Arguments: ranks, bytes of a sum. What is timed are kSums sums.
void run_sums(benchmark::State& state, ElementType dtype) {
  cpu_set_t before;
  sched_getaffinity(0, sizeof before, &before);
  std::vector<double> all;
  for (auto _ : state) {
    RankMemory memory(state.range(0));
    for (std::int64_t rank = 1; rank < memory.ranks(); ++rank) {
      if (fork() == 0) {
        sched_setaffinity(0, sizeof before, &before);
        RankMemory other(memory.descriptor(), rank);
        timed_sums(other, static_cast<std::size_t>(state.range(1)), dtype);
        _exit(0);
      }
    }
    const std::vector<double> seconds = timed_sums(memory, static_cast<std::size_t>(state.range(1)), dtype);
    all.insert(all.end(), seconds.begin() + kSums / 8, seconds.end());  // Others have started by then.
    while (wait(nullptr) > 0) {
    }
    sched_setaffinity(0, sizeof before, &before);
  }
  std::ranges::sort(all);
  const auto percentile = [&](std::size_t percent) {
    return kNanosecondsInASecond * all[(all.size() - 1) * percent / 100];
  };
  state.counters["p50_ns"] = percentile(50);
  state.counters["p99_ns"] = percentile(99);
}

void register_all() {
  for (const auto& [name, dtype] :
       {std::pair("fp32", ElementType::float32), std::pair("bf16", ElementType::bfloat16)}) {
    benchmark::RegisterBenchmark((std::string("all-reduce/") + name).c_str(),
                                 [dtype = dtype](benchmark::State& state) { run_sums(state, dtype); })
        ->ArgNames({"ranks", "bytes"})
        ->ArgsProduct({{2}, {1536, 2304, 4096, 8192, 32768, 262144, 4194304}})
        ->Unit(benchmark::kMillisecond)
        ->UseRealTime();
  }
}

}  // namespace
}  // namespace decodelab

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) {
    return 2;
  }
  decodelab::register_all();
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
