// Outputs as bytes, and the keys that they are kept by.
#include "bench/measure/kept_outputs.h"

#include <stdexcept>

#include <fmt/format.h>

#include "bench/machine/environment.h"
#include "bench/plan/step_scope.h"
#include "engine/checkpoint/cache_file.h"
#include "engine/checkpoint/packed_files.h"

namespace decodelab {

std::string computed_by(const BuildRecord& build, const std::filesystem::path& checkpoint, std::int64_t seed,
                        const std::filesystem::path& cache_directory) {
  const MachineRecord machine = detect_machine();
  return fmt::format("{}{} {} {}\n{} {}\nweights {}\nseed {}\n", stamp_of("/proc/self/exe"), build.commit,
                     build.compiler, build.libtorch, machine.cpu, machine.isa,
                     weights_digest(checkpoint, cache_directory), seed);
}

std::string KeptOutputs::key_of(const CellRecord& cell, const std::string& request, std::int64_t steps) const {
  const std::int64_t samples = scope_of_cell(cell.phase, cell.scope).samples;
  return fmt::format("{}outputs of {} batch {}{} length {} {} {} {} threads {} fill, {} steps{}", key_,
                     to_string(cell.phase), cell.batch, samples == 1 ? "" : fmt::format(" times {}", samples),
                     cell.length, cell.dtype, cell.device, cell.threads, cell.fill, steps, request);
}

std::optional<OutputTrace> KeptOutputs::find(const CellRecord& cell, const std::string& request,
                                             std::int64_t steps) const {
  const auto bytes = bytes_.read(key_of(cell, request, steps));
  if (!bytes) {
    return std::nullopt;
  }
  try {
    BytesReader reader(*bytes);
    OutputTrace trace{.first = reader.numbers(), .tokens = {}, .logits = {}};
    trace.batch = reader.number();
    trace.vocabulary = reader.number();
    for (std::int64_t left = reader.number(); left > 0; --left) {
      trace.tokens.push_back(reader.numbers());
    }
    for (std::int64_t left = reader.number(); left > 0; --left) {
      trace.logits.push_back(reader.floats());
    }
    return trace;
  } catch (const std::out_of_range&) {
    return std::nullopt;
  }
}

void KeptOutputs::keep(const CellRecord& cell, const std::string& request, std::int64_t steps,
                       const OutputTrace& trace) const {
  BytesWriter writer;
  writer.numbers(trace.first);
  writer.number(trace.batch);
  writer.number(trace.vocabulary);
  writer.number(std::ssize(trace.tokens));
  for (const auto& tokens : trace.tokens) {
    writer.numbers(tokens);
  }
  writer.number(std::ssize(trace.logits));
  for (const auto& logits : trace.logits) {
    writer.floats(logits);
  }
  bytes_.keep(key_of(cell, request, steps), writer.written());
}

}  // namespace decodelab
