// Runs tools/render_figures.py and waits for it.
#include "reports/figures/render.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <exception>
#include <string>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/python_script.h"

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
  std::string why;
  try {
    std::vector<std::string> arguments = python_command("render_figures.py");
    const std::string python = arguments.front();
    arguments.push_back(folder.string());
    if (png) {
      arguments.emplace_back("--png");
    }
    const Finished finished = run(std::move(arguments));
    if (finished.code == 0) {
      return true;
    }
    why = fmt::format("'{}' failed: {}", python, last_line(finished.output));
  } catch (const std::exception& error) {
    why = error.what();
  }
  warnings << fmt::format(
      "Figures were not drawn ({}); the page shows them only where JavaScript runs. Install vl-convert-python in that "
      "Python (in a checkout: run tools/bootstrap), or set DECODELAB_PYTHON to one that has it.\n",
      why);
  return false;
}

}  // namespace decodelab
