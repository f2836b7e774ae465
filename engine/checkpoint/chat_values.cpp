// Computes with the values of chat templates.
#include "engine/checkpoint/chat_values.h"

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <stdexcept>

#include <fmt/format.h>

#include "base/text.h"

namespace decodelab {
namespace {

using nlohmann::json;

[[noreturn]] void refuse_chat_value(std::string_view expected, std::string_view got) {
  throw std::invalid_argument(fmt::format("expected {}, got {}", expected, in_quotes(got)));
}

const std::string& as_text(const ChatValue& value) { return value.get_ref<const std::string&>(); }

/// Changes the case of ASCII letters.
std::string in_case(std::string text, bool upper) {
  for (char& letter : text) {
    const auto byte = static_cast<unsigned char>(letter);
    if (byte < 0x80) {
      letter = static_cast<char>(upper ? std::toupper(byte) : std::tolower(byte));
    }
  }
  return text;
}

std::string json_of(const ChatValue& value) { return value.dump(-1, ' ', false, json::error_handler_t::replace); }

/// Returns false where the result has no place in 64 bits, or there is none.
bool compute(std::string_view operation, std::int64_t left, std::int64_t right, ChatValue& result) {
  std::int64_t number = 0;
  bool fails = false;
  if (operation == "+") {
    fails = __builtin_add_overflow(left, right, &number);
  } else if (operation == "-") {
    fails = __builtin_sub_overflow(left, right, &number);
  } else if (operation == "*") {
    fails = __builtin_mul_overflow(left, right, &number);
  } else if (operation == "%") {
    fails = right <= 0;
    number = fails ? 0 : left % right;
    number += number < 0 ? right : 0;
  } else {
    result = operation == "<"    ? left < right
             : operation == ">"  ? left > right
             : operation == "<=" ? left <= right
                                 : left >= right;
    return true;
  }
  result = number;
  return !fails;
}

}  // namespace

const ChatValue& undefined_chat_value() {
  static const ChatValue undefined(json::value_t::discarded);
  return undefined;
}

bool is_true(const ChatValue& value) {
  switch (value.type()) {
    case json::value_t::discarded:
    case json::value_t::null: return false;
    case json::value_t::boolean: return value.get<bool>();
    case json::value_t::string: return !as_text(value).empty();
    case json::value_t::array:
    case json::value_t::object: return !value.empty();
    default: return value != 0;
  }
}

std::string chat_text(const ChatValue& value) {
  if (value.is_string()) {
    return as_text(value);
  }
  if (value.is_discarded()) {
    return "";
  }
  if (value.is_null()) {
    return "None";
  }
  if (value.is_boolean()) {
    return value.get<bool>() ? "True" : "False";
  }
  return json_of(value);
}

bool equal_chat_values(const ChatValue& left, const ChatValue& right) {
  return left.is_discarded() || right.is_discarded() ? left.is_discarded() == right.is_discarded() : left == right;
}

ChatValue chat_member(const ChatValue& value, const ChatValue& key) {
  if (value.is_object() && key.is_string()) {
    const auto found = value.find(as_text(key));
    return found == value.end() ? undefined_chat_value() : *found;
  }
  if (value.is_array() && key.is_number_integer()) {
    const auto size = static_cast<std::int64_t>(value.size());
    const auto given = key.get<std::int64_t>();
    const std::int64_t index = given < 0 ? given + size : given;
    return index < 0 || index >= size ? undefined_chat_value() : value[static_cast<std::size_t>(index)];
  }
  if (value.is_discarded()) {
    refuse_chat_value(fmt::format("a defined value before [{}]", chat_text(key)), "an undefined one");
  }
  return undefined_chat_value();
}

ChatValue chat_slice(const ChatValue& value, const ChatValue& first, const ChatValue& last) {
  if (!value.is_string() && !value.is_array()) {
    refuse_chat_value("a text or a list before a slice", chat_text(value));
  }
  const auto size = static_cast<std::int64_t>(value.is_string() ? as_text(value).size() : value.size());
  const auto place = [&](const ChatValue& bound, std::int64_t otherwise) {
    if (bound.is_discarded()) {
      return otherwise;
    }
    if (!bound.is_number_integer()) {
      refuse_chat_value("integers as the bounds of a slice", chat_text(bound));
    }
    const auto index = bound.get<std::int64_t>();
    return std::clamp(index < 0 ? index + size : index, std::int64_t{0}, size);
  };
  const std::int64_t begin = place(first, 0);
  const std::int64_t end = std::max(begin, place(last, size));
  if (value.is_string()) {
    return as_text(value).substr(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin));
  }
  return json::array_t(value.begin() + begin, value.begin() + end);
}

ChatValue chat_operation(std::string_view operation, const ChatValue& left, const ChatValue& right) {
  if (operation == "+" && left.is_string() && right.is_string()) {
    return as_text(left) + as_text(right);
  }
  if (operation == "+" && left.is_array() && right.is_array()) {
    ChatValue both = left;
    both.insert(both.end(), right.begin(), right.end());
    return both;
  }
  ChatValue result;
  if (!left.is_number_integer() || !right.is_number_integer() ||
      !compute(operation, left.get<std::int64_t>(), right.get<std::int64_t>(), result)) {
    refuse_chat_value(fmt::format("two values that {} goes with", operation),
                      fmt::format("{} {} {}", chat_text(left), operation, chat_text(right)));
  }
  return result;
}

bool chat_contains(const ChatValue& whole, const ChatValue& part) {
  if (whole.is_string() && part.is_string()) {
    return as_text(whole).find(as_text(part)) != std::string::npos;
  }
  if (whole.is_object() && part.is_string()) {
    return whole.contains(as_text(part));
  }
  if (whole.is_array()) {
    return std::ranges::any_of(whole, [&](const ChatValue& value) { return equal_chat_values(value, part); });
  }
  refuse_chat_value("a text, a list or a mapping after 'in'", chat_text(whole));
}

bool chat_test(const ChatValue& value, std::string_view test) {
  if (test == "defined" || test == "undefined") {
    return value.is_discarded() == (test == "undefined");
  }
  if (test == "none") {
    return value.is_null();
  }
  if (test == "string") {
    return value.is_string();
  }
  if (test == "mapping") {
    return value.is_object();
  }
  if (test == "iterable") {
    return value.is_array() || value.is_string() || value.is_object();
  }
  if (test == "true" || test == "false") {
    return value.is_boolean() && value.get<bool>() == (test == "true");
  }
  refuse_chat_value("a known test after 'is'", test);
}

ChatValue chat_filter(const ChatValue& value, std::string_view filter, const std::vector<ChatValue>& arguments) {
  if (filter == "default" && arguments.size() == 1) {
    return value.is_discarded() ? arguments.front() : value;
  }
  if (filter == "tojson" && arguments.empty() && value.is_primitive()) {
    return json_of(value);
  }
  if (value.is_string() && arguments.empty()) {
    if (filter == "trim") {
      return std::string(trimmed(as_text(value)));
    }
    if (filter == "lower" || filter == "upper") {
      return in_case(as_text(value), filter == "upper");
    }
    if (filter == "length") {
      // Continuation bytes of UTF-8 are no characters.
      return std::ranges::count_if(as_text(value),
                                   [](char byte) { return (static_cast<unsigned>(byte) & 0xc0u) != 0x80u; });
    }
  }
  if ((value.is_array() || value.is_object()) && arguments.empty() && filter == "length") {
    return static_cast<std::int64_t>(value.size());
  }
  if (value.is_array() && arguments.empty() && (filter == "first" || filter == "last")) {
    return value.empty() ? undefined_chat_value() : filter == "first" ? value.front() : value.back();
  }
  refuse_chat_value("a filter that is known for such a value", filter);
}

ChatValue chat_method(const ChatValue& value, std::string_view method, const std::vector<ChatValue>& arguments) {
  if (value.is_string() && arguments.empty() && (method == "strip" || method == "lower" || method == "upper")) {
    return chat_filter(value, method == "strip" ? "trim" : method, {});
  }
  if (value.is_string() && arguments.size() == 1 && arguments.front().is_string()) {
    if (method == "startswith") {
      return as_text(value).starts_with(as_text(arguments.front()));
    }
    if (method == "endswith") {
      return as_text(value).ends_with(as_text(arguments.front()));
    }
  }
  refuse_chat_value("a method that texts are known to have", method);
}

}  // namespace decodelab
