// What a refused call says.
#pragma once

#include <stdexcept>
#include <string>

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

}  // namespace decodelab
