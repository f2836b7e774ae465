// Embeds the file that cmake/vega.cmake makes; it defines the path too.
#include "reports/figures/vega_bundle.h"

#ifdef DECODELAB_VEGA_BUNDLE

// The assembler reads the file: as an array of numbers it would cost the compiler seconds.
__asm__(
    ".pushsection .rodata\n"
    ".global decodelab_vega_begin\n"
    ".global decodelab_vega_end\n"
    "decodelab_vega_begin:\n"
    ".incbin \"" DECODELAB_VEGA_BUNDLE
    "\"\n"
    "decodelab_vega_end:\n"
    ".byte 0\n"
    ".popsection\n");

extern "C" const char kVegaBegin[] __asm__("decodelab_vega_begin");
extern "C" const char kVegaEnd[] __asm__("decodelab_vega_end");

namespace decodelab {

std::string_view vega_bundle() { return {kVegaBegin, static_cast<std::size_t>(kVegaEnd - kVegaBegin)}; }

}  // namespace decodelab

#else

namespace decodelab {

std::string_view vega_bundle() { return {}; }

}  // namespace decodelab

#endif
