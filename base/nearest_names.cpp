// Ranks known names by how little has to be changed in a mistyped one.
#include "base/nearest_names.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

namespace decodelab {
namespace {

constexpr std::size_t kSuggestions = 3;  ///< More than three are a list to search, not a hint.

char lower(char letter) { return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter; }

bool begins_with(std::string_view text, std::string_view prefix) {
  return !prefix.empty() && text.size() >= prefix.size() &&
         std::equal(prefix.begin(), prefix.end(), text.begin(), [](char a, char b) { return lower(a) == lower(b); });
}

bool is_near(std::string_view name, std::string_view candidate) {
  const std::size_t longest = std::max(name.size(), candidate.size());
  // Two edits in a name of three letters would suggest anything.
  const std::size_t limit = longest <= 3 ? 1 : std::max<std::size_t>(2, longest / 3);
  return begins_with(candidate, name) || edit_distance(name, candidate) <= limit;
}

}  // namespace

std::size_t edit_distance(std::string_view left, std::string_view right) {
  std::vector<std::size_t> before(right.size() + 1);  // Row i - 2 of the table, for swaps.
  std::vector<std::size_t> above(right.size() + 1);   // Row i - 1.
  std::vector<std::size_t> row(right.size() + 1);
  std::iota(above.begin(), above.end(), std::size_t{0});
  for (std::size_t i = 1; i <= left.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= right.size(); ++j) {
      const char a = lower(left[i - 1]);
      const char b = lower(right[j - 1]);
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, above[j - 1] + (a == b ? 0 : 1)});
      if (i > 1 && j > 1 && a == lower(right[j - 2]) && b == lower(left[i - 2])) {
        row[j] = std::min(row[j], before[j - 2] + 1);
      }
    }
    std::swap(before, above);
    std::swap(above, row);
  }
  return above[right.size()];
}

std::vector<std::string> nearest_names(std::string_view name, std::span<const std::string> names, std::size_t count) {
  struct Candidate {
    bool prefix;
    std::size_t distance;
    std::size_t index;
  };
  std::vector<Candidate> candidates;
  candidates.reserve(names.size());
  for (std::size_t i = 0; i < names.size(); ++i) {
    candidates.push_back({begins_with(names[i], name), edit_distance(name, names[i]), i});
  }
  std::stable_sort(candidates.begin(), candidates.end(), [](const Candidate& a, const Candidate& b) {
    return a.prefix != b.prefix ? a.prefix : a.distance < b.distance;
  });
  candidates.resize(std::min(count, candidates.size()));
  std::vector<std::string> nearest;
  nearest.reserve(candidates.size());
  for (const Candidate& candidate : candidates) {
    nearest.push_back(names[candidate.index]);
  }
  return nearest;
}

std::string did_you_mean(std::string_view name, std::span<const std::string> names) {
  std::vector<std::string> near = nearest_names(name, names, kSuggestions);
  std::erase_if(near, [&](const std::string& candidate) { return !is_near(name, candidate); });
  std::string list;
  for (std::size_t i = 0; i < near.size(); ++i) {
    const char* const separator = i == 0 ? "" : i + 1 == near.size() ? " or " : ", ";
    list += fmt::format("{}'{}'", separator, near[i]);
  }
  return list.empty() ? std::string() : fmt::format("did you mean {}?", list);
}

}  // namespace decodelab
