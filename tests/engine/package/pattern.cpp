// A completion that matches a pattern: the vocabulary says which bytes each token stands for.
#include <example.h>

#include "engine/generation.h"

int main(int count, char** arguments) {
  const decodelab::Engine engine = example_engine(count, arguments);
  std::vector<std::string> texts(static_cast<std::size_t>(engine.model().config().vocabulary_size));
  for (std::size_t id = 1; id < texts.size(); ++id) {
    texts[id] = std::string(1, static_cast<char>('a' + id % 26));
  }
  const auto vocabulary = std::make_shared<const decodelab::MaskVocabulary>(texts, std::vector<std::int64_t>{0});
  const auto completion = decodelab::generate(
      engine, {.prompts = {{5, 6}}, .eos_token_ids = {0}, .rules = {{.regex = "(ab|c)+d"}}, .vocabulary = vocabulary});
  for (const std::int64_t id : completion.front().token_ids) {
    std::cout << texts[static_cast<std::size_t>(id)];
  }
  std::cout << ' ' << completion.front().finish_reason << '\n';
}
