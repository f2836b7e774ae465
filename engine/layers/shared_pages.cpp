// Parts of shared pages.
#include "engine/layers/shared_pages.h"

#include "base/round_up.h"
#include "engine/layers/kv_pages.h"

namespace decodelab {

SharedPages SharedPages::part(std::int64_t from, std::int64_t to) const {
  SharedPages some{.begin = begin + from, .end = begin + to};
  const std::int64_t first = some.begin / kPageTokens - begin / kPageTokens;
  const std::int64_t last = divided_up(some.end, kPageTokens) - begin / kPageTokens;
  for (const std::vector<at::Tensor>& pages : layers) {
    some.layers.emplace_back(pages.begin() + first, pages.begin() + last);
  }
  return some;
}

std::int64_t SharedPages::bytes() const {
  std::int64_t total = 0;
  for (const std::vector<at::Tensor>& pages : layers) {
    for (const at::Tensor& page : pages) {
      total += static_cast<std::int64_t>(page.nbytes());
    }
  }
  return total;
}

}  // namespace decodelab
