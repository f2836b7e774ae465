// Writes all files of a report into a temporary folder, then moves them into place.
#include "reports/page/report.h"

#include <unistd.h>

#include <fstream>
#include <sstream>
#include <stdexcept>
#include <system_error>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "reports/figures/render.h"
#include "reports/page/format.h"
#include "reports/page/json.h"
#include "reports/page/overview.h"
#include "reports/page/page.h"
#include "reports/page/result_tables.h"

namespace decodelab {
namespace {

std::invalid_argument unwritable(const std::filesystem::path& folder, const std::string& why) {
  return std::invalid_argument(fmt::format(
      "The report cannot be written into '{}': {}. Give --out a folder that may be written to.", folder.string(), why));
}

// A folder beside the final files, so that moving them is a rename; removed with what is left in it.
class WorkFolder {
 public:
  explicit WorkFolder(const std::filesystem::path& out_dir)
      : out_dir_(out_dir), path_(out_dir / fmt::format(".report-{}.tmp", getpid())) {
    std::error_code error;
    std::filesystem::create_directories(out_dir_ / "figures", error);
    if (error) throw unwritable(out_dir_, error.message());
    std::filesystem::remove_all(path_, error);
    std::filesystem::create_directories(path_ / "figures", error);
    if (error) throw unwritable(out_dir_, error.message());
  }
  ~WorkFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  WorkFolder(const WorkFolder&) = delete;
  WorkFolder& operator=(const WorkFolder&) = delete;

  std::filesystem::path figures() const { return path_ / "figures"; }

  void write(const std::string& name, const std::string& content) const {
    std::ofstream file(path_ / name, std::ios::binary);
    file << content;
    file.close();
    if (!file) throw unwritable(out_dir_, fmt::format("writing {} failed, perhaps the disk is full", name));
  }

  // Moves everything to where it belongs.
  void publish() const {
    std::error_code error;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(path_)) {
      if (!entry.is_regular_file()) continue;
      std::filesystem::rename(entry.path(), out_dir_ / std::filesystem::relative(entry.path(), path_), error);
      if (error) throw unwritable(out_dir_, error.message());
    }
  }

 private:
  std::filesystem::path out_dir_;
  std::filesystem::path path_;
};

std::vector<RunReport> reports_of(std::span<const RunData> runs) {
  std::vector<RunReport> reports;
  for (const RunData& data : runs) {
    RunReport report{.data = &data,
                     .summary = summarize(data),
                     .figures = {},
                     .prefix = runs.size() == 1 ? "" : fmt::format("r{}-", reports.size() + 1)};
    report.figures = figures_of(report.summary, data);
    reports.push_back(std::move(report));
  }
  return reports;
}

std::string markdown_of(const std::vector<RunReport>& reports) {
  std::string text = "# decodelab report\n\n";
  std::vector<const RunRecord*> records;
  for (const RunReport& run : reports) {
    const Overview overview = overview_of(*run.data, run.summary);
    records.push_back(&run.summary.run);
    text += fmt::format("## {}\n\n{}\n{}\n\n", escape_markdown(run_title(run.summary.run)),
                        wrap("**" + escape_markdown(overview.compared) + "**", kTableWidth),
                        wrap(escape_markdown(overview.resolution), kTableWidth));
    for (const std::string& badge : overview.badges) text += fmt::format("- {}\n", escape_markdown(badge));
    text += "\n";
    if (const Table table = overview_table(run.summary); !table.rows.empty()) text += to_markdown(table) + "\n";
    if (const Table table = composite_table(run.summary); !table.rows.empty()) text += to_markdown(table) + "\n";
    if (const Table table = effect_table(run.summary); !table.rows.empty()) text += to_markdown(table) + "\n";
    for (const Table& table : comparison_tables(run.summary)) text += to_markdown(table) + "\n";
    for (const Figure& figure : run.figures)
      text += fmt::format("![{}](figures/{}{}.svg)\n\n{}\n\n", escape_markdown(figure.title), run.prefix, figure.name,
                          wrap(escape_markdown(figure.caption), kTableWidth));
    for (const Table& table : latency_tables(run.summary)) text += to_markdown(table) + "\n";
    text += to_markdown(ledger_table(run.summary)) + "\n";
  }
  text += to_markdown(environment_table(records)) + "\n## Repeat it\n\n";
  // Indented, not fenced: a command may have backticks in it.
  for (const RunReport& run : reports) {
    std::istringstream lines(run.summary.run.command);
    for (std::string line; std::getline(lines, line);) text += "    " + line + "\n";
  }
  return text;
}

std::string json_of(const std::vector<RunReport>& reports) {
  if (reports.size() == 1) return to_json(reports.front().summary);
  nlohmann::ordered_json runs = nlohmann::ordered_json::array();
  for (const RunReport& run : reports) runs.push_back(summary_to_json(run.summary));
  const nlohmann::ordered_json all{{"schema_version", kReportSchemaVersion}, {"runs", std::move(runs)}};
  return all.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

// Texts of all runs, with the header of the first only.
std::string joined_csv(const std::vector<std::string>& texts) {
  std::string all;
  for (const std::string& text : texts) all += all.empty() ? text : text.substr(text.find('\n') + 1);
  return all;
}

std::map<std::string, std::string> drawings_in(const std::filesystem::path& folder,
                                               const std::vector<RunReport>& reports) {
  std::map<std::string, std::string> drawings;
  for (const RunReport& run : reports) {
    for (const Figure& figure : run.figures) {
      std::ifstream file(folder / (run.prefix + figure.name + ".svg"), std::ios::binary);
      std::ostringstream content;
      if (file && content << file.rdbuf()) drawings.emplace(run.prefix + figure.name, content.str());
    }
  }
  return drawings;
}

}  // namespace

std::string to_markdown(std::span<const RunData> runs) { return markdown_of(reports_of(runs)); }

void write_report(std::span<const RunData> runs, const std::filesystem::path& out_dir, std::ostream& warnings) {
  if (runs.empty())
    throw std::invalid_argument(
        "A report needs at least one run, got none. Name one: decodelab report latest --out DIR.");
  const std::vector<RunReport> reports = reports_of(runs);
  const WorkFolder folder(out_dir);
  std::vector<std::string> cells;
  std::vector<std::string> blocks;
  for (const RunReport& run : reports) {
    cells.push_back(to_csv(run.summary));
    blocks.push_back(blocks_to_csv(*run.data));
    for (const Figure& figure : run.figures) {
      folder.write("figures/" + run.prefix + figure.name + ".vl.json",
                   figure.spec.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n");
    }
  }
  render_figures(folder.figures(), warnings);
  folder.write("report.json", json_of(reports));
  folder.write("report.md", markdown_of(reports));
  folder.write("cells.csv", joined_csv(cells));
  folder.write("blocks.csv", joined_csv(blocks));
  folder.write("report.html", page_html(reports, drawings_in(folder.figures(), reports)));
  folder.publish();
}

void write_report(const RunData& run, const std::filesystem::path& out_dir, std::ostream& warnings) {
  write_report(std::span(&run, 1), out_dir, warnings);
}

}  // namespace decodelab
