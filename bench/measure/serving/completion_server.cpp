// Starts a server where there is none, waits for it, and asks it.
#include "bench/measure/serving/completion_server.h"

#include <algorithm>
#include <array>
#include <thread>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "bench/measure/worker.h"

namespace decodelab {
namespace {

/// How often a server that is starting is asked whether it is ready, and how long it may take to say so.
constexpr auto kReadyPoll = std::chrono::milliseconds(50);
constexpr auto kReadyLimit = std::chrono::milliseconds(5000);
/// A server that has closed its connections may take so long to end.
constexpr auto kEndOfServer = std::chrono::milliseconds(1000);
/// Requests of which the median is the empty round trip.
constexpr std::size_t kEmptyRoundTrips = 21;
constexpr int kStatusFine = 200;
constexpr int kStatusUnavailable = 503;

}  // namespace

CompletionServer::CompletionServer(ServerOptions options, std::map<std::string, std::string> values)
    : options_(std::move(options)), values_(std::move(values)) {
  if (options_.url) {
    address_ = *options_.url;
  } else {
    values_["port"] = "0";
    fill_in_command(options_.command, values_);  // refuses one without a port
  }
}

std::string CompletionServer::root() const {
  constexpr std::string_view kVersion = "/v1";
  const std::string& path = address_.path;
  return path.ends_with(kVersion) ? path.substr(0, path.size() - kVersion.size()) : path;
}

std::optional<HttpResponse> CompletionServer::get(const std::string& path, std::string* why) const {
  try {
    return exchange_once(*resolved_, http_request(address_, path), std::min(options_.stall, kReadyLimit));
  } catch (const HttpError& error) {
    if (why != nullptr) {
      *why = error.what();
    }
    return std::nullopt;
  }
}

void CompletionServer::make_ready() {
  if (process_ && process_->ended()) {
    process_.reset();
    ready_ = false;
  }
  if (ready_) {
    return;
  }
  const std::int64_t before = monotonic_ns();
  start();
  wait_until_ready();
  learn();
  ready_ = true;
  starting_ns_ += monotonic_ns() - before;
}

void CompletionServer::start() {
  if (!options_.url) {
    if (deaths_ >= kMostServerDeaths) {
      throw WorkerError(RowStatus::failed, fmt::format("the server died {} times and was given up; its command was: {}",
                                                       deaths_, options_.command));
    }
    address_ = {.host = "127.0.0.1", .port = free_port()};
    values_["port"] = std::to_string(address_.port);
    process_.emplace(fill_in_command(options_.command, values_));
  }
  try {
    resolved_ = resolve(address_);
  } catch (const HttpError& error) {
    throw WorkerError(RowStatus::failed, fmt::format("the server {}", error.what()));
  }
}

void CompletionServer::wait_until_ready() {
  const auto deadline = std::chrono::steady_clock::now() + options_.start_limit;
  const std::array<std::string, 2> paths{root() + "/health", root() + "/v1/models"};
  while (true) {
    std::string why;
    bool starting = false;
    for (const std::string& path : paths) {
      const std::optional<HttpResponse> answer = get(path, &why);
      if (answer && answer->status() == kStatusFine) {
        health_path_ = path;
        return;
      }
      starting = starting || !answer || answer->status() == kStatusUnavailable;
      why = answer ? fmt::format("answers {} with {}", path, answer->status()) : why;
      if (starting) {
        break;
      }
    }
    if (process_) {
      if (const auto how = process_->ended()) {
        ++deaths_;
        process_.reset();
        throw WorkerError(RowStatus::failed, fmt::format("the server {}", *how));
      }
    } else if (!starting || !why.starts_with("answers")) {
      throw WorkerError(RowStatus::failed,
                        fmt::format("the server {} ({}): expected one that runs already, or --serve to start one", why,
                                    to_string(address_)));
    }
    if (std::chrono::steady_clock::now() >= deadline) {
      const std::string words = process_ ? process_->last_words() : "";
      ++deaths_;
      process_.reset();
      throw WorkerError(RowStatus::failed,
                        fmt::format("the server was not ready within {} s, and {} ({}){}; --start-seconds allows more",
                                    options_.start_limit.count(), why, to_string(address_), words));
    }
    std::this_thread::sleep_for(kReadyPoll);
  }
}

void CompletionServer::learn() {
  if (process_) {
    process_->know_family();
  }
  const auto body_of = [&](const std::string& path) {
    const std::optional<HttpResponse> answer = get(path);
    return answer && answer->status() == kStatusFine ? answer->body() : std::string();
  };
  if (options_.api == ServerApi::llama_cpp) {
    version_ = text_in_reply(body_of(root() + "/props"), "build_info");
    return;
  }
  version_ = text_in_reply(body_of(root() + "/version"), "version");
  model_ = options_.model.empty() ? first_model(body_of(root() + "/v1/models")) : options_.model;
  if (model_.empty()) {
    throw WorkerError(RowStatus::failed, "the server names no model at /v1/models: pass --model NAME");
  }
}

std::string CompletionServer::settings_json() const {
  nlohmann::json settings{{"api", to_string(options_.api)}};
  if (options_.url) {
    settings["url"] = to_string(*options_.url);
  } else {
    settings["serve"] = options_.command;
  }
  if (!model_.empty()) {
    settings["served_model"] = model_;
  }
  if (!version_.empty()) {
    settings["server_version"] = version_;
  }
  return settings.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

std::vector<HttpExchange> CompletionServer::run(const std::vector<StreamRequest>& requests, const SendPlan& plan,
                                                std::int64_t& start_ns) {
  std::vector<HttpExchange> exchanges;
  exchanges.reserve(requests.size());
  const std::string path = completions_path(options_.api, address_.path);
  for (StreamRequest request : requests) {
    request.model = model_;
    exchanges.emplace_back(http_request(address_, path, completion_body(options_.api, request)));
  }
  start_ns = run_exchanges(exchanges, *resolved_, plan, options_.stall);
  return exchanges;
}

/// Runs `read`, and says how the server ended where that is why it threw.
template <typename Read>
auto CompletionServer::explained(Read&& read) {
  try {
    auto result = read();
    deaths_ = 0;
    return result;
  } catch (const WorkerError& error) {
    if (error.status != RowStatus::failed) {
      throw;
    }
    if (process_) {
      if (const auto how = process_->ended(kEndOfServer)) {
        ++deaths_;
        process_.reset();
        ready_ = false;
        throw WorkerError(RowStatus::failed, fmt::format("the server {}", *how));
      }
    }
    throw WorkerError(RowStatus::failed, fmt::format("{} ({})", error.what(), to_string(address_)));
  }
}

StreamRound CompletionServer::streams(const std::vector<StreamRequest>& requests, const SendPlan& plan) {
  make_ready();
  return explained([&] {
    StreamRound round;
    const std::vector<HttpExchange> exchanges = run(requests, plan, round.start_ns);
    for (std::size_t index = 0; index < exchanges.size(); ++index) {
      round.streams.push_back(read_completion(options_.api, exchanges[index], requests[index].max_tokens));
    }
    return round;
  });
}

std::vector<std::vector<std::int64_t>> CompletionServer::choices(const std::vector<std::vector<std::int64_t>>& prompts,
                                                                 const std::vector<std::int64_t>& tokens,
                                                                 std::size_t most_at_once) {
  make_ready();
  const bool biased = options_.api == ServerApi::llama_cpp;  // where it is told to go on behind an end of text
  return explained([&] {
    std::vector<std::vector<std::int64_t>> chosen(prompts.size());
    std::vector<std::vector<std::int64_t>> held = prompts;
    while (true) {
      std::vector<StreamRequest> requests;
      std::vector<std::size_t> rows;
      for (std::size_t row = 0; row < prompts.size(); ++row) {
        if (const std::int64_t left = tokens[row] - std::ssize(chosen[row]); left > 0) {
          rows.push_back(row);
          requests.push_back({.prompt = held[row], .max_tokens = left, .stream = !biased, .ignore_eos = !biased});
        }
      }
      if (rows.empty()) {
        return chosen;
      }
      std::int64_t ignored = 0;
      const std::vector<HttpExchange> exchanges = run(requests, {.most_at_once = most_at_once}, ignored);
      for (std::size_t index = 0; index < rows.size(); ++index) {
        const std::int64_t asked = requests[index].max_tokens;
        const StreamedCompletion completion = biased ? read_whole_completion(options_.api, exchanges[index], asked)
                                                     : read_completion(options_.api, exchanges[index], asked);
        if (std::ssize(completion.ids) < asked && completion.finish != "eos") {
          throw WorkerError(RowStatus::failed,
                            fmt::format("the server sent {} tokens where {} were asked for, for the reason '{}'",
                                        completion.ids.size(), asked, completion.finish));
        }
        for (std::vector<std::int64_t>* ids : {&chosen[rows[index]], &held[rows[index]]}) {
          ids->insert(ids->end(), completion.ids.begin(), completion.ids.end());
        }
      }
    }
  });
}

std::int64_t CompletionServer::empty_round_trip_ns() {
  make_ready();
  std::vector<std::int64_t> times;
  for (std::size_t trip = 0; trip < kEmptyRoundTrips; ++trip) {
    const std::int64_t begun = monotonic_ns();
    if (get(health_path_)) {
      times.push_back(monotonic_ns() - begun);
    }
  }
  if (times.empty()) {
    return 0;
  }
  std::ranges::nth_element(times, times.begin() + std::ssize(times) / 2);
  return times[times.size() / 2];
}

}  // namespace decodelab
