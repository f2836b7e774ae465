// A file descriptor that is closed by its destructor.
#pragma once

#include <unistd.h>

namespace decodelab {

/// Closes `value` unless it is negative, which stands for a file that could not be opened.
struct Descriptor {
  int value;
  ~Descriptor() {
    if (value >= 0) {
      ::close(value);
    }
  }
};

}  // namespace decodelab
