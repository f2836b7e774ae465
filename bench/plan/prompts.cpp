// Draws prompts by the counter-based generator that makes synthetic weights.
#include "bench/plan/prompts.h"

#include "engine/kernels/philox.h"

namespace decodelab {

std::vector<std::vector<std::int64_t>> random_prompts(std::uint64_t seed, std::int64_t batch, std::int64_t length,
                                                      std::int64_t vocabulary_size) {
  std::vector<std::vector<std::int64_t>> prompts(static_cast<std::size_t>(batch));
  constexpr std::uint64_t kPromptStream = 0;
  std::uint64_t counter = 0;
  for (auto& prompt : prompts) {
    for (std::int64_t token = 0; token < length; ++token) {
      prompt.push_back(static_cast<std::int64_t>(philox4x32(philox_counter(counter++, kPromptStream), seed).word[0] %
                                                 static_cast<std::uint64_t>(vocabulary_size)));
    }
  }
  return prompts;
}

}  // namespace decodelab
