// A server of completions as a client sees it: one that runs already, or one that is started for the client.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "bench/measure/serving/http_address.h"
#include "bench/measure/serving/server_api.h"
#include "bench/measure/serving/server_process.h"
#include "bench/measure/serving/streamed_completion.h"

namespace decodelab {

/// Which server is asked, and how.
struct ServerOptions {
  std::optional<HttpAddress> url{};  ///< Of a server that runs already; else `command` starts one.
  std::string command{};             ///< For /bin/sh, with `{port}` and others of fill_in_command() in it.
  ServerApi api = ServerApi::openai;
  std::string model{};  ///< As requests name it; empty: the first that the server has. Only the openai form has names.
  std::chrono::milliseconds stall{60'000};  ///< The longest silence of a server that has requests.
  std::chrono::seconds start_limit{240};    ///< How long a server may take until it is ready.
};

/// Completions that were asked for together.
struct StreamRound {
  std::int64_t start_ns = 0;  ///< Before the first connection was begun, by monotonic_ns().
  std::vector<StreamedCompletion> streams{};
};

/// Every call may throw WorkerError, whose message says how the server ended where it did.
class CompletionServer {
 public:
  static constexpr int kMostServerDeaths = 3;

  /// `values` are filled into the command, with the port added to them. Throws std::invalid_argument for a command
  /// without `{port}`; starts nothing.
  CompletionServer(ServerOptions options, std::map<std::string, std::string> values);

  /// Waits until the server answers, and starts it first where it is this client's own and does not run. After
  /// kMostServerDeaths in a row it is given up.
  void make_ready();
  /// Runs completions as streams, each over a connection of its own, and returns them in the order of the requests.
  StreamRound streams(const std::vector<StreamRequest>& requests, const SendPlan& plan);
  /// Returns the ids that the model chooses behind each prompt, `tokens[row]` of them, end-of-text tokens among them.
  ///
  /// llama-server ends a completion at such a token unless it is kept from ever choosing one. It is asked again then,
  /// with all that it has said behind the prompt, so that no choice is biased.
  std::vector<std::vector<std::int64_t>> choices(const std::vector<std::vector<std::int64_t>>& prompts,
                                                 const std::vector<std::int64_t>& tokens, std::size_t most_at_once);
  /// Returns the median time of a request for the path of health, which computes nothing.
  std::int64_t empty_round_trip_ns();

  /// Returns a JSON object of what the server says of itself; known once it is ready.
  std::string settings_json() const;
  std::int64_t starting_ns() const { return starting_ns_; }  ///< Time spent in make_ready() so far.

 private:
  void start();
  void wait_until_ready();
  /// Returns the status of a GET; nothing where there is no answer, whose reason goes into `why`.
  std::optional<HttpResponse> get(const std::string& path, std::string* why = nullptr) const;
  std::string root() const;
  void learn();
  /// Runs the requests, and returns their exchanges; `start_ns` is as in StreamRound.
  std::vector<HttpExchange> run(const std::vector<StreamRequest>& requests, const SendPlan& plan,
                                std::int64_t& start_ns);
  template <typename Read>
  auto explained(Read&& read);

  ServerOptions options_;
  std::map<std::string, std::string> values_;
  std::optional<ServerProcess> process_;
  HttpAddress address_;
  std::optional<SocketAddress> resolved_;
  bool ready_ = false;
  int deaths_ = 0;
  std::string health_path_;  ///< What answers while nothing is asked of the model.
  std::string model_;
  std::string version_;
  std::int64_t starting_ns_ = 0;
};

}  // namespace decodelab
