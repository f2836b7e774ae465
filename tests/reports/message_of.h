// The sentence of the std::invalid_argument that a call throws.
#pragma once

#include <functional>
#include <stdexcept>
#include <string>

namespace decodelab::testing {

/// What the call's std::invalid_argument says; where it throws something else or nothing, a text that no test expects.
inline std::string message_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const std::invalid_argument& error) {
    return error.what();
  } catch (const std::exception& error) {
    return std::string("not std::invalid_argument: ") + error.what();
  }
  return "nothing was thrown";
}

}  // namespace decodelab::testing
