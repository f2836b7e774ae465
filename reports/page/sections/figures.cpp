// A figure on the page: its drawing, its caption, its data, and the spec that makes it interactive.
#include <fmt/format.h>

#include "base/escape.h"
#include "reports/figures/figure_style.h"
#include "reports/page/exports/packed.h"
#include "reports/page/sections/section.h"

namespace decodelab {
namespace {

// Ink takes the colour of the text around it, and the paper shows through.
std::string figure_html(const std::string& name, const Figure& figure, const SectionContext& context) {
  const auto drawing = context.drawings.find(name);
  const std::string still = drawing == context.drawings.end()
                                ? "<p class=\"soft\">This figure was not drawn when the report "
                                  "was written; it appears where JavaScript runs.</p>"
                                : in_page_colors(drawing->second);
  const std::string spec = figure.spec.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  return fmt::format(
      "<figure id=\"{0}\">\n<h3>{1}</h3>\n<div class=\"drawing\" data-figure=\"{0}\" role=\"img\" "
      "aria-label=\"{1}\">{2}</div>\n<figcaption>{3}</figcaption>\n{4}"
      "<script type=\"text/plain\" id=\"spec-{0}\">{5}</script>\n</figure>\n",
      escape_html(name), escape_html(figure.title), still, escape_html(figure.caption),
      context.detail == Detail::full ? folded_html("Data of this figure", to_html(figure.data))
                                     : "<p class=\"soft\">Its data: the tables below, and cells.csv.</p>\n",
      packed(in_page_colors(spec)));
}

}  // namespace

std::string folded_html(const std::string& summary, const std::string& body) {
  return fmt::format("<details><summary>{}</summary>\n{}</details>\n", escape_html(summary), body);
}

std::string figures_html(const SectionContext& context, FigureSection section) {
  std::string html;
  for (const Figure& figure : context.run.figures) {
    if (figure.section == section) {
      html += figure_html(context.run.prefix + figure.name, figure, context);
    }
  }
  return html;
}

}  // namespace decodelab
