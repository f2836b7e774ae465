// Starts `decodelab rank`, and looks whether it lives.
#include "bench/measure/process/rank_process.h"

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <memory>
#include <optional>
#include <sstream>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/measure/process/child_process.h"
#include "engine/ranks/rank_failed.h"

namespace decodelab {
namespace {

class RankProcess final : public RankElsewhere {
 public:
  RankProcess(const std::vector<std::string>& arguments, std::string name)
      : name_(std::move(name)), child_(arguments) {}

  void look() override {
    while (const std::optional<std::string> line = child_.read_line(0)) {
      last_words_ = *line;
    }
    if (!child_.ended()) {
      return;
    }
    const int status = child_.wait();
    const std::string end = WIFSIGNALED(status) ? fmt::format("was killed by signal {}", WTERMSIG(status))
                                                : fmt::format("ended with exit code {}", WEXITSTATUS(status));
    throw RankFailed(fmt::format("the process of {} {}{}{}", name_, end, last_words_.empty() ? "" : ": ", last_words_));
  }

 private:
  std::string name_;
  std::string last_words_;
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
