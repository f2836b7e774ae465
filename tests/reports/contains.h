// An assertion that a text has certain parts; on failure it prints the text.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

namespace decodelab::testing {

inline ::testing::AssertionResult contains(const std::string& text, std::initializer_list<std::string_view> parts) {
  for (const std::string_view part : parts) {
    if (text.find(part) == std::string::npos)
      return ::testing::AssertionFailure() << "'" << part << "' is not in: " << text;
  }
  return ::testing::AssertionSuccess();
}

}  // namespace decodelab::testing
