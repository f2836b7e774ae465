// Parameters of Vega-Lite, and an axis that is linear or logarithmic by a switch.
#include "reports/figures/interaction.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "reports/figures/figure_style.h"

namespace decodelab {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kFaded = 0.08;  // enough to find an arm again
constexpr int kLinearTicks = 6;
// A symmetric logarithm, sign(x) log(1 + |x| / c), is a logarithm far above c and a line far below it: the one scale of
// Vega that changes its kind while it is shown.
constexpr double kFarBelow = 1e-6;
constexpr double kFarAbove = 1e6;

Json linear_ticks(double low, double high) {
  const double rough = (high - low) / kLinearTicks;
  const double decade = std::pow(10, std::floor(std::log10(rough)));
  double step = 10 * decade;
  for (const double digit : {1.0, 2.0, 5.0}) {
    if (decade * digit >= rough) {
      step = decade * digit;
      break;
    }
  }
  Json ticks = Json::array();
  for (double tick = std::ceil(low / step) * step; tick <= high; tick += step) {
    ticks.push_back(shortened(tick));
  }
  return ticks;
}

}  // namespace

std::string quoted(const std::string& text) { return Json(text).dump(-1, ' ', false, Json::error_handler_t::replace); }

Json figure_layer(const std::string& dataset, const std::string& condition, Json mark, Json encoding) {
  return {{"data", {{"name", dataset}}},
          {"transform", {{{"filter", condition}}}},
          {"mark", std::move(mark)},
          {"encoding", std::move(encoding)}};
}

void add_legend_toggle(Json& spec, const std::string& field, const std::string& view) {
  spec["params"].push_back({{"name", "shown"},
                            {"select", {{"type", "point"}, {"fields", {field}}, {"toggle", "true"}}},
                            {"bind", "legend"},
                            {"views", {view}}});
}

Json shown_opacity(double opacity) {
  return {{"condition", {{"param", "shown"}, {"value", opacity}}}, {"value", std::min(kFaded, opacity)}};
}

Json zoom_parameter(const std::string& name) {
  constexpr const char* kDrag = "[pointerdown[event.altKey], window:pointerup] > window:pointermove!";
  return {{"name", name},
          {"bind", "scales"},
          {"select",
           {{"type", "interval"},
            {"encodings", {"x"}},
            {"on", kDrag},
            {"translate", kDrag},
            {"zoom", "wheel![event.altKey]"}}}};
}

void add_logarithm_switch(Json& spec, bool logarithmic) {
  spec["params"].push_back({{"name", "logarithmic"},
                            {"value", logarithmic},
                            {"bind", {{"input", "checkbox"}, {"name", "logarithmic times "}}}});
}

Json switched_scale(double low, double high) {
  return {{"type", "symlog"},
          {"constant",
           {{"expr", fmt::format("logarithmic ? {} : {}", shortened(low * kFarBelow), shortened(high * kFarAbove))}}},
          {"domain", {shortened(low), shortened(high)}},
          {"nice", false},
          {"zero", false}};
}

Json switched_ticks(double low, double high) {
  return {
      {"expr", fmt::format("logarithmic ? {} : {}", enough_ticks(low, high).dump(), linear_ticks(low, high).dump())}};
}

Json enough_ticks(double low, double high) {
  constexpr double kInside = 1.1;  // logarithmic_ticks() goes a little beyond its limits
  Json ticks = logarithmic_ticks(low * kInside, high / kInside);
  return ticks.size() < 3 ? linear_ticks(low, high) : ticks;
}

}  // namespace decodelab
