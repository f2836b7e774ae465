// What a tokenizer.json changes in a text before it is cut.
#include "engine/checkpoint/normalizer.h"

#include <memory>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "engine/checkpoint/precompiled_map.h"
#include "engine/checkpoint/tokenizer_part.h"
#include "engine/checkpoint/unicode.h"

namespace decodelab {
namespace {

using nlohmann::json;
using NormalizerStep = std::function<std::string(std::string_view)>;

class NormalizerBuilder {
 public:
  explicit NormalizerBuilder(const std::string& file_name) : part_("normalizer", file_name) {}

  void add(const json& description) {
    const std::string kind = kind_of(description);
    if (kind == "Sequence") {
      for (const json& inner : part_.list(description, "normalizers")) {
        add(inner);
      }
    } else if (const auto form = form_of(kind)) {
      steps_.emplace_back([form = *form](std::string_view text) { return in_normal_form(text, form); });
    } else if (kind == "Prepend") {
      steps_.emplace_back([before = part_.text(description, "prepend")](std::string_view text) {
        return text.empty() ? std::string() : before + std::string(text);
      });
    } else if (kind == "Replace") {
      steps_.emplace_back([pattern = part_.pattern(description), content = part_.text(description, "content")](
                              std::string_view text) { return pattern.replace(text, content); });
    } else if (kind == "Strip") {
      steps_.emplace_back([left = part_.flag(description, "strip_left"),
                           right = part_.flag(description, "strip_right")](std::string_view text) {
        return std::string(without_spaces(text, left, right));
      });
    } else if (kind == "Precompiled") {
      steps_.emplace_back(precompiled(description));
    } else {
      part_.refuse_kind("NFC, NFD, NFKC, NFKD, Prepend, Replace, Strip, Precompiled, or a Sequence of them",
                        description);
    }
  }

  std::vector<NormalizerStep> take() { return std::move(steps_); }

 private:
  static std::optional<NormalForm> form_of(const std::string& kind) {
    if (kind == "NFC") {
      return NormalForm::nfc;
    }
    if (kind == "NFD") {
      return NormalForm::nfd;
    }
    if (kind == "NFKC") {
      return NormalForm::nfkc;
    }
    return kind == "NFKD" ? std::optional(NormalForm::nfkd) : std::nullopt;
  }

  NormalizerStep precompiled(const json& description) const {
    const std::string encoded = part_.text(description, "precompiled_charsmap");
    const auto table = from_base64(encoded);
    if (!table) {
      part_.refuse("'precompiled_charsmap' in base64", description);
    }
    if (table->empty()) {
      return [](std::string_view text) { return std::string(text); };
    }
    try {
      const auto map = std::make_shared<const PrecompiledMap>(*table);
      return [map](std::string_view text) { return map->replaced(text); };
    } catch (const std::invalid_argument& error) {
      throw std::invalid_argument(fmt::format("{}: 'precompiled_charsmap': {}", part_.place(), error.what()));
    }
  }

  TokenizerPart part_;
  std::vector<NormalizerStep> steps_;
};

}  // namespace

Normalizer::Normalizer(const json& description, const std::string& file_name) {
  if (description.is_null()) {
    return;
  }
  NormalizerBuilder builder(file_name);
  builder.add(description);
  steps_ = builder.take();
}

std::string Normalizer::normalize(std::string_view text) const {
  std::string result(text);
  for (const NormalizerStep& step : steps_) {
    result = step(result);
  }
  return result;
}

}  // namespace decodelab
