// The side of the worker protocol that answers: decodelab as somebody's worker.
#pragma once

#include <functional>
#include <memory>

#include "bench/measure/process/worker_protocol.h"
#include "bench/measure/worker.h"

namespace decodelab {

/// Answers requests from `requests` on `replies` until `bye` or the end of the requests; false when a line was no
/// request at all.
///
/// `load` makes the worker that cells are run on. What it or the worker throws becomes an error reply, and the server
/// goes on.
bool serve_worker(int requests, int replies, const WorkerHello& hello,
                  const std::function<std::unique_ptr<Worker>(const WorkerLoad&)>& load);

}  // namespace decodelab
