// Feeds damaged, cut and made-up files to every importer: each is read or refused in one sentence, and nothing else
// happens.
#include <array>
#include <filesystem>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "profiles/trace/attribution.h"
#include "profiles/write/import_trace.h"
#include "profiles/write/write_trace.h"
#include "tests/engine/checkpoint/mutator.h"
#include "tests/profiles/write/nsys_fixture.h"
#include "tests/profiles/write/sample_trace.h"
#include "tests/temporary_folder.h"

namespace decodelab {
namespace {

constexpr std::string_view kName = "fuzz.trace";

// What a command does with a file: import, seal, verify, account for it. One that was read must also be written again.
void read_and_judge(const testing::TemporaryFolder& folder, const std::string& content) {
  const Trace trace = seal(import_trace(folder.write(std::string(kName), content), {.most_events = 1'000}));
  const TraceQuality quality = verify(trace);
  const Attribution account = attribute(trace, quality);
  ASSERT_TRUE(account.believable || !account.refusal.empty());
}

bool is_one_sentence(std::string_view text) {
  return text.starts_with(kName) && text.ends_with('.') && text.find('\n') == std::string_view::npos &&
         text.size() < 600;
}

// Each of `damage` is read or refused; both must happen where `both` says so, or nothing was tested.
void fuzz_files(const std::function<std::string(int)>& damaged, bool both = true) {
  const testing::TemporaryFolder folder;
  FuzzRounds rounds;
  int accepted = 0;
  int refused = 0;
  while (const std::optional<int> round = rounds.next()) {
    const int i = *round;
    try {
      read_and_judge(folder, damaged(i));
      if (::testing::Test::HasFatalFailure()) {
        return;
      }
      ++accepted;
    } catch (const std::runtime_error& error) {
      ++refused;
      ASSERT_TRUE(is_one_sentence(error.what())) << "iteration " << i << ": " << error.what();
    } catch (const std::exception& error) {
      FAIL() << "iteration " << i << ": expected std::runtime_error, got " << error.what();
    }
  }
  EXPECT_EQ(accepted + refused, rounds.done());
  if (rounds.done() >= 1000) {
    EXPECT_GT(refused, rounds.done() / 1000);
    if (both) {
      EXPECT_GT(accepted, rounds.done() / 1000);
    }
  }
}

// With the smallest pages, or most damage would lie between the rows.
std::string packed_database(const std::filesystem::path& path) {
  testing::execute(path, "PRAGMA page_size=512; VACUUM;");
  return testing::read_file(path);
}

std::string written(const std::string& name) {
  const testing::TemporaryFolder folder;
  const Trace trace = seal(testing::sample_events());
  write_trace(trace, testing::sample_quality(), folder / name);
  return name.ends_with(".sqlite") ? packed_database(folder / name) : testing::read_file(folder / name);
}

void fuzz_mutations(const std::string& file) {
  fuzz_files([&](int i) { return Mutator(static_cast<std::uint64_t>(i)).mutate(file); });
}

void fuzz_cuts(const std::string& file) {
  fuzz_files([&](int i) { return file.substr(0, static_cast<std::size_t>(i) * 977 % (file.size() + 1)); }, false);
}

TEST(TraceFuzz, KinetoFilesAreReadOrRefused) { fuzz_mutations(written("t.json")); }
TEST(TraceFuzz, GzippedFilesAreReadOrRefused) { fuzz_mutations(written("t.json.gz")); }
TEST(TraceFuzz, SqliteFilesAreReadOrRefused) { fuzz_mutations(written("t.sqlite")); }

TEST(TraceFuzz, NsysExportsAreReadOrRefused) {
  const testing::TemporaryFolder folder;
  testing::make_nsys_3_25(folder / "t.sqlite");
  fuzz_mutations(packed_database(folder / "t.sqlite"));
}

TEST(TraceFuzz, FilesOfPyTorchsProfilerAreReadOrRefused) {
  fuzz_mutations(
      R"({"schemaVersion": 1, "deviceProperties": [{"id": 0, "numSms": 132}], "baseTimeNanoseconds": 1700000000, "traceEvents": [
{"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#7", "pid": 5, "tid": 5, "ts": 0.000, "dur": 100.000},
{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 5, "tid": 5, "ts": 12.0, "dur": 5, "args": {"cbid": 211, "correlation": 77}},
{"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 20.125, "dur": 3.875, "args": {"stream": 7, "correlation": 77, "grid": [132, 2, 1]}},
{"ph": "X", "cat": "cuda_sync", "name": "Stream Sync", "pid": 0, "tid": 7, "ts": 31, "dur": 8, "args": {"stream": 7, "correlation": 78}},
{"ph": "C", "name": "sm_clock_mhz", "pid": 0, "ts": 31, "args": {"value": 1980.5}}]})");
}

TEST(TraceFuzz, CutKinetoFilesAreRefused) { fuzz_cuts(written("t.json")); }
TEST(TraceFuzz, CutGzippedFilesAreRefused) { fuzz_cuts(written("t.json.gz")); }
TEST(TraceFuzz, CutSqliteFilesAreRefused) { fuzz_cuts(written("t.sqlite")); }

// Nothing but noise behind the first bytes that each importer is chosen by.
TEST(TraceFuzz, RandomBytesAreRefused) {
  static constexpr std::array<std::string_view, 6> kBeginnings{
      "", std::string_view("SQLite format 3\0", 16), "\x1f\x8b\x08", "{", "[", "\n"};
  fuzz_files(
      [](int i) {
        Mutator random(static_cast<std::uint64_t>(i));
        std::string file(kBeginnings[static_cast<std::size_t>(i) % kBeginnings.size()]);
        for (std::size_t left = random.below(400); left > 0; --left) {
          file += static_cast<char>(random.below(256));
        }
        return file;
      },
      false);
}

}  // namespace
}  // namespace decodelab
