// Numbers and paragraphs of plain text, as the account of a trace prints them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace decodelab {

/// Returns a number as "1,234,567".
std::string grouped(std::int64_t value);

/// Returns a value rounded to a whole number from 100 on, else with one digit; 0 is "0".
std::string amount_text(double value);
std::string percent_text(double share);

/// Replaces what a terminal would act on, since names come from files.
std::string printable(std::string_view text);

/// Returns a paragraph that ends after two lines, with "..." where there was more.
std::string finding(std::string_view first, std::string_view text, std::size_t indent);

/// Returns `first` and then `text`, broken between words; lines after the first are indented by `indent`.
std::string paragraph(std::string_view first, std::string_view text, std::size_t indent);

}  // namespace decodelab
