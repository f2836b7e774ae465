// The expressions of chat templates: the part of Jinja that they are written in.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "engine/checkpoint/chat_values.h"

namespace decodelab {

/// What the names in a template stand for. A name that is missing is undefined, as in Jinja.
using ChatNames = std::map<std::string, ChatValue, std::less<>>;

/// Returns the value of one expression.
///
/// Known are texts, integers, lists, `true`, `false`, `none`; names, attributes, subscripts, slices; `or`, `and`,
/// `not`, `== != < > <= >=`, `in`, `is`, `A if B else C`, `+ - * % ~`; the filters, tests and methods of chat_values.h;
/// and raise_exception(). Only what decides the value is computed, so the rest may use what is not known. Throws
/// std::invalid_argument that says what was expected, and where. Source: jinja.palletsprojects.com/en/stable/templates
/// ("Expressions").
ChatValue evaluate_chat_expression(std::string_view expression, const ChatNames& names);

}  // namespace decodelab
