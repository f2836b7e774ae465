// The reference of the policy: log-probabilities and ranks, whatever was asked for.
#include "engine/sampling/token_details.h"

#include <stdexcept>

#include <fmt/format.h>

namespace decodelab {
namespace {

class DetailsAlways final : public TokenDetailsPolicy {
 public:
  DetailsRequest effective(const DetailsRequest& requested) const override {
    DetailsRequest all = requested;
    all.generated.log_prob = all.generated.rank = all.prompt.log_prob = true;
    return all;
  }
};

}  // namespace

void check_details(const DetailsRequest& request, std::int64_t vocabulary_size) {
  for (const TokenRequest* of : {&request.generated, &request.prompt}) {
    if (of->top < 0) {
      throw std::invalid_argument(
          fmt::format("{} of the most probable tokens were asked for: expected 0 or more", of->top));
    }
    for (const std::int64_t id : of->ids) {
      if (id < 0 || id >= vocabulary_size) {
        throw std::invalid_argument(
            fmt::format("the log-probability of token id {} was asked for, but the vocabulary has the ids 0 to {}", id,
                        vocabulary_size - 1));
      }
    }
  }
}

std::unique_ptr<TokenDetailsPolicy> make_details_always() { return std::make_unique<DetailsAlways>(); }

}  // namespace decodelab
