// Draws prompts by the counter-based generator that makes synthetic weights, or cuts them from those of a person.
#include "bench/plan/prompts.h"

#include <algorithm>
#include <stdexcept>

#include <fmt/format.h>

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

std::vector<RealPrompt> real_prompts(std::string_view flag, const std::vector<PromptLine>& lines, const ModelText& text,
                                     std::int64_t vocabulary_size) {
  std::vector<RealPrompt> prompts;
  for (const PromptLine& line : lines) {
    RealPrompt prompt{.text = line.text, .prompt_class = line.prompt_class, .ids = line.ids};
    if (prompt.ids.empty()) {
      prompt.ids = line.chat ? text.chat_ids(flag, line.text) : text.prompt_ids(flag, line.text);
    }
    const auto outside = std::ranges::find_if(prompt.ids, [&](std::int64_t id) { return id >= vocabulary_size; });
    if (outside != prompt.ids.end()) {
      throw std::invalid_argument(
          fmt::format("{}: prompt {} has the token id {}, but the vocabulary has the ids 0 to {}", flag,
                      prompts.size() + 1, *outside, vocabulary_size - 1));
    }
    prompts.push_back(std::move(prompt));
  }
  return prompts;
}

std::vector<std::vector<std::int64_t>> cell_prompts(const std::vector<RealPrompt>& prompts, std::uint64_t seed,
                                                    std::int64_t batch, std::int64_t length,
                                                    std::int64_t vocabulary_size) {
  if (prompts.empty()) {
    return random_prompts(seed, batch, length, vocabulary_size);
  }
  std::vector<std::vector<std::int64_t>> rows(static_cast<std::size_t>(batch));
  for (std::size_t row = 0; row < rows.size(); ++row) {
    for (std::size_t next = row; std::ssize(rows[row]) < length; ++next) {
      const std::vector<std::int64_t>& ids = prompts[next % prompts.size()].ids;
      const auto room = static_cast<std::size_t>(length) - rows[row].size();
      rows[row].insert(rows[row].end(), ids.begin(),
                       ids.begin() + static_cast<std::ptrdiff_t>(std::min(room, ids.size())));
    }
  }
  return rows;
}

}  // namespace decodelab
