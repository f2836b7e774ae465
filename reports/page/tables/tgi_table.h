// Latency and throughput as the Markdown tables of TGI's text-generation-benchmark, to lay old results beside new ones.
#pragma once

#include <vector>

#include "base/table.h"
#include "reports/statistics/summary.h"

namespace decodelab {

/// Returns two tables for each arm, length and setting, latency and then throughput, with the columns and rows of
/// text-generation-benchmark (huggingface/text-generation-inference, benchmark/src/table.rs):
///
///   Step | Batch Size | Average | Lowest | Highest | p50 | p90 | p99     Prefill, Decode (token), Decode (total); ms
///   Step | Batch Size | Average | Lowest | Highest                       Prefill, Decode; tokens/secs
///
/// As in TGI's tables, only the first row of a step shows its name. Prefill makes one token for each row of the batch.
/// Notes say where the numbers mean something else than TGI's. `arm` selects one arm; empty selects all. Rooflines have
/// no table.
std::vector<Table> tgi_tables(const RunSummary& summary, const std::string& arm = "");

}  // namespace decodelab
