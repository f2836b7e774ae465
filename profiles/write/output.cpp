// Temporary files that are renamed when they are whole, and zlib.
#include "profiles/write/output.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <system_error>
#include <utility>
#include <vector>

#include <unistd.h>
#include <zlib.h>

namespace decodelab {
namespace {

constexpr std::size_t kDeflatedBytes = std::size_t{1} << 18;
// zlib: 15 bits of window, and 16 asks for a gzip header, which names neither file nor time.
constexpr int kGzipWindow = 15 + 16;
constexpr int kMemoryLevel = 8;

[[noreturn]] void refuse(const std::filesystem::path& path, const std::string& reason) {
  throw std::runtime_error("The trace could not be written to " + path.string() + ": " + reason + ".");
}

}  // namespace

OutputFile::OutputFile(std::filesystem::path path) : path_(std::move(path)) {
  temporary_ = path_;
  temporary_ += ".tmp-" + std::to_string(getpid());
  file_.open(temporary_, std::ios::binary | std::ios::trunc);
  if (!file_) {
    refuse(path_, std::strerror(errno));
  }
}

OutputFile::~OutputFile() {
  if (!temporary_.empty()) {
    std::error_code ignored;
    std::filesystem::remove(temporary_, ignored);
  }
}

void OutputFile::write(std::string_view bytes) {
  file_.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  if (!file_) {
    refuse(path_, std::strerror(errno));
  }
}

void OutputFile::commit() {
  file_.close();
  if (!file_) {
    refuse(path_, std::strerror(errno));
  }
  std::error_code error;
  std::filesystem::rename(temporary_, path_, error);
  if (error) {
    refuse(path_, error.message());
  }
  temporary_.clear();
}

struct GzipSink::State {
  z_stream stream{};
  std::vector<char> block = std::vector<char>(kDeflatedBytes);
};

GzipSink::GzipSink(ByteSink next, int level) : state_(std::make_unique<State>()), next_(std::move(next)) {
  if (deflateInit2(&state_->stream, level, Z_DEFLATED, kGzipWindow, kMemoryLevel, Z_DEFAULT_STRATEGY) != Z_OK) {
    throw std::runtime_error("zlib could not be started: there is no memory for its window.");
  }
}

GzipSink::~GzipSink() { deflateEnd(&state_->stream); }

void GzipSink::write(std::string_view bytes) {
  // zlib counts in 32 bits.
  while (!bytes.empty()) {
    const std::size_t part = std::min<std::size_t>(bytes.size(), std::numeric_limits<int>::max());
    run(bytes.substr(0, part), Z_NO_FLUSH);
    bytes.remove_prefix(part);
  }
}

void GzipSink::finish() { run({}, Z_FINISH); }

void GzipSink::run(std::string_view bytes, int flush) {
  z_stream& stream = state_->stream;
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  do {
    stream.next_out = reinterpret_cast<Bytef*>(state_->block.data());
    stream.avail_out = static_cast<uInt>(kDeflatedBytes);
    deflate(&stream, flush);
    next_(std::string_view(state_->block.data(), kDeflatedBytes - stream.avail_out));
  } while (stream.avail_out == 0);
}

}  // namespace decodelab
