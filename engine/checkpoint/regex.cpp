// The regular expressions of tokenizers, compiled and run by PCRE2.
#include "engine/checkpoint/regex.h"

#include <array>
#include <new>
#include <stdexcept>

#include <fmt/format.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "base/text.h"

namespace decodelab {
namespace {

constexpr std::size_t kMaxPatternBytes = 20'000;  // GPT-4's has 150, the longest seen a few thousand.
constexpr std::uint32_t kMaxSteps = 1'000'000;  // Per match; real patterns need a handful, exponential ones any number.
constexpr std::size_t kJitStackBytes = std::size_t{1} << 20;  // Enough for words of some ten thousand characters.

template <auto Free>
struct Deleter {
  template <typename T>
  void operator()(T* pointer) const {
    Free(pointer);
  }
};
using CodePointer = std::unique_ptr<pcre2_code, Deleter<pcre2_code_free>>;
using MatchData = std::unique_ptr<pcre2_match_data, Deleter<pcre2_match_data_free>>;
using MatchContext = std::unique_ptr<pcre2_match_context, Deleter<pcre2_match_context_free>>;
using JitStack = std::unique_ptr<pcre2_jit_stack, Deleter<pcre2_jit_stack_free>>;

std::string message_of(int error) {
  std::array<PCRE2_UCHAR, 256> buffer{};
  pcre2_get_error_message(error, buffer.data(), buffer.size());
  return reinterpret_cast<const char*>(buffer.data());
}

std::size_t next_character(std::string_view text, std::size_t at) {
  do {
    ++at;
  } while (at < text.size() && (static_cast<unsigned char>(text[at]) & 0xc0) == 0x80);
  return at;
}

}  // namespace

struct Regex::Code {
  std::string pattern;
  CodePointer code;
};

Regex::Regex(std::string_view oniguruma_pattern) {
  if (oniguruma_pattern.size() > kMaxPatternBytes) {
    throw std::invalid_argument(
        fmt::format("expected a pattern of at most {} bytes, got {}", kMaxPatternBytes, oniguruma_pattern.size()));
  }
  const std::string pattern = pcre2_pattern(oniguruma_pattern);
  constexpr std::uint32_t kOptions = PCRE2_UTF | PCRE2_UCP | PCRE2_MATCH_INVALID_UTF | PCRE2_NEVER_BACKSLASH_C;
  int error = 0;
  PCRE2_SIZE position = 0;
  auto code = std::make_shared<Code>();
  code->pattern = std::string(oniguruma_pattern);
  code->code.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(), kOptions, &error,
                                 &position, nullptr));
  if (code->code == nullptr) {
    throw std::invalid_argument(
        fmt::format("the pattern {} cannot be compiled: {}", in_quotes(oniguruma_pattern), message_of(error)));
  }
  pcre2_jit_compile(code->code.get(), PCRE2_JIT_COMPLETE);  // Without a JIT, PCRE2 interprets the pattern.
  code_ = std::move(code);
}

std::vector<TextSpan> Regex::split(std::string_view text) const {
  const MatchData data(pcre2_match_data_create_from_pattern(code_->code.get(), nullptr));
  const MatchContext context(pcre2_match_context_create(nullptr));
  JitStack
      stack;  // Made when a match needs more than the 32 KB that PCRE2 takes from the machine's stack; most never do.
  if (data == nullptr || context == nullptr) {
    throw std::bad_alloc();
  }
  pcre2_set_match_limit(context.get(), kMaxSteps);

  std::vector<TextSpan> spans;
  std::size_t start = 0;    // Where to look next.
  std::size_t covered = 0;  // The end of the last match.
  bool matched_before = false;
  while (start <= text.size()) {
    const int result = pcre2_match(code_->code.get(), reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), start, 0,
                                   data.get(), context.get());
    if (result == PCRE2_ERROR_NOMATCH) {
      break;
    }
    if (result == PCRE2_ERROR_JIT_STACKLIMIT && stack == nullptr) {
      stack.reset(pcre2_jit_stack_create(kJitStackBytes, kJitStackBytes, nullptr));
      if (stack == nullptr) {
        throw std::bad_alloc();
      }
      pcre2_jit_stack_assign(context.get(), nullptr, stack.get());
      continue;
    }
    if (result < 0) {
      throw std::invalid_argument(
          fmt::format("the pattern {} cannot be matched: {}", in_quotes(code_->pattern), message_of(result)));
    }
    const PCRE2_SIZE* offsets = pcre2_get_ovector_pointer(data.get());
    const std::size_t begin = offsets[0];
    const std::size_t end = offsets[1];
    if (end < begin || begin < covered || (begin == end && matched_before && end == covered)) {
      start = next_character(text, start);  // An empty match where the last one ended does not count.
      continue;
    }
    if (begin != covered) {
      spans.push_back({.begin = covered, .end = begin, .matched = false});
    }
    spans.push_back({.begin = begin, .end = end, .matched = true});
    start = covered = end;
    matched_before = true;
  }
  if (covered != text.size()) {
    spans.push_back({.begin = covered, .end = text.size(), .matched = false});
  }
  return spans;
}

std::string Regex::replace(std::string_view text, std::string_view content) const {
  std::string result;
  for (const TextSpan& span : split(text)) {
    result += span.matched ? content : text.substr(span.begin, span.end - span.begin);
  }
  return result;
}

}  // namespace decodelab
