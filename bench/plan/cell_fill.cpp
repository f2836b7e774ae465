// Reads the words of a fill.
#include "bench/plan/cell_fill.h"

#include <charconv>
#include <stdexcept>

#include <fmt/format.h>

#include "engine/engine.h"

namespace decodelab {

CellFill cell_fill_from_string(std::string_view text) {
  constexpr std::string_view kNumbered = "random:";
  CellFill fill{.generated = text == "generated", .decoder_tokens = kHeldByDecoder};
  if (fill.generated || text == "random") {
    return fill;
  }
  if (text.starts_with(kNumbered)) {
    const char* const end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data() + kNumbered.size(), end, fill.decoder_tokens);
    if (error == std::errc() && stop == end && fill.decoder_tokens > 0) {
      return fill;
    }
  }
  throw std::invalid_argument(fmt::format(
      "--fill: '{}' is unknown; expected random, generated, or random:N with the tokens of a decoder beside an encoder",
      text));
}

std::string kind_of_fill(const CellFill& fill) { return fill.generated ? "generated" : "random"; }

}  // namespace decodelab
