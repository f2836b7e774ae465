// The common look of all figures: one colour, shape and dash per arm, axes, and the start of a spec.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "reports/statistics/summary.h"

namespace decodelab {

/// Colours that the page replaces by its own when it shows a figure, so that a dark page has light text and no other
/// colour is touched.
inline constexpr const char* kInkColor = "#24292e";
inline constexpr const char* kGridColor = "#e3e6ea";
inline constexpr const char* kPaperColor = "#fffffe";
/// Text on a figure's own colours, the same on a light and a dark page.
inline constexpr const char* kDarkText = "#1a1a1b";
/// Times of the even and the odd visits of an arm (blue and orange of Okabe and Ito, as are the next two).
inline constexpr const char* kEvenColor = "#0072B2";
inline constexpr const char* kOddColor = "#E69F00";
/// Colours of what takes less time and of what takes more.
inline constexpr const char* kFasterColor = "#0072B2";
inline constexpr const char* kSlowerColor = "#D55E00";

/// Returns a spec with $schema, title, background and config; views and datasets are added by the figure.
nlohmann::ordered_json start_spec(const std::string& title);

/// Returns the `color` of arms: Okabe and Ito's colours without black and yellow, which vanish on a dark or a light
/// page. The baseline is grey.
nlohmann::ordered_json arm_color(const std::vector<ArmRecord>& arms);
/// These return the `shape` and the `strokeDash` of arms, so that no two arms differ by colour alone.
nlohmann::ordered_json arm_shape(const std::vector<ArmRecord>& arms);
nlohmann::ordered_json arm_dash(const std::vector<ArmRecord>& arms);

/// Returns an x axis of lengths: logarithmic to base 2, ticks at powers of two, the same for all panels.
nlohmann::ordered_json length_axis(const std::string& field, const std::vector<double>& lengths,
                                   const std::string& title);

/// Returns 1, 2 and 5 times powers of ten from `low` to `high`, both above 0.
nlohmann::ordered_json logarithmic_ticks(double low, double high);

/// Rounds to six significant digits: enough for any plot, and a third as long as the text of a double.
double shortened(double value);

/// Adds the ends of an interval of a time or a rate, counted in `unit`, as `low` and `high` behind `prefix`; ends that
/// are no finite numbers are left out. No time is below zero, and an axis that began there would be half empty.
void add_ends(nlohmann::ordered_json& datum, const Interval& interval, double unit, const std::string& prefix = "");

/// Replaces ink, grid and paper in a drawing or a spec by the colours of the page that shows it.
std::string in_page_colors(std::string text);

}  // namespace decodelab
