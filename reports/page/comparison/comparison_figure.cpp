// Writes the spec: marks of three shapes for faster, slower and not told apart, so that colour alone tells nothing.
#include "reports/page/comparison/comparison_figure.h"

#include <algorithm>

#include <fmt/format.h>

#include "reports/figures/figure_style.h"
#include "reports/statistics/labels.h"

namespace decodelab {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kComparisonWidth = 640;
constexpr int kStep = 18;
// Width of a character of a label in any font that a reader may have. The renderer measures labels in its own font, and
// the page cuts what is wider.
constexpr int kPixelsACharacter = 7;
constexpr int kMostExtent = 330;
constexpr std::size_t kMostRows = 80;  // a taller figure is a worse table
/// Bars end at this factor beyond the extreme ratios: the interval of two launches can span decades and say nothing.
constexpr double kComparisonFrame = 4;

const char* side_of(const ComparedCell& row) {
  if (!row.interval) {
    return "one launch";
  }
  return row.interval->high < 1 ? "faster" : row.interval->low > 1 ? "slower" : "not told apart";
}

}  // namespace

std::optional<Figure> comparison_figure(const RunComparison& comparison) {
  Json values = Json::array();
  Json labels = Json::array();
  int longest = 0;
  double lowest = 1;
  double highest = 1;
  for (const ComparedCell& row : comparison.rows) {
    if (!row.time_ratio) {
      continue;
    }
    lowest = std::min(lowest, *row.time_ratio);
    highest = std::max(highest, *row.time_ratio);
  }
  const auto framed = [&](double ratio) {
    return shortened(std::clamp(ratio, lowest / kComparisonFrame, highest * kComparisonFrame));
  };
  for (const ComparedCell& row : comparison.rows) {
    if (!row.time_ratio) {
      continue;
    }
    const std::string label = fmt::format("{}  {}", cell_label(row.cell), row.arm);
    longest = std::max(longest, static_cast<int>(label.size()));
    labels.push_back(label);
    values.push_back({{"label", labels.back()},
                      {"ratio", shortened(*row.time_ratio)},
                      {"low", row.interval ? Json(framed(row.interval->low)) : Json(nullptr)},
                      {"high", row.interval ? Json(framed(row.interval->high)) : Json(nullptr)},
                      {"side", side_of(row)}});
  }
  if (values.empty() || values.size() > kMostRows) {
    return std::nullopt;
  }
  Figure figure{
      .name = fmt::format("ratios-{}-{}", comparison.baseline.id, comparison.candidate.id),
      .title = "Time ratios with their intervals",
      .caption =
          "Time of the candidate over that of the baseline, left of 1 is faster. Bars are 95 % intervals over "
          "launches, of single cells; they end at 4 times the extreme ratios.",
      .spec = start_spec("Time ratios, candidate over baseline"),
      .data = comparison_page_table(comparison)};
  const int extent = std::min(kMostExtent, kPixelsACharacter * longest);
  const Json y{
      {"field", "label"},
      {"type", "nominal"},
      {"sort", labels},
      {"title", nullptr},
      {"axis", {{"grid", true}, {"tickSize", 0}, {"domain", false}, {"labelLimit", 320}, {"minExtent", extent}}}};
  const auto x = [](const char* field) {
    return Json{{"field", field},
                {"type", "quantitative"},
                {"title", "time ratio, candidate / baseline (below 1 is faster)"},
                {"scale", {{"type", "log"}, {"nice", false}, {"padding", 14}}},
                {"axis", {{"format", ".3~f"}, {"tickCount", 8}}}};
  };
  const Json domain{"faster", "slower", "not told apart", "one launch"};
  // Okabe and Ito's green, vermillion and greys.
  const Json color{{"field", "side"},
                   {"type", "nominal"},
                   {"title", nullptr},
                   {"scale", {{"domain", domain}, {"range", {"#009e73", "#d55e00", "#7d868f", "#a9b0b7"}}}}};
  const Json shape{{"field", "side"},
                   {"type", "nominal"},
                   {"title", nullptr},
                   {"scale", {{"domain", domain}, {"range", {"triangle-left", "triangle-right", "circle", "cross"}}}}};
  figure.spec["width"] = kComparisonWidth;
  figure.spec["height"] = {{"step", kStep}};
  figure.spec["data"] = {{"values", std::move(values)}};
  figure.spec["layer"] = {
      Json{{"data", {{"values", {Json::object()}}}},
           {"mark", {{"type", "rule"}, {"strokeDash", {4, 3}}, {"color", kInkColor}}},
           {"encoding", {{"x", {{"datum", 1}}}}}},
      Json{{"transform", {{{"filter", "datum.low !== null"}}}},
           {"mark", {{"type", "rule"}, {"strokeWidth", 1.8}}},
           {"encoding", {{"x", x("low")}, {"x2", {{"field", "high"}}}, {"y", y}, {"color", color}}}},
      Json{{"mark", {{"type", "point"}, {"filled", true}, {"size", 60}, {"opacity", 1}}},
           {"encoding", {{"x", x("ratio")}, {"y", y}, {"color", color}, {"shape", shape}}}}};
  return figure;
}

}  // namespace decodelab
