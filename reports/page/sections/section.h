// The parts of a page that belong to one run, in the order in which they are read.
#pragma once

#include <map>
#include <span>
#include <string>

#include "reports/page/page.h"

namespace decodelab {

/// How much a section shows. `compact`, which very large runs use, leaves out what the page shows elsewhere and what
/// the files beside it hold.
enum class Detail { full, compact };

struct SectionContext {
  const RunReport& run;
  const std::map<std::string, std::string>& drawings;  ///< As page_html() takes them.
  Detail detail = Detail::full;
};

/// One section. `html` returns the content under the heading; where it returns an empty text, the heading and its link
/// are left out too.
struct Section {
  const char* id;    ///< HTML id of its heading, after the run's prefix.
  const char* link;  ///< Text of its link in the navigation.
  const char* title;
  std::string (*html)(const SectionContext&);
};

/// Returns every section, in the order of the page. A new section is a new row of the table in sections.cpp.
std::span<const Section> sections();

/// Returns all figures of a section with their captions, data and specs; an empty text where the run has none there.
std::string figures_html(const SectionContext& context, FigureSection section);

std::string tables_section(const SectionContext& context);
std::string trust_section(const SectionContext& context);
/// Returns the figures of traces, or, for a run without traces, how to make them.
std::string breakdown_section(const SectionContext& context);
std::string traces_section(const SectionContext& context);

/// Returns `body` folded under `summary`, which opens it; `summary` is escaped.
std::string folded_html(const std::string& summary, const std::string& body);

}  // namespace decodelab
