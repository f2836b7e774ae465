// Draws figures as SVG, and PNG where wanted, with vl-convert, which is a Python package: one process draws a whole
// folder.
#pragma once

#include <filesystem>
#include <ostream>

namespace decodelab {

/// Draws every *.vl.json in `folder` as .svg beside it, and as .png with `png`, which doubles the time.
///
/// Python is that of the environment variable DECODELAB_PYTHON, else the one of the build's virtual environment. Where
/// it or vl-convert is missing, a sentence goes to `warnings` and false is returned.
bool render_figures(const std::filesystem::path& folder, bool png, std::ostream& warnings);

}  // namespace decodelab
