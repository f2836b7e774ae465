// A made-up account of a trace for the tests of the store and of reports: its stages and the residual add up to its
// steps.
#pragma once

#include <cmath>
#include <cstdint>
#include <numeric>

#include "reports/store/record.h"

namespace decodelab::testing {

/// `attention_factor` and `head_factor` are the times of these stages relative to the first arm's, as a variant would
/// change them.
inline TraceRecord sample_trace(std::int64_t cell_id, std::int64_t arm_id, double attention_factor = 1,
                                double head_factor = 1) {
  const auto scaled = [](double ns, double factor) { return static_cast<std::int64_t>(std::llround(ns * factor)); };
  TraceRecord trace{.cell_id = cell_id,
                    .arm_id = arm_id,
                    .file = "traces/cell.pftrace",
                    .command = "decodelab trace --batch 1 --length 64",
                    .verdict = "ok",
                    .reason = "",
                    .tier = 1,
                    .steps = 16,
                    .steps_ns = 0,
                    .residual_ns = 400'000,
                    .perturbation = 1.012,
                    .perturbation_low = 1.004,
                    .perturbation_high = 1.021,
                    .shares = {}};
  trace.shares = {{.kind = "stage",
                   .name = "attention",
                   .host_ns = scaled(64e6, attention_factor),
                   .operators = 640,
                   .allocations = 320,
                   .allocated_bytes = 81'920},
                  {.kind = "stage", .name = "mlp", .host_ns = scaled(48e6, 1), .operators = 480},
                  {.kind = "stage", .name = "head", .host_ns = scaled(16e6, head_factor), .operators = 16},
                  {.kind = "stage", .name = "other", .host_ns = 800'000, .operators = 4}};
  trace.steps_ns = std::accumulate(trace.shares.begin(), trace.shares.end(), trace.residual_ns,
                                   [](std::int64_t sum, const TraceShareRecord& share) { return sum + share.host_ns; });
  return trace;
}

}  // namespace decodelab::testing
