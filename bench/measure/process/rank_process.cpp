// Starts `decodelab rank`, and looks whether it lives.
#include "bench/measure/process/rank_process.h"

#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <memory>
#include <sstream>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include "bench/measure/process/child_process.h"
#include "bench/measure/process/last_words.h"
#include "bench/plan/arm_request.h"
#include "engine/ranks/rank_failed.h"

namespace decodelab {
namespace {

class RankProcess final : public RankElsewhere {
 public:
  RankProcess(const std::vector<std::string>& arguments, std::string name)
      : name_(std::move(name)), child_(arguments) {}

  void look() override {
    child_.read_line(0);  // It says nothing there, and ends what it could say when it ends.
    if (child_.ended()) {
      throw RankFailed(fmt::format("the process of {} {}", name_, how_it_ended(child_.wait())));
    }
  }

 private:
  std::string name_;
  ChildProcess child_;
};

std::vector<std::string> words_before() {
  const char* const text = std::getenv(kRanksByVariable);
  if (text == nullptr) {
    return {};
  }
  std::istringstream words(std::string("/usr/bin/env ") + text);  // Which looks for the program that is named.
  return {std::istream_iterator<std::string>(words), {}};
}

}  // namespace

RankLauncher rank_processes(const LaunchPlan& plan, std::string_view label) {
  return rank_processes(RankProcessOptions{.checkpoint = plan.checkpoint,
                                           .dtype = plan.dtype,
                                           .device = plan.device,
                                           .arm = std::string(variants_part(label)),
                                           .places = places_of(plan)});
}

RankLauncher rank_processes(RankProcessOptions options) {
  return [options = std::move(options)](const RankStart& start) -> std::unique_ptr<RankElsewhere> {
    std::vector<std::string> arguments = words_before();
    arguments.insert(arguments.end(), {std::filesystem::read_symlink("/proc/self/exe").string(), "rank", "--checkpoint",
                                       options.checkpoint, "--dtype", options.dtype, "--device", options.device,
                                       "--arm", options.arm, "--rank", std::to_string(start.rank), "--first",
                                       std::to_string(getpid()), "--threads", std::to_string(start.threads),
                                       // By this name a process that is no child finds it too.
                                       "--memory", fmt::format("/proc/{}/fd/{}", getpid(), start.memory_descriptor)});
    const auto first = static_cast<std::size_t>(start.rank * start.threads);
    const auto count = static_cast<std::size_t>(start.threads);
    if (first + count <= options.places.size()) {
      const std::vector<std::int64_t> own(options.places.begin() + static_cast<std::ptrdiff_t>(first),
                                          options.places.begin() + static_cast<std::ptrdiff_t>(first + count));
      arguments.insert(arguments.end(), {"--places", fmt::format("{}", fmt::join(own, ","))});
    }
    return std::make_unique<RankProcess>(arguments, fmt::format("rank {} of {}", start.rank, start.ranks));
  };
}

}  // namespace decodelab
