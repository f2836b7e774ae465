// What a refused call says.
#pragma once

#include <initializer_list>
#include <stdexcept>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

namespace decodelab {

/// What a call throws as std::invalid_argument; empty when it throws nothing. Other exceptions pass.
template <typename Call>
std::string refusal(Call&& call) {
  try {
    call();
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "";
}

/// Returns whether a message has all of the parts, with the message where it lacks one.
inline ::testing::AssertionResult says(const std::string& message, std::initializer_list<std::string_view> parts) {
  for (const std::string_view part : parts) {
    if (message.find(part) == std::string::npos) {
      return ::testing::AssertionFailure() << "expected " << part << " in: " << message;
    }
  }
  return ::testing::AssertionSuccess();
}

}  // namespace decodelab
