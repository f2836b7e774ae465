// The values in chat templates: what Jinja's tests, filters, methods and operators do with them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

namespace decodelab {

/// A value of a template: text, integer, truth value, none, list or mapping; `discarded` where it is undefined.
using ChatValue = nlohmann::json;

/// Returns the undefined value.
const ChatValue& undefined_chat_value();

/// Returns whether Jinja takes the value for true.
bool is_true(const ChatValue& value);

/// Returns what `{{ value }}` prints.
std::string chat_text(const ChatValue& value);

/// Returns whether two values are equal; undefined is equal to itself alone.
bool equal_chat_values(const ChatValue& left, const ChatValue& right);

/// All of these throw std::invalid_argument, saying what was expected, for values and names that they do not know.
/// Source: jinja.palletsprojects.com/en/stable/templates.

/// Returns `value.key` or `value[key]`; undefined where a list or mapping has none.
ChatValue chat_member(const ChatValue& value, const ChatValue& key);
/// Returns `value[first:last]` of a list or a text, whose bytes are counted; undefined bounds are its ends.
ChatValue chat_slice(const ChatValue& value, const ChatValue& first, const ChatValue& last);
/// Returns `left operation right` for `+ - * %`, and for `< > <= >=` of integers.
ChatValue chat_operation(std::string_view operation, const ChatValue& left, const ChatValue& right);
/// Returns `part in whole`.
bool chat_contains(const ChatValue& whole, const ChatValue& part);
/// Returns `value is test`: defined, undefined, none, string, mapping, iterable, true, false.
bool chat_test(const ChatValue& value, std::string_view test);
/// Returns `value | filter(arguments)`: trim, lower, upper, length, first, last, default, tojson (of no list or
/// mapping).
ChatValue chat_filter(const ChatValue& value, std::string_view filter, const std::vector<ChatValue>& arguments);
/// Returns `value.method(arguments)` of a text: strip, lower, upper, startswith, endswith.
ChatValue chat_method(const ChatValue& value, std::string_view method, const std::vector<ChatValue>& arguments);

}  // namespace decodelab
