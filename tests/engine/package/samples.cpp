// Four samples of one prompt, which is prefilled once.
#include <example.h>

#include "engine/generation.h"

int main(int count, char** arguments) {
  const decodelab::Engine engine = example_engine(count, arguments);
  const auto samples = decodelab::generate(engine, {.prompts = {{5, 6, 7, 8}},
                                                    .max_tokens = 6,
                                                    .sampling = {{.sample = true, .temperature = 2, .seed = 3}},
                                                    .samples = 4});
  for (const decodelab::Completion& sample : samples) {
    print(sample.token_ids);
  }
}
