// Why a model that ranks share cannot go on.
#pragma once

#include <stdexcept>

namespace decodelab {

/// A rank has failed or ended; the others cannot go on.
class RankFailed : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace decodelab
