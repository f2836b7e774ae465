// A streaming HTTP server as a worker: its cells are asked for over the network.
#pragma once

#include <memory>

#include "bench/measure/process/worker_protocol.h"
#include "bench/measure/serving/completion_server.h"
#include "bench/measure/worker.h"

namespace decodelab {

/// Counters of such a worker's rows. Those of time are measured, not exact.
inline constexpr const char* kReadTogether = "tokens_read_together";
inline constexpr const char* kClientCpuNs = "client_cpu_ns";             ///< Of this process, for each counted step.
inline constexpr const char* kEmptyRoundTripNs = "empty_round_trip_ns";  ///< Of a request that computes nothing.

/// Returns what a worker of such a server says of itself. It shows tokens alone, chooses greedily, and times whole
/// visits: a stream cannot wait while another arm runs.
WorkerHello http_hello(const ServerOptions& options, std::string version);

/// Returns a worker that asks the server of `options` for the cells of a run, which have scope `serving` or are of
/// phase batching. The command of a server that it starts is told `{model}`, `{dtype}` (fp32), `{torch_dtype}`
/// (float32),
/// `{threads}`, `{seed}` and `{port}`.
///
/// Waits until the server is ready. Throws WorkerError where it does not become so, std::invalid_argument where the
/// model's configuration cannot be read. A cell of any other scope is `unsupported`.
std::unique_ptr<Worker> make_http_worker(const ServerOptions& options, const WorkerLoad& load);

}  // namespace decodelab
