// One table of endings, and a temporary file for whichever format it is.
#include "profiles/write/write_trace.h"

#include <array>
#include <stdexcept>

#include "profiles/trace/attribution.h"
#include "profiles/trace/summary_json.h"
#include "profiles/write/formats.h"
#include "profiles/write/output.h"
#include "profiles/write/rows.h"

namespace decodelab {
namespace {

// Of endings with the same tail, the longest comes first.
constexpr std::array<TraceEnding, 7> kEndings{{
    {".pftrace", TraceFormat::perfetto, "for https://ui.perfetto.dev and its trace_processor"},
    {".perfetto-trace", TraceFormat::perfetto, "the same"},
    {".json.gz", TraceFormat::kineto_gzip,
     "as PyTorch's profiler (x.pt.trace.json.gz), for HolisticTraceAnalysis and chrome://tracing"},
    {".summary.json", TraceFormat::summary,
     "verdict, steps, stages and gaps without the events, for gates and reports"},
    {".json", TraceFormat::kineto, "the same, not compressed"},
    {".sqlite", TraceFormat::sqlite, "tables in the shape of nsys' export, and STEP, GAP, NODE, QUALITY"},
    {".db", TraceFormat::sqlite, "the same"},
}};

void write_sqlite(const Trace& trace, const TraceQuality& quality, OutputFile& file) {
  // SQLite opens the file itself, and takes an empty file for a new database.
  write_trace_sqlite(trace, quality, attribute(trace, quality), file.temporary());
}

void write_gzip(const Trace& trace, const TraceQuality& quality, const ByteSink& to_file) {
  GzipSink packed(to_file);
  write_kineto_json(trace, quality, [&](std::string_view bytes) { packed.write(bytes); });
  packed.finish();
}

void write_summary(const Trace& trace, const TraceQuality& quality, const ByteSink& to_file) {
  to_file(summary_text(trace, quality, attribute(trace, quality)));
}

}  // namespace

std::span<const TraceEnding> trace_endings() { return kEndings; }

TraceFormat trace_format(const std::filesystem::path& path) {
  const std::string name = path.filename().string();
  std::string known;
  for (const TraceEnding& ending : kEndings) {
    if (name.size() > ending.ending.size() && name.ends_with(ending.ending)) {
      return ending.format;
    }
    known += (known.empty() ? "" : ", ") + std::string(ending.ending);
  }
  throw std::invalid_argument("The name " + path.string() + " says no format of a trace; it must end in one of " +
                              known + ".");
}

void write_trace(const Trace& trace, const TraceQuality& quality, const std::filesystem::path& path,
                 const WriteOptions& options) {
  const TraceFormat format = trace_format(path);
  const std::size_t events = event_count(trace.events());
  if (options.most_events < 0 || events > static_cast<std::size_t>(options.most_events)) {
    throw std::runtime_error("The trace has " + std::to_string(events) + " events, but " + path.string() +
                             " may have " + std::to_string(options.most_events) +
                             ": trace fewer steps, or raise the limit.");
  }
  OutputFile file(path);
  const ByteSink to_file = [&](std::string_view bytes) { file.write(bytes); };
  switch (format) {
    case TraceFormat::perfetto: write_perfetto(trace, quality, to_file); break;
    case TraceFormat::kineto_gzip: write_gzip(trace, quality, to_file); break;
    case TraceFormat::kineto: write_kineto_json(trace, quality, to_file); break;
    case TraceFormat::sqlite: write_sqlite(trace, quality, file); break;
    case TraceFormat::summary: write_summary(trace, quality, to_file); break;
  }
  file.commit();
}

}  // namespace decodelab
