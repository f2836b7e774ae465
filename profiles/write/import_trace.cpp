// Finds the format of a file by its first bytes.
#include "profiles/write/import_trace.h"

#include <algorithm>
#include <cctype>
#include <fstream>
#include <string>
#include <string_view>

namespace decodelab {
namespace {

constexpr std::string_view kSqlite{"SQLite format 3\0", 16};
constexpr std::string_view kGzip{"\x1f\x8b", 2};
// Field 1, length-delimited: a packet.
constexpr char kPacket = 0x0a;
constexpr std::size_t kLookAt = 4096;

std::string first_bytes(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file || std::filesystem::is_directory(path)) {
    throw ImportRefusal(path.string() + " cannot be opened as a file.");
  }
  std::string bytes(kLookAt, '\0');
  file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  bytes.resize(static_cast<std::size_t>(file.gcount()));
  return bytes;
}

// JSON may begin with a line feed, which is also how a packet begins; nothing but white space stands before its
// bracket.
bool looks_like_json(std::string_view bytes) {
  const auto first =
      std::find_if(bytes.begin(), bytes.end(), [](char c) { return !std::isspace(static_cast<unsigned char>(c)); });
  return first != bytes.end() && (*first == '{' || *first == '[');
}

}  // namespace

TraceEvents import_trace(const std::filesystem::path& path, const ImportLimits& limits) {
  const std::string bytes = first_bytes(path);
  if (bytes.starts_with(kSqlite)) {
    return import_nsys(path, limits);
  }
  if (bytes.starts_with(kGzip) || looks_like_json(bytes)) {
    return import_kineto(path, limits);
  }
  if (bytes.starts_with(kPacket)) {
    throw ImportRefusal(path.filename().string() +
                        " looks like a trace for Perfetto's viewer, and those are written here but not read: write "
                        "the same trace as .sqlite too (`decodelab trace ... --out t.sqlite`) and give that file.");
  }
  throw ImportRefusal(
      path.filename().string() +
      " is no trace that is known here: expected the .sqlite of decodelab or of nsys, or kineto's JSON (also "
      "gzipped); an .nsys-rep becomes one by `nsys export --type sqlite`.");
}

}  // namespace decodelab
