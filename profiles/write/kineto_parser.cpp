// A SAX handler that knows two places of a kineto file: its top, and an event with its arguments.
#include "profiles/write/kineto_parser.h"

#include <charconv>
#include <cmath>
#include <istream>
#include <stdexcept>
#include <utility>

#include <nlohmann/json.hpp>

#include "profiles/write/gzip_input.h"
#include "profiles/write/rows.h"
#include "profiles/write/session_text.h"

namespace decodelab {
namespace {

using nlohmann::json;

constexpr std::size_t kMostArguments = 256;
constexpr std::size_t kMostDevices = 1024;
constexpr int kMostDepth = 64;
constexpr double kNsPerMicro = 1000;

class Handler final : public nlohmann::json_sax<json> {
 public:
  Handler(GzipInput& input, const std::function<void(KinetoEvent&)>& take) : input_(input), take_(take) {}

  KinetoFile file;
  std::string error;

  bool null() override { return value({}); }
  bool boolean(bool value_of) override { return value({.number = value_of ? 1 : 0}); }
  bool number_integer(number_integer_t number) override { return value({.number = number}, std::to_string(number)); }
  bool number_unsigned(number_unsigned_t number) override {
    if (!std::in_range<std::int64_t>(number)) {
      return value({});
    }
    return value({.number = static_cast<std::int64_t>(number)}, std::to_string(number));
  }
  bool number_float(number_float_t number, const string_t& text) override { return value({.real = number}, text); }
  bool string(string_t& text) override { return value({.text = std::move(text)}); }
  bool binary(binary_t& /*bytes*/) override { return value({}); }

  bool start_object(std::size_t /*size*/) override {
    if (!enter()) {
      return false;
    }
    if (in_events_ && depth_ == events_depth_ + 1) {
      event_ = {};
    }
    if (in_devices_ && depth_ == kDevicesDepth + 1) {
      if (file.devices.size() == kMostDevices) {
        return fail("lists more than 1024 devices");
      }
      file.devices.emplace_back();
      in_device_ = true;
    }
    return true;
  }
  bool key(string_t& text) override {
    input_.reset_budget();
    if (depth_ == 1) {
      top_key_ = text;
    }
    if (in_events_ && depth_ == events_depth_ + 1) {
      event_key_ = text;
    }
    key_ = std::move(text);
    return true;
  }
  bool end_object() override {
    if (in_events_ && depth_ == events_depth_ + 1) {
      take_(event_);
    }
    if (depth_ == kDevicesDepth + 1) {
      in_device_ = false;
    }
    --depth_;
    return true;
  }
  bool start_array(std::size_t /*size*/) override {
    if (!enter()) {
      return false;
    }
    place_ = 0;
    // A trace of Chrome may be the array alone, without an object around it.
    if (!in_events_ && (depth_ == 1 || (depth_ == 2 && top_key_ == "traceEvents"))) {
      in_events_ = true;
      events_depth_ = depth_;
      has_events_ = true;
    }
    in_devices_ = in_devices_ || (!in_events_ && depth_ == kDevicesDepth && top_key_ == "deviceProperties");
    return true;
  }
  bool end_array() override {
    if (in_events_ && depth_ == events_depth_) {
      in_events_ = false;
    }
    if (in_devices_ && depth_ == kDevicesDepth) {
      in_devices_ = false;
    }
    --depth_;
    return true;
  }
  bool parse_error(std::size_t position, const std::string& /*token*/, const json::exception& /*exception*/) override {
    return fail("is not JSON: byte " + std::to_string(position) + " fits no value");
  }
  bool has_events() const { return has_events_; }

 private:
  static constexpr int kDevicesDepth = 2;

  bool fail(std::string reason) {
    error = std::move(reason);
    return false;
  }

  bool enter() {
    input_.reset_budget();
    return ++depth_ <= kMostDepth || fail("nests values more than " + std::to_string(kMostDepth) + " deep");
  }

  bool value(KinetoValue found, std::string_view token = {}) {
    input_.reset_budget();
    if (in_events_) {
      if (depth_ == events_depth_ + 1) {
        member(found, token);
      }
      if (depth_ == events_depth_ + 2 && event_key_ == "args") {
        if (event_.arguments.size() == kMostArguments) {
          return fail("has an event of more than 256 arguments");
        }
        event_.arguments[key_] = std::move(found);
      } else if (depth_ == events_depth_ + 3 && event_key_ == "args") {
        element(found);
      }
    } else if (in_device_ && depth_ == kDevicesDepth + 1) {
      device_member(found);
    } else if (depth_ == 1) {
      if (key_ == "baseTimeNanoseconds") {
        file.head.base_ns = found.number;
      }
      if (key_ == kSessionKey) {
        file.head.session_text = std::move(found.text);
      }
    }
    return true;
  }

  void member(KinetoValue& found, std::string_view token) {
    if (key_ == "ph") {
      event_.phase = std::move(found.text);
    } else if (key_ == "cat") {
      event_.category = std::move(found.text);
    } else if (key_ == "name") {
      event_.name = std::move(found.text);
    } else if (key_ == "pid") {
      event_.process = found.number;
    } else if (key_ == "tid") {
      event_.thread = found.number;
    } else if (key_ == "ts") {
      event_.start_ns = micros_to_ns(token);
    } else if (key_ == "dur") {
      event_.duration_ns = micros_to_ns(token);
    }
  }

  void element(const KinetoValue& found) {
    auto* const sizes = key_ == "grid" ? &event_.grid : key_ == "block" ? &event_.block : nullptr;
    if (sizes != nullptr && place_ < sizes->size()) {
      (*sizes)[place_++] = found.number.value_or(0);
    }
  }

  void device_member(const KinetoValue& found) {
    TraceDevice& device = file.devices.back();
    const auto number = [&](auto& member_of) {
      using Integer = std::remove_reference_t<decltype(member_of)>;
      if (found.number && std::in_range<Integer>(*found.number)) {
        member_of = static_cast<Integer>(*found.number);
      }
    };
    if (key_ == "id") {
      number(device.index);
    } else if (key_ == "name") {
      device.name = found.text;
    } else if (key_ == "totalGlobalMem") {
      number(device.memory_bytes);
    } else if (key_ == "computeMajor") {
      number(device.compute_major);
    } else if (key_ == "computeMinor") {
      number(device.compute_minor);
    } else if (key_ == "numSms") {
      number(device.multiprocessors);
    }
  }

  GzipInput& input_;
  const std::function<void(KinetoEvent&)>& take_;
  KinetoEvent event_;
  std::string top_key_;
  std::string event_key_;
  std::string key_;
  std::size_t place_ = 0;
  int depth_ = 0;
  int events_depth_ = 0;
  bool in_events_ = false;
  bool in_devices_ = false;
  bool in_device_ = false;  ///< A list of devices may hold what is none.
  bool has_events_ = false;
};

}  // namespace

std::optional<std::int64_t> micros_to_ns(std::string_view text) {
  const bool negative = text.starts_with('-');
  if (negative) {
    text.remove_prefix(1);
  }
  if (text.find_first_of("eE") != std::string_view::npos) {
    double micros = 0;
    std::from_chars(text.data(), text.data() + text.size(), micros);
    const double ns = std::round(micros * kNsPerMicro);
    if (!(ns <= static_cast<double>(kLatestTime))) {
      return std::nullopt;
    }
    return static_cast<std::int64_t>(negative ? -ns : ns);
  }
  // Reads the digits, since a double has no room for the ns of a year.
  std::int64_t micros = 0;
  const auto [point, error] = std::from_chars(text.data(), text.data() + text.size(), micros);
  if (error != std::errc() || micros > kLatestTime / 1000) {
    return std::nullopt;
  }
  std::int64_t ns = micros * 1000;
  std::int64_t unit = 100;
  const char* digit = point;
  if (digit != text.data() + text.size() && *digit == '.') {
    for (++digit; digit != text.data() + text.size() && unit > 0; ++digit, unit /= 10) {
      ns += (*digit - '0') * unit;
    }
    if (digit != text.data() + text.size() && *digit >= '5') {
      ++ns;
    }
  }
  return negative ? -ns : ns;
}

KinetoFile parse_kineto(const std::filesystem::path& path, std::int64_t most_value_bytes,
                        const std::function<void(KinetoEvent&)>& take) {
  GzipInput input(path, most_value_bytes);
  std::istream stream(&input);
  Handler handler(input, take);
  if (!json::sax_parse(stream, &handler)) {
    throw std::runtime_error(handler.error);
  }
  if (!handler.has_events()) {
    throw std::runtime_error("is JSON, but has no \"traceEvents\"");
  }
  return std::move(handler.file);
}

}  // namespace decodelab
