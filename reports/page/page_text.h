// The parts of the page that are the same in every report: style, script, explanations.
#pragma once

namespace decodelab {

extern const char* const kPageStyle;        ///< CSS, light and dark.
extern const char* const kPageScript;       ///< Replaces drawings by interactive figures.
extern const char* const kHowTimeWasTaken;  ///< HTML.
extern const char* const kGlossary;         ///< HTML.

}  // namespace decodelab
