// What readers can do with a figure where JavaScript runs: single out an arm, zoom, switch an axis; and the layers that
// specs are made of.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

namespace decodelab {

/// Returns `text` as a quoted JavaScript or JSON string.
std::string quoted(const std::string& text);

/// Returns one layer: a dataset, a filter, a mark and its encoding.
nlohmann::ordered_json figure_layer(const std::string& dataset, const std::string& condition,
                                    nlohmann::ordered_json mark, nlohmann::ordered_json encoding);

/// Lets a click on a legend entry show its value of `field` alone, a second click add it to others; a double click
/// shows all.
///
/// `view` is the name of one unit view of the spec; shown_opacity() in the others makes them follow.
void add_legend_toggle(nlohmann::ordered_json& spec, const std::string& field, const std::string& view);
/// Returns an encoding that gives marks of the shown legend entries `opacity`, and the others nearly 0.
nlohmann::ordered_json shown_opacity(double opacity = 1);

/// Returns a parameter of one unit view: Alt with the wheel zooms along x, Alt with a drag moves, a double click undoes
/// both. Without Alt the page scrolls. `name` is unique in the spec.
nlohmann::ordered_json zoom_parameter(const std::string& name);
/// Sentence that tells readers how to use a figure.
inline constexpr const char* kHowToUse =
    "Where JavaScript runs: a click in the legend shows one arm alone, Alt with the wheel zooms along x, a double "
    "click undoes it.";

/// Adds a switch `logarithmic` with its initial state, which switched_scale() and switched_ticks() follow.
void add_logarithm_switch(nlohmann::ordered_json& spec, bool logarithmic);
/// Returns a scale from `low` to `high` (both above 0) that is logarithmic or linear as the switch says.
nlohmann::ordered_json switched_scale(double low, double high);
nlohmann::ordered_json switched_ticks(double low, double high);
/// Returns at least three ticks of a logarithmic axis: at 1, 2 and 5 times powers of ten, or evenly spaced where those
/// are too few.
nlohmann::ordered_json enough_ticks(double low, double high);

}  // namespace decodelab
