// One file per value: a checksum over all that follows, the key, the value.
#include "engine/checkpoint/kept_bytes.h"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "engine/checkpoint/cache_file.h"
#include "engine/checkpoint/checksum.h"
#include "engine/checkpoint/synthetic_cache.h"

namespace decodelab {
namespace {

namespace fs = std::filesystem;

std::vector<std::byte> file_of(const std::string& key, std::span<const std::byte> value) {
  BytesWriter body;
  body.bytes(std::as_bytes(std::span(key)));
  body.bytes(value);
  BytesWriter file;
  file.number(static_cast<std::int64_t>(checksum_of(body.written())));
  file.bytes(body.written());
  return file.written();
}

template <typename Value>
std::vector<Value> values_of(std::span<const std::byte> bytes) {
  std::vector<Value> values(bytes.size() / sizeof(Value));
  if (!values.empty()) {
    std::memcpy(values.data(), bytes.data(), values.size() * sizeof(Value));
  }
  return values;
}

}  // namespace

fs::path KeptBytes::path_of(const std::string& key) const { return folder_ / hex_digest(key); }

std::optional<std::vector<std::byte>> KeptBytes::read(const std::string& key) const {
  const fs::path path = path_of(key);
  std::error_code error;
  const std::uintmax_t size = fs::file_size(path, error);
  if (error || size > 2 * kMostOfOne) {
    return std::nullopt;
  }
  std::vector<std::byte> file(size);
  std::ifstream stream(path, std::ios::binary);
  if (!stream.read(reinterpret_cast<char*>(file.data()), static_cast<std::streamsize>(size))) {
    return std::nullopt;
  }
  try {
    BytesReader reader(file);
    const auto sum = static_cast<std::uint64_t>(reader.number());
    const std::span<const std::byte> body = reader.bytes();
    if (!reader.at_end() || checksum_of(body) != sum) {
      return std::nullopt;
    }
    BytesReader parts(body);
    if (!std::ranges::equal(parts.bytes(), std::as_bytes(std::span(key)))) {
      return std::nullopt;
    }
    const std::span<const std::byte> value = parts.bytes();
    fs::last_write_time(path, fs::file_time_type::clock::now(), error);
    return std::vector<std::byte>(value.begin(), value.end());
  } catch (const std::out_of_range&) {
    return std::nullopt;
  }
}

void KeptBytes::keep(const std::string& key, std::span<const std::byte> value) const {
  if (value.size() > kMostOfOne) {
    return;
  }
  try {
    fs::create_directories(folder_);
    make_room(value.size());
    require_free_bytes(folder_, value.size() + kSpareCacheBytes);
    write_cache_file(path_of(key), {std::span<const std::byte>(file_of(key, value))});
  } catch (const std::runtime_error&) {
    return;  // there is no room: the value is computed again the next time
  }
}

void KeptBytes::make_room(std::uintmax_t bytes) const {
  std::vector<std::pair<fs::file_time_type, fs::path>> files;
  std::uintmax_t held = bytes;
  for (const auto& entry : fs::directory_iterator(folder_)) {
    std::error_code gone;
    held += entry.file_size(gone);
    files.emplace_back(entry.last_write_time(gone), entry.path());
  }
  std::ranges::sort(files);
  for (const auto& [used, path] : files) {
    if (held <= most_of_all_) {
      return;
    }
    std::error_code gone;
    const std::uintmax_t size = fs::file_size(path, gone);
    fs::remove(path, gone);
    held -= std::min(held, size);
  }
}

std::span<const std::byte> BytesReader::take(std::size_t size) {
  if (size > bytes_.size()) {
    throw std::out_of_range("a value ends before its last part");
  }
  const auto taken = bytes_.first(size);
  bytes_ = bytes_.subspan(size);
  return taken;
}

std::int64_t BytesReader::number() {
  std::int64_t value = 0;
  std::memcpy(&value, take(sizeof value).data(), sizeof value);
  return value;
}

std::span<const std::byte> BytesReader::bytes() { return take(static_cast<std::size_t>(number())); }

std::vector<std::int64_t> BytesReader::numbers() { return values_of<std::int64_t>(bytes()); }

std::vector<float> BytesReader::floats() { return values_of<float>(bytes()); }

void BytesWriter::number(std::int64_t value) {
  const auto* from = reinterpret_cast<const std::byte*>(&value);
  written_.insert(written_.end(), from, from + sizeof value);
}

void BytesWriter::bytes(std::span<const std::byte> values) {
  number(static_cast<std::int64_t>(values.size()));
  written_.insert(written_.end(), values.begin(), values.end());
}

void BytesWriter::numbers(std::span<const std::int64_t> values) { bytes(std::as_bytes(values)); }

void BytesWriter::floats(std::span<const float> values) { bytes(std::as_bytes(values)); }

}  // namespace decodelab
