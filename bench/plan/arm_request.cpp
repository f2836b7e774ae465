// Reads the settings behind '@'.
#include "bench/plan/arm_request.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>
#include <stdexcept>
#include <vector>

#include <fmt/format.h>

#include "bench/plan/step_scope.h"
#include "engine/masks/byte_nfa.h"

namespace decodelab {
namespace {

/// Splits at every '@' that is not doubled, and takes one of each doubled pair away.
std::vector<std::string> split_settings(std::string_view text) {
  std::vector<std::string> settings;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const bool doubled = text[at] == '@' && at + 1 < text.size() && text[at + 1] == '@';
    if (settings.empty() || (text[at] == '@' && !doubled)) {
      settings.emplace_back();  // What stands before the first setting is one '@', doubled or not.
      continue;
    }
    at += doubled ? 1 : 0;
    settings.back() += text[at];
  }
  return settings;
}

std::string doubled(std::string_view value) {
  std::string text;
  for (const char c : value) {
    text.append(c == '@' ? 2 : 1, c);
  }
  return text;
}

template <typename Number>
Number number_of(const std::string& setting, const std::string& value, Number least, Number below) {
  Number number{};
  const char* const end = value.data() + value.size();
  const auto parsed = std::from_chars(value.data(), end, number);
  if (value.empty() || parsed.ec != std::errc() || parsed.ptr != end || !(number >= least && number < below)) {
    throw std::invalid_argument(fmt::format("'@{}': expected a number from {} to below {}", setting, least, below));
  }
  return number;
}

struct BeginningsName {
  Beginnings beginnings;
  std::string_view name;
};
constexpr BeginningsName kBeginnings[] = {
    {Beginnings::shared, "shared"}, {Beginnings::few_shot, "few-shot"}, {Beginnings::turns, "turns"}};

Beginnings beginnings_of(const std::string& setting, std::string_view name) {
  const auto found = std::ranges::find(kBeginnings, name, &BeginningsName::name);
  if (found == std::ranges::end(kBeginnings)) {
    throw std::invalid_argument(
        fmt::format("'@{}': expected @prefix=SHARE, :shared, :few-shot or :turns behind it", setting));
  }
  return found->beginnings;
}

/// Sets of examples that prompts have in a few-shot workload, and the share of their beginning before those.
constexpr std::size_t kSetsOfExamples = 4;
constexpr std::int64_t kInstructionPart = 4;

/// More rows than any machine decodes.
constexpr std::int64_t kTooManySamples = 100'001;
/// More tokens than any vocabulary has.
constexpr std::int64_t kTooManyTokens = 100'000'001;

}  // namespace

std::int64_t ArmRequest::prefix_tokens(std::int64_t prompt_tokens) const {
  const double share = prefix.value_or(0) * static_cast<double>(prompt_tokens);
  return std::min(static_cast<std::int64_t>(std::floor(share)), prompt_tokens - 1);
}

DetailsRequest ArmRequest::details() const {
  const auto of_tokens = [](std::int64_t top) {
    return TokenRequest{.log_prob = top > 0, .rank = top > 0, .top = top};
  };
  return {.generated = of_tokens(top_tokens), .prompt = of_tokens(prompt_top_tokens), .text = text};
}

ArmRequest parse_arm_request(std::string_view text) {
  ArmRequest request;
  if (text.empty()) {
    return request;
  }
  std::set<std::string> set;
  for (const std::string& setting : split_settings(text)) {
    const std::size_t equals = setting.find('=');
    const std::string name = setting.substr(0, equals);
    const std::string value = equals == std::string::npos ? "" : setting.substr(equals + 1);
    if (!set.insert(name).second) {
      throw std::invalid_argument(fmt::format("'@{}' is set twice", name));
    }
    if (name == "regex") {
      compile_pattern(value);
      request.regex = value;
    } else if (name == "samples") {
      request.samples = number_of<std::int64_t>(setting, value, 1, kTooManySamples);
    } else if (name == "top-tokens") {
      const std::size_t colon = value.find(':');
      request.top_tokens = number_of<std::int64_t>(setting, value.substr(0, colon), 0, kTooManyTokens);
      request.text = colon != std::string::npos;
      if (request.text && value.substr(colon) != ":text") {
        throw std::invalid_argument(fmt::format("'@{}': expected @top-tokens=N, or :text behind it", setting));
      }
      if (request.text && request.top_tokens == 0) {
        throw std::invalid_argument(fmt::format("'@{}': expected a number above 0 where texts are asked for", setting));
      }
    } else if (name == "prompt-top-tokens") {
      request.prompt_top_tokens = number_of<std::int64_t>(setting, value, 0, kTooManyTokens);
    } else if (name == "typical-p") {
      request.typical_p = number_of<double>(setting, value, 0, 1);
      if (request.typical_p == 0) {
        throw std::invalid_argument(fmt::format("'@{}': expected a number above 0 and below 1", setting));
      }
    } else if (name == "prefix") {
      const std::size_t colon = value.find(':');
      request.prefix = number_of<double>(setting, value.substr(0, colon), 0, 1);
      request.beginnings =
          colon == std::string::npos ? Beginnings::shared : beginnings_of(setting, value.substr(colon + 1));
    } else {
      throw std::invalid_argument(
          fmt::format("'@{}' is no setting of a request: expected @regex=R, @samples=N, @prefix=SHARE[:KIND], "
                      "@top-tokens=N[:text], @prompt-top-tokens=N or @typical-p=P ('@' in a value is written '@@')",
                      setting));
    }
  }
  return request;
}

void begin_alike(const ArmRequest& request, std::int64_t rows, std::vector<std::vector<std::int64_t>>& prompts) {
  const auto copy = [&](std::size_t from, std::size_t to, std::int64_t tokens) {
    std::copy_n(prompts[from].begin(), std::min(tokens, std::ssize(prompts[from])), prompts[to].begin());
  };
  for (std::size_t prompt = 1; request.prefix && prompt < prompts.size(); ++prompt) {
    const std::int64_t tokens = request.prefix_tokens(std::ssize(prompts[prompt]));
    switch (request.beginnings) {
      case Beginnings::shared: copy(0, prompt, tokens); break;
      case Beginnings::few_shot:
        if (prompt < kSetsOfExamples) {
          copy(0, prompt, tokens / kInstructionPart);
        } else {
          copy(prompt % kSetsOfExamples, prompt, tokens);
        }
        break;
      case Beginnings::turns:
        if (prompt >= static_cast<std::size_t>(rows)) {
          copy(prompt - static_cast<std::size_t>(rows), prompt, tokens);
        }
        break;
    }
  }
}

std::string to_string(const ArmRequest& request) {
  std::string text;
  if (request.prefix) {
    const auto* const kind = std::ranges::find(kBeginnings, request.beginnings, &BeginningsName::beginnings);
    text += fmt::format("@prefix={}{}{}", *request.prefix, kind == kBeginnings ? "" : ":",
                        kind == kBeginnings ? "" : kind->name);
  }
  if (request.prompt_top_tokens > 0) {
    text += fmt::format("@prompt-top-tokens={}", request.prompt_top_tokens);
  }
  if (!request.regex.empty()) {
    text += "@regex=" + doubled(request.regex);
  }
  if (request.samples > 1) {
    text += fmt::format("@samples={}", request.samples);
  }
  if (request.top_tokens > 0) {
    text += fmt::format("@top-tokens={}{}", request.top_tokens, request.text ? ":text" : "");
  }
  if (request.typical_p < 1) {
    text += fmt::format("@typical-p={}", request.typical_p);
  }
  return text;
}

std::string_view request_part(std::string_view label) { return label.substr(std::min(label.find('@'), label.size())); }

std::string_view variants_part(std::string_view label) {
  return label.substr(0, label.size() - request_part(label).size());
}

std::int64_t samples_of(const ArmRequest& request, Phase phase, std::string_view scope) {
  return request.samples > 1 ? request.samples : scope_of_cell(phase, scope).samples;
}

std::string unsupported_reason(const ArmRequest& request, Phase phase) {
  if (begins_with_keys(phase) && request.samples > 1) {
    return "@samples: rows of such a cell have no prompt that they could share; ask for --phase prefill or generate";
  }
  if (begins_with_keys(phase) && request.prefix) {
    return "@prefix: such a cell begins behind its prompt; ask for --phase prefill, generate or batching";
  }
  if (begins_with_keys(phase) && request.prompt_top_tokens > 0) {
    return "@prompt-top-tokens: such a cell begins behind its prompt; ask for --phase prefill, generate or batching";
  }
  if (phase == Phase::batching && request.samples > 1) {
    return "@samples: a request of phase batching is one row; ask for --phase prefill or generate";
  }
  return "";
}

}  // namespace decodelab
