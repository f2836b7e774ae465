// Groups completions by prompt and answer.
#include "reports/page/tables/completions_table.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace decodelab {
namespace {

/// Bytes of a prompt's end that are shown: what a completion goes on from.
constexpr std::size_t kShownBytes = 120;

/// Returns the end of a text, from the beginning of a character on.
std::string end_of(const std::string& text) {
  if (text.size() <= kShownBytes) {
    return text;
  }
  std::size_t begin = text.size() - kShownBytes;
  while (begin < text.size() && (static_cast<unsigned char>(text[begin]) & 0xC0U) == 0x80U) {
    ++begin;
  }
  return "..." + text.substr(begin);
}

std::string prompt_words(const CompletionRecord& completion) {
  const std::string kind = completion.prompt_class.empty() ? "" : completion.prompt_class + ": ";
  return kind + (completion.prompt_text.empty() ? fmt::format("{} tokens", completion.prompt_tokens)
                                                : end_of(completion.prompt_text));
}

std::string answer_words(const CompletionRecord& completion) {
  if (completion.token_ids.empty()) {
    return "(nothing: the text ends here)";
  }
  return completion.text.empty() ? fmt::format("token ids {}", fmt::join(completion.token_ids, ", ")) : completion.text;
}

}  // namespace

Table completions_table(const RunData& data) {
  struct Answer {
    const CompletionRecord* completion;
    std::vector<std::string> arms;
  };
  std::vector<Answer> answers;
  for (const CompletionRecord& completion : data.completions) {
    const auto arm = std::ranges::find(data.arms, completion.arm_id, &ArmRecord::id);
    const auto same = std::ranges::find_if(answers, [&](const Answer& answer) {
      return answer.completion->prompt == completion.prompt && answer.completion->token_ids == completion.token_ids;
    });
    if (same == answers.end()) {
      answers.push_back({.completion = &completion, .arms = {arm->label}});
    } else {
      same->arms.push_back(arm->label);
    }
  }
  Table table{.title = "What it says", .columns = {{"Prompt"}, {"Completion"}, {"Arms"}}, .rows = {}, .notes = {}};
  bool all_alike = true;
  for (const Answer& answer : answers) {
    const bool alone = std::ranges::count(answers, answer.completion->prompt,
                                          [](const Answer& other) { return other.completion->prompt; }) == 1;
    all_alike = all_alike && alone;
    TableRow row{.run_id = data.run.id, .fields = {prompt_words(*answer.completion), answer_words(*answer.completion)}};
    row.fields.push_back(alone && answer.arms.size() > 1 ? "all" : fmt::format("{}", fmt::join(answer.arms, ", ")));
    table.rows.push_back(std::move(row));
  }
  if (!table.rows.empty()) {
    table.notes.emplace_back(all_alike
                                 ? "Greedy decoding; every arm says the same."
                                 : "Greedy decoding; arms differ, as in 16 bits two tokens may be as good as equal. "
                                   "In fp32 it is a fault.");
  }
  return table;
}

}  // namespace decodelab
