// Starts `decodelab rank`, and looks whether it lives.
#include "bench/measure/process/rank_process.h"

#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <map>
#include <memory>
#include <sstream>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include "bench/measure/process/child_process.h"
#include "bench/measure/process/last_words.h"
#include "bench/plan/arm_request.h"
#include "engine/drafts.h"
#include "engine/ranks/rank_failed.h"
#include "engine/sequences/sequence_slots.h"

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

/// Returns what a rank loads.
std::string checkpoint_of(const RankStart& start, const RankProcessOptions& options) {
  if (!start.draft || *start.draft == kSelfDraft) {
    return options.checkpoint;
  }
  std::map<std::string, std::string> checkpoints;
  for (const NamedDraft& draft : options.drafts) {
    checkpoints.emplace(draft.name, draft.checkpoint);
  }
  return draft_named(*start.draft, checkpoints);
}

/// Returns the device of a rank: the first one's, or so many after that.
std::string device_of(const RankStart& start, const std::string& first) {
  if (!start.own_device) {
    return first;
  }
  const std::size_t colon = first.find(':');
  const std::int64_t number = colon == std::string::npos ? 0 : std::stoll(first.substr(colon + 1));
  return fmt::format("{}:{}", first.substr(0, colon), number + start.rank);
}

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
                                           .places = places_of(plan),
                                           .drafts = plan.drafts});
}

RankLauncher rank_processes(RankProcessOptions options) {
  return [options = std::move(options)](const RankStart& start) -> std::unique_ptr<RankElsewhere> {
    std::vector<std::string> arguments = words_before();
    arguments.insert(arguments.end(),
                     {std::filesystem::read_symlink("/proc/self/exe").string(), "rank", "--checkpoint",
                      checkpoint_of(start, options), "--dtype", options.dtype, "--device",
                      device_of(start, options.device), "--arm", options.arm, "--rank", std::to_string(start.rank),
                      "--first", std::to_string(getpid()), "--threads", std::to_string(start.threads),
                      // By this name a process that is no child finds it too.
                      "--memory", fmt::format("/proc/{}/fd/{}", getpid(), start.memory_descriptor)});
    if (start.first_layers > 0) {
      arguments.insert(arguments.end(), {"--first-layers", std::to_string(start.first_layers)});
    }
    const auto first = static_cast<std::size_t>(start.rank * start.threads);
    const auto count = static_cast<std::size_t>(start.threads);
    if (first + count <= options.places.size()) {
      const std::vector<std::int64_t> own(options.places.begin() + static_cast<std::ptrdiff_t>(first),
                                          options.places.begin() + static_cast<std::ptrdiff_t>(first + count));
      arguments.insert(arguments.end(), {"--places", fmt::format("{}", fmt::join(own, ","))});
    }
    return std::make_unique<RankProcess>(
        arguments, fmt::format("rank {} of {}{}", start.rank, start.ranks, start.draft ? " of the draft" : ""));
  };
}

}  // namespace decodelab
