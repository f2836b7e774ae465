// Draws figures as SVG, and PNG where wanted, with vl-convert, which is a Python package: one process draws a whole
// folder.
#pragma once

#include <filesystem>
#include <ostream>

namespace decodelab {

/// Draws every *.vl.json in `folder` as .svg beside it, and as .png with `png`, which doubles the time.
///
/// Uses the Python and the script that python_command() finds. Where one of them or vl-convert is missing, writes a
/// sentence to `warnings` and returns false.
bool render_figures(const std::filesystem::path& folder, bool png, std::ostream& warnings);

}  // namespace decodelab
