// Leaves out what arms share, then the middle of what is left.
#include "reports/page/tables/short_arms.h"

#include <algorithm>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace decodelab {
namespace {

constexpr std::size_t kMarkdownSeparator = 3;
constexpr std::size_t kMarkdownMargin = 2;
constexpr std::size_t kFewestLabelColumns = 14;  // a shorter name says nothing

std::vector<std::string> parts_of(const std::string& label) {
  std::vector<std::string> parts;
  std::istringstream stream(label);
  for (std::string part; std::getline(stream, part, ',');) {
    parts.push_back(part);
  }
  return parts;
}

/// Returns the preset and the switches that all arms of several switches share, in order; of a single such arm its
/// preset.
std::vector<std::string> shared_parts(const std::vector<ArmRecord>& arms) {
  std::vector<std::vector<std::string>> labels;
  for (const ArmRecord& arm : arms) {
    if (arm.label.find(',') != std::string::npos) {
      labels.push_back(parts_of(arm.label));
    }
  }
  if (labels.empty()) {
    return {};
  }
  std::vector<std::string> shared = labels.front();
  if (labels.size() == 1) {
    shared.resize(1);
  }
  std::erase_if(shared, [&](const std::string& part) {
    return std::ranges::any_of(
        labels, [&](const std::vector<std::string>& parts) { return std::ranges::find(parts, part) == parts.end(); });
  });
  return shared;
}

/// Returns the label of an arm with "~" for the parts that it shares, and without its middle where it is still longer
/// than `width`.
std::string short_label(const std::string& label, const std::vector<std::string>& shared, std::size_t width) {
  constexpr std::size_t kTail = 9;  // the number of a parameter tells arms apart
  std::vector<std::string> own = parts_of(label);
  const bool shares = own.size() > 1 && !shared.empty();
  if (shares) {
    std::erase_if(own, [&](const std::string& part) { return std::ranges::find(shared, part) != shared.end(); });
  }
  std::string text = (shares ? "~" : "") + fmt::format("{}", fmt::join(own, ","));
  if (text.size() > width && width > kTail + 2) {
    text = text.substr(0, width - kTail - 2) + ".." + text.substr(text.size() - kTail);
  }
  return text;
}

/// Removes a column; none where the table has none of that name.
void drop_column(Table& table, const char* name) {
  const auto found = std::ranges::find(table.columns, name, &TableColumn::name);
  if (found == table.columns.end()) {
    return;
  }
  const auto place = found - table.columns.begin();
  table.columns.erase(found);
  for (TableRow& row : table.rows) {
    row.fields.erase(row.fields.begin() + place);
  }
  table.notes.push_back(fmt::format("The column {} is left out, for it does not fit; the page has it.", name));
}

}  // namespace

void shorten_arms(Table& table, std::size_t arm_column, const std::vector<ArmRecord>& arms) {
  const auto width = [&] { return table_width(table, kMarkdownSeparator, kMarkdownMargin); };
  std::size_t longest = 0;
  for (const TableRow& row : table.rows) {
    longest = std::max(longest, row.fields[arm_column].size());
  }
  const std::size_t saved = longest - std::min(longest, kFewestLabelColumns);
  for (const char* column : {"Peak", "Detects"}) {
    if (width() - saved > kTableWidth) {
      drop_column(table, column);
    }
  }
  if (width() <= kTableWidth) {
    return;
  }
  const std::size_t room = longest - std::min(saved, width() - kTableWidth);
  const std::vector<std::string> shared = shared_parts(arms);
  std::map<std::string, std::string> names;
  std::set<std::string> taken;
  for (const ArmRecord& arm : arms) {
    std::string name = short_label(arm.label, shared, room);
    for (std::size_t number = 2; !taken.insert(name).second; ++number) {
      name = fmt::format("{}#{}", short_label(arm.label, shared, room - 2), number);
    }
    names[arm.label] = name;
  }
  std::vector<std::string> legend;
  for (TableRow& row : table.rows) {
    const std::string label = std::exchange(row.fields[arm_column], names.at(row.fields[arm_column]));
    const std::string line = fmt::format("{} is {}.", row.fields[arm_column], label);
    if (row.fields[arm_column] != label && std::ranges::find(legend, line) == legend.end()) {
      legend.push_back(line);
    }
  }
  table.notes.insert(table.notes.begin(), legend.begin(), legend.end());
}

}  // namespace decodelab
