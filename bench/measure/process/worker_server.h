// The answering side of the worker protocol: decodelab as a worker of another program.
#pragma once

#include <functional>
#include <memory>

#include "bench/measure/process/worker_protocol.h"
#include "bench/measure/worker.h"

namespace decodelab {

/// Reads requests from the descriptor `requests` and writes the replies to `replies`, until `bye` or the end of the
/// requests. Returns false when a line was no request at all.
///
/// `load` makes the worker that cells are run on. What it or the worker throws becomes an error reply, and the server
/// continues.
bool serve_worker(int requests, int replies, const WorkerHello& hello,
                  const std::function<std::unique_ptr<Worker>(const WorkerLoad&)>& load);

}  // namespace decodelab
