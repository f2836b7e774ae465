// How tokens become a text again.
#include "engine/checkpoint/token_decoder.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include <nlohmann/json.hpp>

#include "engine/checkpoint/tokenizer_part.h"

namespace decodelab {
namespace {

using nlohmann::json;
using Tokens = std::vector<std::string>;

void replace_in_all(Tokens& tokens, const Regex& pattern, std::string_view content) {
  for (std::string& token : tokens) {
    token = pattern.replace(token, content);
  }
}

/// Drops up to `count` times `content` at the beginning or at the end of a token.
void strip(std::string& token, std::string_view content, std::int64_t count, bool at_end) {
  for (std::int64_t dropped = 0; dropped < count; ++dropped) {
    if (content.empty() || !(at_end ? token.ends_with(content) : token.starts_with(content))) {
      return;
    }
    token.erase(at_end ? token.size() - content.size() : 0, content.size());
  }
}

}  // namespace

class TokenDecoder::Builder {
 public:
  explicit Builder(const std::string& file_name) : part_("decoder", file_name) {}

  std::vector<Step> build(const json& description, Spelling spelling) {
    const bool byte_level =
        kind_of(description) == "ByteLevel" || (description.is_null() && spelling == Spelling::bytes);
    if (byte_level != (spelling == Spelling::bytes)) {
      part_.refuse_kind(spelling == Spelling::bytes
                            ? "ByteLevel, as the pre-tokenizer has it"
                            : "Metaspace, or a Sequence of Replace, ByteFallback, Fuse and Strip",
                        description);
    }
    if (!byte_level) {
      add(description);
    }
    return std::move(steps_);
  }

 private:
  void add(const json& description) {
    const std::string kind = kind_of(description);
    if (kind == "Sequence") {
      for (const json& inner : part_.list(description, "decoders")) {
        add(inner);
      }
    } else if (kind == "Metaspace") {
      add_metaspace(description);
    } else if (kind == "Replace") {
      add([pattern = part_.pattern(description), content = part_.text(description, "content")](Tokens& tokens) {
        replace_in_all(tokens, pattern, content);
      });
    } else if (kind == "ByteFallback") {
      add([](Tokens& tokens) {
        for (std::string& token : tokens) {
          if (const int byte = byte_of_token(token); byte >= 0) {
            token = std::string(1, static_cast<char>(byte));
          }
        }
      });
    } else if (kind == "Fuse") {
      add([](Tokens& tokens) { tokens = {std::accumulate(tokens.begin(), tokens.end(), std::string())}; });
    } else if (kind == "Strip") {
      add_strip(description);
    } else {
      part_.refuse_kind("Metaspace, or a Sequence of Replace, ByteFallback, Fuse and Strip", description);
    }
  }

  void add(std::function<void(Tokens&)> apply, bool at_beginning = false) {
    steps_.push_back({.apply = std::move(apply), .at_beginning = at_beginning});
  }

  void add_metaspace(const json& description) {
    const std::string replacement = part_.text(description, "replacement");
    if (!description.contains("prepend_scheme") || part_.text(description, "prepend_scheme") != "never") {
      add(
          [pattern = pattern_of_text(replacement)](Tokens& tokens) {
            if (!tokens.empty()) {
              tokens.front() = pattern.replace(tokens.front(), "");
            }
          },
          /*at_beginning=*/true);
    }
    add([pattern = pattern_of_text(replacement)](Tokens& tokens) { replace_in_all(tokens, pattern, " "); });
  }

  void add_strip(const json& description) {
    const std::string content = part_.text(description, "content");
    add(
        [content, count = count_of(description, "start")](Tokens& tokens) {
          std::ranges::for_each(tokens, [&](std::string& token) { strip(token, content, count, false); });
        },
        /*at_beginning=*/true);
    add([content, count = count_of(description, "stop")](Tokens& tokens) {
      std::ranges::for_each(tokens, [&](std::string& token) { strip(token, content, count, true); });
    });
  }

  std::int64_t count_of(const json& description, const char* key) const {
    const auto value = description.find(key);
    if (value == description.end() || !value->is_number_unsigned() || value->get<std::uint64_t>() > kMaxId) {
      part_.refuse(std::string("'") + key + "' as a number of characters", description);
    }
    return value->get<std::int64_t>();
  }

  TokenizerPart part_;
  std::vector<Step> steps_;
};

TokenDecoder::TokenDecoder(const json& description, Spelling spelling, const std::string& file_name)
    : steps_(Builder(file_name).build(description, spelling)) {}

std::string TokenDecoder::decode(Tokens tokens, bool begins) const {
  for (const Step& step : steps_) {
    if (begins || !step.at_beginning) {
      step.apply(tokens);
    }
  }
  return std::accumulate(tokens.begin(), tokens.end(), std::string());
}

}  // namespace decodelab
