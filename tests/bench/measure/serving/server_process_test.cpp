// A server is told its port, says how it died, and leaves no process behind.
#include "bench/measure/serving/server_process.h"

#include <csignal>
#include <optional>
#include <stdexcept>
#include <thread>

#include <gtest/gtest.h>

#include "tests/temporary_folder.h"

namespace decodelab {
namespace {

using testing::read_file;
using testing::TemporaryFolder;

/// Waits for a file to be written, and returns its number.
pid_t number_in(const std::filesystem::path& file) {
  for (int wait = 0; wait < 1000; ++wait) {
    const std::string text = read_file(file);
    if (text.ends_with('\n')) {
      return static_cast<pid_t>(std::stol(text));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  ADD_FAILURE() << file << " was never written";
  return -1;
}

bool is_gone(pid_t process) {
  for (int wait = 0; wait < 500; ++wait) {
    const std::string stat = read_file(std::filesystem::path("/proc") / std::to_string(process) / "stat");
    if (stat.empty() || stat.find(") Z") != std::string::npos) {
      return true;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

TEST(ServerCommand, IsFilledInWithWordsOfTheShell) {
  EXPECT_EQ(fill_in_command("s -m {model} --port {port} {other} {", {{"model", "/a b/it's"}, {"port", "81"}}),
            R"(s -m '/a b/it'\''s' --port 81 {other} {)");
  EXPECT_EQ(fill_in_command("s {port}{port}", {{"port", "81"}}), "s 8181");
  try {
    fill_in_command("s --port 80", {{"port", "81"}});
    FAIL() << "expected an error";
  } catch (const std::invalid_argument& error) {
    EXPECT_NE(std::string(error.what()).find("--port {port}"), std::string::npos) << error.what();
  }
}

TEST(ServerProcess, SaysHowItEndedAndWhatItPrintedLast) {
  ServerProcess server("echo loading; echo 'no such model' >&2; exit 3");
  EXPECT_EQ(server.ended(std::chrono::seconds(20)), "ended with exit code 3; its last line: no such model");
  EXPECT_EQ(server.ended(), "ended with exit code 3; its last line: no such model") << "and again";
  ServerProcess killed("kill -KILL $$");
  EXPECT_NE(killed.ended(std::chrono::seconds(20))->find("died of signal 9"), std::string::npos);
}

TEST(ServerProcess, RunsUntilItsObjectIsDestroyed) {
  const TemporaryFolder folder;
  const std::string file = (folder / "pids").string();
  pid_t process = 0;
  {
    ServerProcess server("echo $$ > '" + file + "'; exec sleep 600");
    process = number_in(file);
    EXPECT_EQ(getpgid(process), getpgrp()) << "who stops this process's group stops the server too";
    EXPECT_FALSE(server.ended());
  }
  EXPECT_TRUE(is_gone(process));
}

TEST(ServerProcess, DiesWithTheThreadThatHasMadeIt) {
  std::optional<ServerProcess> server;
  std::thread([&] {
    server.emplace("NAME=value sleep 600");
    EXPECT_FALSE(server->ended(std::chrono::milliseconds(300)));
  }).join();
  EXPECT_EQ(server->ended(std::chrono::seconds(20)),
            "died of signal 9 (Killed), as the system does when memory runs out; it printed nothing");
}

TEST(ServerProcess, LeavesNothingBehindOfAServerThatWillNotEnd) {
  const TemporaryFolder folder;
  const std::string file = (folder / "pid").string();
  pid_t child = 0;
  {
    // The server ignores SIGTERM, and so does what it has started.
    ServerProcess server("trap '' TERM; sh -c 'echo $$ > \"" + file + "\"; exec sleep 600' & wait");
    child = number_in(file);
  }
  EXPECT_TRUE(is_gone(child));
}

TEST(ServerProcess, LeavesNothingBehindOfAServerThatDied) {
  const TemporaryFolder folder;
  const std::string file = (folder / "pid").string();
  ServerProcess server("sh -c 'echo $$ > \"" + file + "\"; exec sleep 600' & sleep 2; exit 4");
  const pid_t child = number_in(file);
  server.know_family();
  EXPECT_EQ(server.ended(std::chrono::seconds(20)), "ended with exit code 4; it printed nothing");
  EXPECT_TRUE(is_gone(child));
}

TEST(FreePort, NeedsNoPrivilege) {
  const std::uint16_t port = free_port();
  EXPECT_GT(port, 1023);
}

}  // namespace
}  // namespace decodelab
