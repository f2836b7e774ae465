// Answers tests/engine/checkpoint/tokenizer_oracle_test.py: ids of texts and what they say, by the tokenizer of a
// directory or of a GGUF file.
//
// usage: tokenizer_values DIRECTORY|FILE < a JSON string a line > {"ids": [...], "text": "...", "further": "..."} a
// line
#include <iostream>
#include <stdexcept>
#include <string>

#include <nlohmann/json.hpp>

#include "engine/checkpoint/model_text.h"

int main(int argc, char** argv) {
  using nlohmann::json;
  if (argc != 2) {
    std::cerr << "usage: tokenizer_values DIRECTORY|FILE\n";
    return 2;
  }
  try {
    const decodelab::ModelText model = decodelab::load_model_text(argv[1]);
    const decodelab::Tokenizer& tokenizer = model.require_tokenizer("the test");
    std::cout << json{{"before", model.affixes.before}, {"behind", model.affixes.behind}} << '\n';
    for (std::string line; std::getline(std::cin, line);) {
      const auto ids = tokenizer.encode(json::parse(line).get<std::string>());
      const json answer{{"ids", ids}, {"text", tokenizer.decode(ids)}, {"further", tokenizer.decode_further(ids)}};
      std::cout << answer.dump(-1, ' ', false, json::error_handler_t::replace) << '\n';
    }
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}
