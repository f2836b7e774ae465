// Reads requests, runs them on a worker in this process, and writes replies.
#include "bench/measure/process/worker_server.h"

#include <cerrno>
#include <climits>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <stdexcept>

#include <fmt/format.h>
#include <unistd.h>

#include "bench/measure/cell_check.h"
#include "bench/measure/process/line_reader.h"

namespace decodelab {
namespace {

void write_line(int descriptor, std::string line) {
  line += '\n';
  for (std::size_t written = 0; written < line.size();) {
    const ssize_t count = write(descriptor, line.data() + written, line.size() - written);
    if (count < 0 && errno != EINTR) {
      throw std::runtime_error(fmt::format("cannot write a reply: {}", std::strerror(errno)));
    }
    written += static_cast<std::size_t>(std::max<ssize_t>(count, 0));
  }
}

/// Writes the logits into a file, which the runner removes, and returns its path; empty without logits.
std::string write_logits(const OutputTrace& trace) {
  if (trace.logits.empty()) {
    return "";
  }
  std::string path = (std::filesystem::temp_directory_path() / "decodelab-logits-XXXXXX").string();
  const int descriptor = mkstemp(path.data());
  if (descriptor < 0) {
    throw std::runtime_error(fmt::format("cannot make a file for logits: {}", std::strerror(errno)));
  }
  close(descriptor);
  std::ofstream file(path, std::ios::binary);
  for (const std::vector<float>& step : trace.logits) {
    file.write(reinterpret_cast<const char*>(step.data()), static_cast<std::streamsize>(step.size() * sizeof(float)));
  }
  file.close();
  if (!file) {
    std::filesystem::remove(path);
    throw std::runtime_error(fmt::format("cannot write the logits into {}", path));
  }
  return path;
}

/// The most that rounding its weights may move an arm's logits, of the largest, before it is wrong.
constexpr double kMostRoundingOfWeights = 0.9;

class Server {
 public:
  Server(const WorkerHello& hello, const std::function<std::unique_ptr<Worker>(const WorkerLoad&)>& load)
      : hello_(hello), load_(load) {}

  std::string answer(const WorkerRequest& request) {
    const SideWork before = side_work();
    std::string reply = reply_to(request);
    if (request.kind == "load") {  // a new worker, whose side work began at 0
      return with_side_work(std::move(reply), side_work());
    }
    const SideWork after = side_work();
    return with_side_work(std::move(reply), {.loading_ns = after.loading_ns - before.loading_ns,
                                             .packing_ns = after.packing_ns - before.packing_ns,
                                             .filling_ns = after.filling_ns - before.filling_ns});
  }

 private:
  SideWork side_work() const { return worker_ == nullptr ? SideWork() : worker_->side_work(); }

  std::string reply_to(const WorkerRequest& request) {
    if (request.kind == "hello") {
      return hello_reply(hello_, request.protocol);
    }
    if (request.kind == "bye") {
      return done_reply("bye");
    }
    if (request.kind != "turn") {
      visit_.reset();
    }
    if (request.kind == "load") {
      worker_ = load_(request.load);
      // Who asks compares with its own reference, on weights that are not rounded.
      return loaded_reply(worker_->held_to().empty() ? worker_->logit_bound() : kMostRoundingOfWeights,
                          worker_->settings_json());
    }
    if (worker_ == nullptr) {
      return error_reply(RowStatus::failed, fmt::format("'{}' before 'load'", request.kind));
    }
    if (request.kind == "prepare") {
      cell_ = request.cell;
      worker_->use_prompts(request.prompts);
      worker_->use_requests(request.requests);
      return done_reply("prepared");
    }
    if (!cell_) {
      return error_reply(RowStatus::failed, fmt::format("'{}' before 'prepare'", request.kind));
    }
    if (request.kind == "outputs") {
      const OutputTrace* const forced = request.forced ? &*request.forced : nullptr;
      const OutputTrace trace = request.logits ? worker_->outputs(*cell_, request.steps, forced)
                                               : worker_->choices(*cell_, request.steps, forced);
      return outputs_reply(trace, write_logits(trace));
    }
    if (request.kind == "counters") {
      return counters_reply(worker_->probe(*cell_));
    }
    if (request.kind == "visit") {
      cell_->steps = request.steps;
      return visit_reply(worker_->visit(*cell_));
    }
    if (request.kind == "begin") {
      cell_->steps = request.steps;
      visit_ = worker_->open_visit(*cell_);
      return begun_reply(visit_->times());
    }
    if (request.kind == "turn") {
      return slice(request.steps);
    }
    return error_reply(RowStatus::failed, fmt::format("the request '{}' is unknown", request.kind));
  }

  /// Returns the times of this slice alone.
  std::string slice(std::int64_t steps) {
    if (visit_ == nullptr) {
      return error_reply(RowStatus::failed, "'turn' before 'begin'");
    }
    const std::int64_t wall_before = visit_->times().wall_ns;
    const std::ptrdiff_t steps_before = std::ssize(visit_->times().samples_ns);
    visit_->time_slice(steps);
    const VisitTimes& times = visit_->times();
    return slice_reply({.wall_ns = times.wall_ns - wall_before,
                        .samples_ns = {times.samples_ns.begin() + steps_before, times.samples_ns.end()},
                        .flags = times.flags});
  }

  const WorkerHello& hello_;
  const std::function<std::unique_ptr<Worker>(const WorkerLoad&)>& load_;
  std::unique_ptr<Worker> worker_;
  std::optional<CellRecord> cell_;
  std::unique_ptr<OpenVisit> visit_;  ///< Of the worker and the cell above it.
};

}  // namespace

bool serve_worker(int requests, int replies, const WorkerHello& hello,
                  const std::function<std::unique_ptr<Worker>(const WorkerLoad&)>& load) {
  LineReader reader(requests);
  Server server(hello, load);
  while (!reader.ended()) {
    const auto line = reader.next(INT_MAX);
    if (!line) {
      continue;
    }
    WorkerRequest request;
    try {
      request = parse_request(*line);
    } catch (const std::invalid_argument& error) {
      write_line(replies, error_reply(RowStatus::failed, error.what()));
      return false;
    }
    std::string reply;
    try {
      reply = server.answer(request);
    } catch (const std::exception& error) {
      const CellArmRecord row = row_of_exception({}, error);
      reply = error_reply(row.status, row.reason);
    }
    write_line(replies, std::move(reply));
    if (request.kind == "bye") {
      return true;
    }
  }
  return true;
}

}  // namespace decodelab
