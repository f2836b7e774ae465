// Colours, shapes, dashes and axes of figures.
#include "reports/figures/figure_style.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "reports/figures/figure.h"

namespace decodelab {
namespace {

constexpr const char* kPageGridColor = "#80808038";  // visible on light and on dark

std::string replace_all(std::string text, std::string_view from, std::string_view to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
    text.replace(at, from.size(), to);
  }
  return text;
}

using Json = nlohmann::ordered_json;

// Okabe and Ito, "Color Universal Design" (2008).
constexpr std::array<const char*, 6> kArmColors{"#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9"};
constexpr const char* kBaselineColor = "#808890";
constexpr std::array<const char*, 7> kArmShapes{"circle",        "square", "triangle-up",   "diamond",
                                                "triangle-down", "cross",  "triangle-right"};
const std::array<std::vector<int>, 5> kArmDashes{{{1, 0}, {6, 2}, {2, 2}, {8, 2, 2, 2}, {10, 4}}};
constexpr std::size_t kMostTicks = 7;  // more labels of four digits collide in a panel

Json labels(const std::vector<ArmRecord>& arms) {
  Json domain = Json::array();
  for (const ArmRecord& arm : arms) {
    domain.push_back(arm.label);
  }
  return domain;
}

constexpr double kLegendWidth = 960;     // of the narrowest figure with a legend, in pixels
constexpr double kCharacterWidth = 6.6;  // of a label at 12 pixels, on average

constexpr double kSymbolWidth = 34;  // of a legend entry, with the gap after it
constexpr double kWiderFonts =
    0.2;  // share by which labels may be wider in a browser without the font that they were measured with

double longest_label(const std::vector<ArmRecord>& arms) {
  std::size_t longest = 0;
  for (const ArmRecord& arm : arms) {
    longest = std::max(longest, arm.label.size());
  }
  return kCharacterWidth * static_cast<double>(longest);
}

Json arm_legend(const std::vector<ArmRecord>& arms) {
  const double spare = kWiderFonts * longest_label(arms);
  const auto columns = static_cast<std::size_t>(kLegendWidth / (longest_label(arms) + spare + kSymbolWidth));
  return {{"title", nullptr},
          {"orient", "top"},
          {"labelLimit", 900},
          {"symbolOpacity", 1},
          {"columns", std::clamp<std::size_t>(columns, 1, 5)},
          {"columnPadding", 10 + spare}};
}

template <class Choose>
Json arm_channel(const std::vector<ArmRecord>& arms, const Choose& choose) {
  Json range = Json::array();
  for (std::size_t i = 0; i < arms.size(); ++i) {
    range.push_back(choose(i));
  }
  return {{"field", "arm"},
          {"type", "nominal"},
          {"scale", {{"domain", labels(arms)}, {"range", range}}},
          {"legend", arm_legend(arms)}};
}

}  // namespace

Json start_spec(const std::string& title) {
  const Json axis{{"labelColor", kInkColor}, {"titleColor", kInkColor},     {"domainColor", kInkColor},
                  {"tickColor", kInkColor},  {"gridColor", kGridColor},     {"labelFontSize", 11},
                  {"titleFontSize", 11.5},   {"titleFontWeight", "normal"}, {"titlePadding", 6},
                  {"domainOpacity", 0.5},    {"tickOpacity", 0.5},          {"tickSize", 4}};
  return {{"$schema",
           fmt::format("https://vega.github.io/schema/vega-lite/v{}.json", std::string(kVegaLiteVersion).substr(0, 1))},
          {"description", title},
          {"background", kPaperColor},
          {"padding", 8},
          {"config",
           {{"font", "Liberation Sans, Arial, Helvetica, sans-serif"},
            {"aria", false},  // the page describes the whole figure once and has its data as a table
            {"axis", axis},
            {"axisY", {{"minExtent", 36}, {"maxExtent", 36}}},  // so that panels below each other stand in line
            {"legend",
             {{"labelColor", kInkColor},
              {"titleColor", kInkColor},
              {"labelFontSize", 12},
              {"symbolSize", 70},
              {"symbolStrokeWidth", 2}}},
            {"title",
             {{"color", kInkColor},
              {"fontSize", 12.5},
              {"fontWeight", 600},
              {"anchor", "start"},
              {"frame", "group"},
              {"offset", 8}}},
            {"header", {{"labelColor", kInkColor}, {"titleColor", kInkColor}}},
            {"view", {{"stroke", nullptr}}},
            {"concat", {{"spacing", 12}}}}}};
}

Json arm_color(const std::vector<ArmRecord>& arms) {
  std::size_t next = 0;
  std::vector<const char*> colors;
  for (const ArmRecord& arm : arms) {
    colors.push_back(arm.baseline ? kBaselineColor : kArmColors[next++ % kArmColors.size()]);
  }
  return arm_channel(arms, [&](std::size_t i) { return Json(colors[i]); });
}

Json arm_shape(const std::vector<ArmRecord>& arms) {
  Json channel = arm_channel(arms, [](std::size_t i) { return Json(kArmShapes[i % kArmShapes.size()]); });
  channel["legend"]["symbolStrokeWidth"] = 0;  // else the outlines of shapes are dashed like the lines
  return channel;
}

Json arm_dash(const std::vector<ArmRecord>& arms) {
  return arm_channel(arms, [](std::size_t i) { return Json(kArmDashes[i % kArmDashes.size()]); });
}

Json length_axis(const std::string& field, const std::vector<double>& lengths, const std::string& title) {
  const auto [low, high] = std::minmax_element(lengths.begin(), lengths.end());
  const double margin = *low == *high ? 2.0 : 1.15;
  const double first = std::ceil(std::log2(*low / margin));
  const double last = std::floor(std::log2(*high * margin));
  const double step = std::max(1.0, std::ceil((last - first + 1) / static_cast<double>(kMostTicks)));
  Json ticks = Json::array();
  for (double exponent = first; exponent <= last; exponent += step) {
    ticks.push_back(std::exp2(exponent));
  }
  if (ticks.size() < 2) {
    ticks = {std::round(*low), std::round(*high)};
  }
  return {{"field", field},
          {"type", "quantitative"},
          {"title", title},
          {"scale",
           {{"type", "log"},
            {"base", 2},
            {"domain", {shortened(*low / margin), shortened(*high * margin)}},
            {"nice", false}}},
          {"axis", {{"values", ticks}, {"format", "d"}, {"grid", false}}}};
}

Json logarithmic_ticks(double low, double high) {
  Json ticks = Json::array();
  for (double decade = std::pow(10, std::floor(std::log10(low))); decade <= high; decade *= 10) {
    for (const double digit : {1.0, 2.0, 5.0}) {
      if (decade * digit >= low * 0.9 && decade * digit <= high * 1.1) {
        ticks.push_back(shortened(decade * digit));
      }
    }
  }
  return ticks;
}

double shortened(double value) {
  const std::string text = fmt::format("{:.6g}", value);
  double result = value;
  std::from_chars(text.data(), text.data() + text.size(), result);
  return result;
}

void add_ends(Json& datum, const Interval& interval, double unit, const std::string& prefix) {
  for (const auto& [name, end] : {std::pair{"low", std::max(interval.low, 0.0)}, std::pair{"high", interval.high}}) {
    if (std::isfinite(end)) {
      datum[prefix + name] = shortened(end / unit);
    }
  }
}

std::string in_page_colors(std::string text) {
  text = replace_all(std::move(text), kInkColor, "currentColor");
  text = replace_all(std::move(text), kGridColor, kPageGridColor);
  return replace_all(std::move(text), kPaperColor, "transparent");
}

}  // namespace decodelab
