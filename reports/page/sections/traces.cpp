// Where the time goes and the traces that say so: figures of their accounts, links to their files, the commands that
// make them.
#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "base/escape.h"
#include "base/units.h"
#include "reports/figures/traced_cells.h"
#include "reports/page/sections/section.h"
#include "reports/statistics/labels.h"

namespace decodelab {
namespace {

// Turns a path into a link to a local file, without a scheme and a host, whatever the path contains.
std::string file_link(const std::string& path) {
  std::string link;
  for (const char c : path) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain =
        (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '.' || c == '_' || c == '-';
    if (c == '/' && link.ends_with('/')) {
      continue;  // two slashes would begin a host name
    }
    link += plain || c == '/' ? std::string(1, c) : fmt::format("%{:02X}", byte);
  }
  return link;
}

std::string how_to_trace(const RunReport& run) {
  return fmt::format(
      "<p>No arm of this run was traced. This command traces them and adds the account of their stages to the store; "
      "then write the page again:</p>\n<pre>{}</pre>\n",
      escape_html(trace_command(run.summary.run)));
}

struct Names {
  std::map<std::int64_t, std::string> cells;
  std::map<std::int64_t, std::string> arms;
};

Names names_of(const RunData& data) {
  Names names;
  for (const CellRecord& cell : data.cells) {
    names.cells[cell.id] = cell_label(cell);
  }
  for (const ArmRecord& arm : data.arms) {
    names.arms[arm.id] = arm.label;
  }
  return names;
}

Table attribution_table(const RunData& data, Names& names) {
  Table table{.title = "One traced step by stage, and idle time of a device by cause",
              .columns = {{"Cell"},
                          {"Arm"},
                          {"Of"},
                          {"Name"},
                          {"Host", true},
                          {"Device", true},
                          {"Operators", true},
                          {"Kernels", true},
                          {"Allocations", true},
                          {"Allocated", true}},
              .rows = {},
              .notes = {"Means over the traced steps, which tracing makes longer: they say where time goes, not how "
                        "long an untraced step takes."}};
  for (const TraceRecord& trace : data.traces) {
    if (trace.steps <= 0) {
      continue;
    }
    const auto steps = static_cast<double>(trace.steps);
    const auto time = [&](std::int64_t ns) {
      return ns == 0 ? std::string() : format_time(static_cast<double>(ns) / steps);
    };
    const auto count = [&](std::int64_t value) {
      return value == 0 ? std::string() : fmt::format("{:.4g}", static_cast<double>(value) / steps);
    };
    for (const TraceShareRecord& share : trace.shares) {
      table.rows.push_back(
          {data.run.id,
           trace.cell_id,
           {names.cells[trace.cell_id], names.arms[trace.arm_id], share.kind, share.name, time(share.host_ns),
            time(share.device_ns), count(share.operators), count(share.kernels), count(share.allocations),
            share.allocated_bytes == 0 ? "" : format_bytes(share.allocated_bytes / trace.steps)}});
    }
    table.rows.push_back({data.run.id,
                          trace.cell_id,
                          {names.cells[trace.cell_id], names.arms[trace.arm_id], "stage", kResidual,
                           time(trace.residual_ns), "", "", "", "", ""}});
  }
  return table;
}

}  // namespace

std::string breakdown_section(const SectionContext& context) {
  std::string figures = figures_html(context, FigureSection::breakdown);
  if (!figures.empty()) {
    return figures;
  }
  if (context.run.data->traces.empty()) {
    return how_to_trace(context.run);
  }
  return "<p>The traces of this run have no account that can be drawn; the section Traces says why.</p>\n";
}

std::string traces_section(const SectionContext& context) {
  const RunData& data = *context.run.data;
  if (data.traces.empty()) {
    return "";
  }
  Names names = names_of(data);
  std::string html = "<ul class=\"traces\">\n";
  for (const TraceRecord& trace : data.traces) {
    html += fmt::format(
        "<li data-run=\"{}\" data-cell=\"{}\"><a href=\"{}\">{}</a>: {} in {}, {} steps, verdict "
        "<b>{}</b>{}{}<br><code>{}</code></li>\n",
        data.run.id, trace.cell_id, escape_html(file_link(trace.file)), escape_html(trace.file),
        escape_html(names.arms[trace.arm_id]), escape_html(names.cells[trace.cell_id]), trace.steps,
        escape_html(trace.verdict), trace.reason.empty() ? "" : ": " + escape_html(trace.reason),
        trace.perturbation > 0
            ? fmt::format(". A traced step takes {} times an untraced one.",
                          format_ratio(trace.perturbation, Interval{trace.perturbation_low, trace.perturbation_high}))
            : ". What tracing costs was not measured.",
        escape_html(trace.command));
  }
  return html +
         "</ul>\n<p class=\"soft\">The files lie where they were written; a page that was moved does not find relative "
         "ones.</p>\n" +
         folded_html("Attribution of traced steps", to_html(attribution_table(data, names)));
}

}  // namespace decodelab
