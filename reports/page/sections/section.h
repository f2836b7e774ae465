// The parts of a page that belong to one run, in the order in which they are read.
#pragma once

#include <map>
#include <span>
#include <string>

#include "reports/page/page.h"

namespace decodelab {

/// Very large runs leave out what stands elsewhere on the page, or in the files beside it.
enum class Detail { full, compact };

struct SectionContext {
  const RunReport& run;
  const std::map<std::string, std::string>& drawings;  ///< As page_html() takes them.
  Detail detail = Detail::full;
};

/// One section: `html` returns what stands under the heading; empty leaves out the heading and its link too.
struct Section {
  const char* id;    ///< Of its heading, after the run's prefix.
  const char* link;  ///< In the navigation.
  const char* title;
  std::string (*html)(const SectionContext&);
};

/// Every section, in the order of the page. A new one is a row.
std::span<const Section> sections();

/// All figures of a section with their captions, data and specs; empty where the run has none there.
std::string figures_html(const SectionContext& context, FigureSection section);

std::string tables_section(const SectionContext& context);
std::string trust_section(const SectionContext& context);
/// Figures of traces, or how to come by them.
std::string breakdown_section(const SectionContext& context);
std::string traces_section(const SectionContext& context);

/// `body` behind a summary that opens it; the summary is escaped.
std::string folded_html(const std::string& summary, const std::string& body);

}  // namespace decodelab
