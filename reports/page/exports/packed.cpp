// zlib's gzip, and base64 by hand.
#include "reports/page/exports/packed.h"

#include <cstdint>
#include <stdexcept>

#include <fmt/format.h>
#include <zlib.h>

namespace decodelab {
namespace {

constexpr int kGzip = 15 + 16;  // the largest window, with gzip's header instead of zlib's
constexpr int kMemoryLevel = 8;

std::string gzipped(std::string_view text) {
  z_stream stream{};
  int code = deflateInit2(&stream, Z_BEST_COMPRESSION, Z_DEFLATED, kGzip, kMemoryLevel, Z_DEFAULT_STRATEGY);
  if (code != Z_OK) {
    throw std::runtime_error(fmt::format("zlib could not begin to compress a figure: code {}.", code));
  }
  std::string result(deflateBound(&stream, text.size()), '\0');
  stream.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(text.data()));  // zlib does not write there
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(result.data());
  stream.avail_out = static_cast<uInt>(result.size());
  code = deflate(&stream, Z_FINISH);
  result.resize(stream.total_out);
  deflateEnd(&stream);
  if (code != Z_STREAM_END) {
    throw std::runtime_error(fmt::format("zlib could not compress a figure of {} bytes: code {}.", text.size(), code));
  }
  return result;
}

}  // namespace

std::string packed(std::string_view text) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const std::string bytes = gzipped(text);
  std::string result;
  result.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t group = 0;
    for (std::size_t k = 0; k < 3; ++k) {
      group = group << 8 | (i + k < bytes.size() ? static_cast<unsigned char>(bytes[i + k]) : 0U);
    }
    for (std::size_t k = 0; k < 4; ++k) {
      result += i + k <= bytes.size() ? kDigits[group >> (18 - 6 * k) & 63] : '=';
    }
  }
  return result;
}

}  // namespace decodelab
