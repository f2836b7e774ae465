// Packed weights come back as they were kept, or not at all.
#include "engine/checkpoint/packed_files.h"

#include <algorithm>
#include <chrono>
#include <fstream>
#include <vector>

#include <gtest/gtest.h>

#include "tests/temporary_folder.h"

namespace decodelab {
namespace {

namespace fs = std::filesystem;
using testing::TemporaryFolder;

constexpr std::size_t kPieceBytes = std::size_t{1} << 18;
constexpr std::size_t kPieces = 5;
constexpr const char* kKey = "transformer.wte panels v1 bf16 [320, 2048]";

std::vector<std::byte> packed(unsigned seed) {
  std::vector<std::byte> bytes(kPieces * kPieceBytes);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<std::byte>((i * 31 + i / 253 + seed) % 256);
  }
  return bytes;
}

/// A cache folder and checkpoints beside it.
class PackedFilesTest : public ::testing::Test {
 protected:
  fs::path checkpoint(const std::string& name, std::string_view weights = "weights") {
    fs::create_directories(folder_ / name);
    folder_.write(name + "/model.safetensors", weights);
    return folder_ / name;
  }
  fs::path cache() const { return folder_ / "cache"; }
  PackedFiles files(const fs::path& of, std::uintmax_t most_bytes = PackedFiles::kMostBytes) const {
    return {of, cache(), "", most_bytes};
  }
  /// All pieces that are read, empty where there is no file or a piece is refused.
  static std::vector<std::byte> read(PackedFiles&& files, const std::string& key = kKey,
                                     std::size_t piece_bytes = kPieceBytes) {
    const std::size_t pieces = kPieces * kPieceBytes / piece_bytes;
    const auto file = files.open(key, piece_bytes, pieces);
    std::vector<std::byte> bytes(kPieces * kPieceBytes);
    for (std::size_t piece = 0; file && piece < pieces; ++piece) {
      if (!file->read(piece, std::span(bytes).subspan(piece * piece_bytes, piece_bytes))) {
        return {};
      }
    }
    return file ? bytes : std::vector<std::byte>();
  }
  /// The only file of packed weights in the cache.
  fs::path kept_file() const {
    for (const auto& entry : fs::recursive_directory_iterator(cache() / "packed")) {
      if (entry.is_regular_file() && entry.file_size() > kPieceBytes) {
        return entry.path();
      }
    }
    return {};
  }

  TemporaryFolder folder_;
};

TEST_F(PackedFilesTest, ComeBackInAnotherProcessAsTheyWereKept) {
  const fs::path model = checkpoint("model");
  EXPECT_TRUE(read(files(model)).empty());
  files(model).keep(kKey, packed(1), kPieceBytes);
  EXPECT_EQ(read(files(model)), packed(1));
  files(model).keep(kKey, packed(2), kPieceBytes);
  EXPECT_EQ(read(files(model)), packed(2)) << "the newer one takes its place";
}

TEST_F(PackedFilesTest, AreThoseOfTheSameContentAndKeyAlone) {
  const fs::path model = checkpoint("model");
  files(model).keep(kKey, packed(1), kPieceBytes);
  EXPECT_EQ(read(files(checkpoint("copy"))), packed(1)) << "another folder with the same weights";
  EXPECT_TRUE(read(files(checkpoint("other", "weightz"))).empty());
  EXPECT_TRUE(read(files(model), "transformer.wte panels v2 bf16 [320, 2048]").empty());
  EXPECT_TRUE(read(files(model), kKey, kPieceBytes / 2).empty()) << "other pieces";
  checkpoint("model", "WEIGHTS");
  EXPECT_TRUE(read(files(model)).empty()) << "the checkpoint was written anew, in the same length";
}

TEST_F(PackedFilesTest, ThatAreDamagedAreAsIfTheyWereNotThere) {
  const fs::path model = checkpoint("model");
  files(model).keep(kKey, packed(1), kPieceBytes);
  const fs::path file = kept_file();
  const auto size = static_cast<std::streamoff>(fs::file_size(file));
  for (const std::streamoff place : {std::streamoff{0}, std::streamoff{40}, size - 1, size / 2}) {
    files(model).keep(kKey, packed(1), kPieceBytes);
    ASSERT_EQ(read(files(model)), packed(1));
    std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
    stream.seekg(place);
    const auto byte = static_cast<char>(stream.get() ^ 1);
    stream.seekp(place);
    stream.put(byte);
    stream.close();
    EXPECT_TRUE(read(files(model)).empty()) << "a bit was turned at " << place;
  }
  files(model).keep(kKey, packed(1), kPieceBytes);
  fs::resize_file(file, static_cast<std::uintmax_t>(size / 2));
  EXPECT_TRUE(read(files(model)).empty()) << "cut short";
}

TEST_F(PackedFilesTest, LeaveNoDraftBehindAndKeepNothingSmall) {
  const fs::path model = checkpoint("model");
  files(model).keep(kKey, packed(1), kPieceBytes);
  files(model).keep("small", std::vector<std::byte>(1000), 100);
  std::size_t found = 0;
  for (const auto& entry : fs::recursive_directory_iterator(cache() / "packed")) {
    EXPECT_EQ(entry.path().filename().string().find(".tmp-"), std::string::npos);
    found += entry.is_regular_file() && entry.path().filename() != "used" ? 1 : 0;
  }
  EXPECT_EQ(found, 1U);
}

TEST_F(PackedFilesTest, OfTheCheckpointThatWasNotUsedForLongestGoFirst) {
  const std::uintmax_t room = 2 * kPieces * kPieceBytes + 100'000;
  for (const char* name : {"first", "second"}) {
    files(checkpoint(name, name), room).keep(kKey, packed(1), kPieceBytes);
  }
  // The first is used again, and then is the younger.
  for (const auto& entry : fs::directory_iterator(cache() / "packed")) {
    fs::last_write_time(entry.path() / "used", fs::file_time_type::clock::now() - std::chrono::hours(1));
  }
  EXPECT_FALSE(read(files(folder_ / "first", room)).empty());
  files(checkpoint("third", "third"), room).keep(kKey, packed(1), kPieceBytes);
  EXPECT_FALSE(read(files(folder_ / "first", room)).empty());
  EXPECT_TRUE(read(files(folder_ / "second", room)).empty());
  EXPECT_FALSE(read(files(folder_ / "third", room)).empty());
}

TEST_F(PackedFilesTest, ThatDoNotFitAloneAreNotKept) {
  const fs::path model = checkpoint("model");
  files(model, kPieces * kPieceBytes / 2).keep(kKey, packed(1), kPieceBytes);
  EXPECT_TRUE(read(files(model)).empty());
}

TEST_F(PackedFilesTest, AreNowhereWhereTheFolderCannotBeMadeOrThereAreNoWeights) {
  folder_.write("cache", "a file where the folder should be");
  const fs::path model = checkpoint("model");
  files(model).keep(kKey, packed(1), kPieceBytes);
  EXPECT_TRUE(read(files(model)).empty());
  EXPECT_TRUE(read(PackedFiles(folder_ / "nothing", folder_ / "elsewhere")).empty());
}

TEST_F(PackedFilesTest, DigestOfWeightsFollowsContentAndIsRemembered) {
  const std::string first = weights_digest(checkpoint("model"), cache());
  EXPECT_EQ(first.size(), 32U);
  EXPECT_EQ(weights_digest(folder_ / "model", cache()), first);
  EXPECT_EQ(weights_digest(checkpoint("copy"), cache()), first);
  EXPECT_NE(weights_digest(checkpoint("other", "weightz"), cache()), first);
  folder_.write("model/extra.safetensors", "a shard more");
  EXPECT_NE(weights_digest(folder_ / "model", cache()), first);
  EXPECT_THROW(weights_digest(folder_.path(), cache()), std::invalid_argument);
}

}  // namespace
}  // namespace decodelab
