// Log-probabilities of the logits that were asked for.
#include "variants/top_tokens/scanned_details.h"

namespace decodelab {

TokenDetails scanned_details(const TokenRequest& asked, const LogitScan& scan, float own,
                             const std::function<float(std::size_t place)>& logit_of_id,
                             const std::function<LargestLogits()>& largest) {
  TokenDetails found;
  found.refused = asked.any() && !scan.is_distribution();
  if (!asked.any() || found.refused) {
    return found;
  }
  found.log_prob = asked.log_prob ? scan.log_prob(own) : 0;
  found.rank = asked.rank ? 1 + scan.greater : 0;
  for (std::size_t place = 0; place < asked.ids.size(); ++place) {
    found.log_probs_of_ids.push_back(scan.log_prob(logit_of_id(place)));
  }
  if (asked.top > 0) {
    set_top(found, largest(), [&](const RankedLogit& token) { return scan.log_prob(token.logit); });
  }
  return found;
}

}  // namespace decodelab
