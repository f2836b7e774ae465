// Runs tools/render_figures.py and waits for it.
#include "reports/figures/render.h"

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef DECODELAB_FIGURE_PYTHON
#define DECODELAB_FIGURE_PYTHON ""
#define DECODELAB_FIGURE_SCRIPT ""
#endif

namespace decodelab {
namespace {

struct Finished {
  int code = 0;        ///< Exit code, or -1 where the process could not be started or was killed.
  std::string output;  ///< What it wrote on both streams.
};

Finished run(std::vector<std::string> arguments) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    return {-1, std::strerror(errno)};
  }
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO);
  std::vector<char*> argv;
  for (std::string& argument : arguments) {
    argv.push_back(argument.data());
  }
  argv.push_back(nullptr);
  pid_t child = 0;
  const int failed = posix_spawn(&child, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  Finished finished{-1, failed != 0 ? std::strerror(failed) : ""};
  std::array<char, 4096> buffer{};
  while (failed == 0) {
    const ssize_t count = read(ends[0], buffer.data(), buffer.size());
    if (count > 0) {
      finished.output.append(buffer.data(), static_cast<std::size_t>(count));
    }
    if (count == 0 || (count < 0 && errno != EINTR)) {
      break;
    }
  }
  close(ends[0]);
  if (failed != 0) {
    return finished;
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  finished.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return finished;
}

// The last line of a Python traceback names the error.
std::string last_line(std::string text) {
  text.erase(text.find_last_not_of(" \n\r") + 1);
  return text.substr(text.rfind('\n') + 1);
}

}  // namespace

bool render_figures(const std::filesystem::path& folder, bool png, std::ostream& warnings) {
  const char* const chosen = std::getenv("DECODELAB_PYTHON");
  const std::string python = chosen != nullptr ? chosen : DECODELAB_FIGURE_PYTHON;
  const std::string script = DECODELAB_FIGURE_SCRIPT;
  std::string why;
  if (python.empty() || script.empty()) {
    why = "this build knows no Python";
  } else if (!std::filesystem::exists(python) || !std::filesystem::exists(script)) {
    why = fmt::format("'{}' does not exist", std::filesystem::exists(python) ? script : python);
  } else {
    std::vector<std::string> arguments{python, script, folder.string()};
    if (png) {
      arguments.emplace_back("--png");
    }
    const Finished finished = run(std::move(arguments));
    if (finished.code == 0) {
      return true;
    }
    why = fmt::format("'{}' failed: {}", python, last_line(finished.output));
  }
  warnings << fmt::format(
      "Figures were not drawn ({}); the page shows them only where JavaScript runs. Set "
      "DECODELAB_PYTHON to a Python with vl-convert-python, "
      "or run tools/bootstrap.\n",
      why);
  return false;
}

}  // namespace decodelab
