// What is kept comes back whole, for its own key, and within bounds.
#include "engine/checkpoint/kept_bytes.h"

#include <chrono>
#include <filesystem>
#include <fstream>
#include <stdexcept>

#include <gtest/gtest.h>

#include "tests/temporary_folder.h"

namespace decodelab {
namespace {

namespace fs = std::filesystem;
using testing::TemporaryFolder;

std::vector<std::byte> bytes(std::size_t size, unsigned char value) {
  return std::vector<std::byte>(size, static_cast<std::byte>(value));
}

TEST(KeptBytes, ComeBackForTheirKeyAlone) {
  const TemporaryFolder folder;
  const KeptBytes kept(folder / "cells");
  EXPECT_FALSE(kept.read("a"));
  kept.keep("a", bytes(1000, 1));
  kept.keep("b", {});
  EXPECT_EQ(KeptBytes(folder / "cells").read("a"), bytes(1000, 1));
  EXPECT_EQ(kept.read("b"), bytes(0, 0));
  EXPECT_FALSE(kept.read("c"));
  kept.keep("a", bytes(500, 2));
  EXPECT_EQ(kept.read("a"), bytes(500, 2)) << "the newer one takes its place";
}

TEST(KeptBytes, ThatAreDamagedAreAsIfTheyWereNotThere) {
  const TemporaryFolder folder;
  const KeptBytes kept(folder / "cells");
  kept.keep("a", bytes(100, 1));
  const fs::path file = fs::directory_iterator(folder / "cells")->path();
  const auto size = static_cast<std::streamoff>(fs::file_size(file));
  for (std::streamoff place = 0; place < size; ++place) {
    kept.keep("a", bytes(100, 1));
    std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
    stream.seekg(place);
    const auto byte = static_cast<char>(stream.get() ^ 4);
    stream.seekp(place);
    stream.put(byte);
    stream.close();
    EXPECT_FALSE(kept.read("a")) << place;
  }
  kept.keep("a", bytes(100, 1));
  fs::resize_file(file, static_cast<std::uintmax_t>(size - 1));
  EXPECT_FALSE(kept.read("a"));
}

TEST(KeptBytes, ThatWereNotUsedForLongestGoFirst) {
  const TemporaryFolder folder;
  const KeptBytes kept(folder / "cells", 2500);
  kept.keep("old", bytes(1000, 1));
  kept.keep("used", bytes(1000, 2));
  for (const auto& entry : fs::directory_iterator(folder / "cells")) {
    fs::last_write_time(entry.path(), fs::file_time_type::clock::now() - std::chrono::hours(1));
  }
  EXPECT_TRUE(kept.read("used"));
  kept.keep("young", bytes(1000, 3));
  EXPECT_FALSE(kept.read("old"));
  EXPECT_TRUE(kept.read("used"));
  EXPECT_TRUE(kept.read("young"));
}

TEST(KeptBytes, AreNowhereWhereTheFolderCannotBeMade) {
  const TemporaryFolder folder;
  folder.write("file", "no folder");
  const KeptBytes kept(folder / "file");
  kept.keep("a", bytes(10, 1));
  EXPECT_FALSE(kept.read("a"));
}

TEST(BytesWriter, WritesWhatTheReaderTakesApart) {
  BytesWriter writer;
  writer.number(-3);
  writer.numbers(std::vector<std::int64_t>{1, 2, 3});
  writer.floats(std::vector<float>{0.5f, -1.0f});
  writer.bytes(bytes(5, 9));
  BytesReader reader(writer.written());
  EXPECT_EQ(reader.number(), -3);
  EXPECT_EQ(reader.numbers(), (std::vector<std::int64_t>{1, 2, 3}));
  EXPECT_EQ(reader.floats(), (std::vector<float>{0.5f, -1.0f}));
  EXPECT_EQ(reader.bytes().size(), 5U);
  EXPECT_TRUE(reader.at_end());
  EXPECT_THROW(reader.number(), std::out_of_range);
  BytesWriter lies;
  lies.number(1000);
  EXPECT_THROW(BytesReader(lies.written()).bytes(), std::out_of_range) << "more than there is";
  BytesWriter negative;
  negative.number(-1);
  EXPECT_THROW(BytesReader(negative.written()).bytes(), std::out_of_range);
}

}  // namespace
}  // namespace decodelab
