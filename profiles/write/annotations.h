// Writes one Perfetto track event with its debug annotations. This is a hot path, so annotations are encoded by hand.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include <protozero/pbf_writer.hpp>

#include "profiles/write/perfetto_schema.h"

namespace decodelab::perfetto {

class EventWriter {
 public:
  explicit EventWriter(protozero::pbf_writer& event) : event_(event) {}

  void number(Key key, std::int64_t value) {
    char* end = start(key);
    *end++ = static_cast<char>(annotation::int_value << 3);
    finish(varint(end, static_cast<std::uint64_t>(value)));
  }
  /// Writes the number unless it is `none`.
  void number_unless(Key key, std::int64_t value, std::int64_t none) {
    if (value != none) {
      number(key, value);
    }
  }
  /// Writes a text that InternedData holds, by its iid.
  void interned(Key key, std::uint64_t iid) {
    char* end = start(key);
    end = varint(end, annotation::string_value_iid << 3);
    finish(varint(end, iid));
  }
  void text(Key key, std::string_view value) {
    protozero::pbf_writer one(event_, event::annotations);
    one.add_uint64(annotation::name_iid, static_cast<std::uint64_t>(key) + 1);
    one.add_string(annotation::string_value, value.data(), value.size());
  }
  /// Writes a size as "132x1x1", and nothing for a size of zeros.
  void extent(Key key, const std::array<std::int32_t, 3>& size) {
    if (size == std::array<std::int32_t, 3>{}) {
      return;
    }
    char* end = start(key);
    *end++ = static_cast<char>(annotation::string_value << 3 | 2);
    char* length = end++;
    char* begin = end;
    for (std::size_t i = 0; i < size.size(); ++i) {
      if (i > 0) {
        *end++ = 'x';
      }
      end = decimal(end, size[i]);
    }
    *length = static_cast<char>(end - begin);
    finish(end);
  }
  protozero::pbf_writer& fields() { return event_; }

 private:
  char* start(Key key) {
    buffer_[0] = static_cast<char>(annotation::name_iid << 3);
    buffer_[1] = static_cast<char>(static_cast<unsigned>(key) + 1);
    return buffer_.data() + 2;
  }
  void finish(const char* end) {
    event_.add_message(event::annotations, buffer_.data(), static_cast<std::size_t>(end - buffer_.data()));
  }
  static char* varint(char* out, std::uint64_t value) {
    while (value >= 0x80) {
      *out++ = static_cast<char>(value | 0x80);
      value >>= 7;
    }
    *out++ = static_cast<char>(value);
    return out;
  }
  static char* decimal(char* out, std::int32_t value) {
    const std::string digits = std::to_string(value);  // Fits the small string: no allocation.
    return out + digits.copy(out, digits.size());
  }

  protozero::pbf_writer& event_;
  std::array<char, 64> buffer_{};
};

static_assert(kKeyNames.size() < 0x80, "iids of keys are written as one byte");

}  // namespace decodelab::perfetto
