// A server is measured as any other worker is, and whatever it does wrong is a reason, never a hang.
#include "bench/measure/serving/http_worker.h"

#include <atomic>
#include <chrono>
#include <set>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "bench/measure/cell_check.h"
#include "engine/checkpoint/synthetic.h"
#include "reports/store/flags.h"
#include "tests/bench/measure/serving/fake_server.h"
#include "tests/temporary_folder.h"

namespace decodelab {
namespace {

using testing::chunk_of;
using testing::FakeConnection;
using testing::FakeServer;
using testing::ruled_ids;

using Ids = std::vector<std::int64_t>;

/// What the fake server does, beside answering by its rule.
struct ServerManners {
  std::chrono::milliseconds prefill{2};
  std::chrono::milliseconds step{1};
  std::int64_t tokens_of_an_event = 1;
  std::int64_t end_of_text = -1;  ///< The id at which llama-server ends a completion, where it is not told to go on.
};

/// Answers as a server of either form does, and keeps the prompts that were streamed.
class RuledServer {
 public:
  explicit RuledServer(ServerManners manners = {}) : manners_(manners) {}

  const HttpAddress& address() const { return server_.address(); }
  std::multiset<Ids> streamed() const {
    const std::lock_guard lock(mutex_);
    return streamed_;
  }

 private:
  void answer(const FakeConnection& connection) {
    if (connection.path() == "/health") {
      connection.send(testing::with_length("{}"));
    } else if (connection.path() == "/v1/models") {
      connection.send(testing::with_length(R"({"data":[{"id":"fake"}]})"));
    } else if (connection.path() == "/v1/completions" || connection.path() == "/completion") {
      complete(connection);
    } else {
      connection.send(testing::with_length("{}", "404 Not Found"));
    }
  }

  void complete(const FakeConnection& connection) {
    const nlohmann::json asked = connection.body();
    const Ids prompt = asked.at("prompt");
    const bool openai = connection.path() == "/v1/completions";
    Ids ids = ruled_ids(prompt, asked.at(openai ? "max_tokens" : "n_predict"));
    const auto end = std::ranges::find(ids, manners_.end_of_text);
    const bool stops = end != ids.end() && !asked.at("ignore_eos").get<bool>();
    if (stops) {
      ids.erase(end + 1, ids.end());
    }
    if (!asked.at("stream").get<bool>()) {
      connection.send(testing::with_length(nlohmann::json{
          {"tokens", ids}, {"stop", true}, {"stop_type", stops ? "eos" : "limit"}, {"tokens_predicted", ids.size()}}
                                               .dump()));
      return;
    }
    {
      const std::lock_guard lock(mutex_);
      streamed_.insert(prompt);
    }
    std::this_thread::sleep_for(manners_.prefill);
    connection.send(testing::kStreamHead);
    for (std::size_t at = 0; at < ids.size();) {
      const std::size_t next = std::min(at + static_cast<std::size_t>(manners_.tokens_of_an_event), ids.size());
      const Ids some(ids.begin() + static_cast<std::ptrdiff_t>(at), ids.begin() + static_cast<std::ptrdiff_t>(next));
      if (at > 0) {
        std::this_thread::sleep_for(manners_.step);
      }
      connection.send(chunk_of(openai ? testing::openai_event(some, next == ids.size() ? "length" : nullptr)
                                      : testing::llama_event(some, static_cast<std::int64_t>(next))));
      at = next;
    }
    connection.send(openai ? chunk_of(testing::openai_usage(std::ssize(ids))) + chunk_of(testing::kOpenAiDone)
                           : chunk_of(testing::llama_end(std::ssize(ids))));
    connection.send(testing::kLastChunk);
  }

  const ServerManners manners_;
  mutable std::mutex mutex_;
  std::multiset<Ids> streamed_;
  FakeServer server_{[this](const FakeConnection& connection) { answer(connection); }};
};

class HttpWorkerTest : public ::testing::Test {
 protected:
  std::unique_ptr<Worker> worker_of(const HttpAddress& address, ServerApi api = ServerApi::openai,
                                    std::chrono::milliseconds stall = std::chrono::seconds(20)) const {
    return make_http_worker({.url = address, .api = api, .stall = stall}, load_);
  }
  std::unique_ptr<Worker> worker_of(const std::string& command) const {
    return make_http_worker({.command = command, .start_limit = std::chrono::seconds(20)}, load_);
  }

  static CellRecord cell_of(Phase phase, std::int64_t batch = 2) {
    return {.phase = phase,
            .batch = batch,
            .length = 3,
            .dtype = "fp32",
            .device = "cpu",
            .threads = 1,
            .scope = "serving",
            .fill = "generated",
            .steps = 12};
  }

  const testing::TemporaryFolder folder_;
  const std::filesystem::path config_ = folder_.write("config.json", config_json(*synthetic_config("synthetic:tiny")));
  const WorkerLoad load_{
      .model = folder_.path().string(), .dtype = "fp32", .device = "cpu", .threads = 1, .seed = 1, .max_tokens = 5};
  const std::vector<Ids> prompts_{{1, 2, 3}, {4, 5, 6}};
};

template <typename Call>
std::string worker_error(RowStatus status, Call&& call) {
  try {
    call();
  } catch (const WorkerError& error) {
    EXPECT_EQ(error.status, status) << error.what();
    return error.what();
  }
  return "nothing was thrown";
}

TEST_F(HttpWorkerTest, PutsOutTheTokensOfTheServer) {
  const RuledServer server;
  for (const ServerApi api : {ServerApi::openai, ServerApi::llama_cpp}) {
    const auto worker = worker_of(server.address(), api);
    worker->use_prompts(prompts_);
    const Ids first = ruled_ids(prompts_[0], 5);
    const Ids second = ruled_ids(prompts_[1], 5);
    const OutputTrace prefill = worker->outputs(cell_of(Phase::prefill), 4, nullptr);
    ASSERT_EQ(prefill.tokens.size(), 4U);
    EXPECT_TRUE(prefill.first.empty());
    EXPECT_EQ(prefill.tokens[0], (Ids{first[0], second[0]}));
    EXPECT_EQ(prefill.tokens[3], (Ids{first[3], second[3]}));
    const OutputTrace decode = worker->outputs(cell_of(Phase::decode), 4, nullptr);
    ASSERT_EQ(decode.tokens.size(), 4U);
    EXPECT_EQ(decode.first, (Ids{first[0], second[0]})) << "what the first decode step is fed";
    EXPECT_EQ(decode.tokens[0], (Ids{first[1], second[1]}));
    EXPECT_EQ(decode.tokens[3], (Ids{first[4], second[4]}));
    EXPECT_TRUE(decode.logits.empty());
  }
}

TEST_F(HttpWorkerTest, AsksLlamaServerAgainWhereItEndsAtAnEndOfText) {
  const Ids ids = ruled_ids(prompts_[0], 6);
  const RuledServer server({.end_of_text = ids[2]});
  const auto worker = worker_of(server.address(), ServerApi::llama_cpp);
  worker->use_prompts(prompts_);
  const OutputTrace trace = worker->outputs(cell_of(Phase::generate), 6, nullptr);
  ASSERT_EQ(trace.tokens.size(), 6U);
  for (std::size_t step = 0; step < ids.size(); ++step) {
    EXPECT_EQ(trace.tokens[step][0], ids[step]);
  }
}

TEST_F(HttpWorkerTest, TimesEveryPhaseAsAClientSeesIt) {
  constexpr std::int64_t kMillisecond = 1'000'000;
  const RuledServer server({.prefill = std::chrono::milliseconds(60), .step = std::chrono::milliseconds(4)});
  for (const ServerApi api : {ServerApi::openai, ServerApi::llama_cpp}) {
    const auto worker = worker_of(server.address(), api);
    worker->use_prompts(prompts_);
    const auto mean = [&](Phase phase) {
      CellRecord cell = cell_of(phase);
      cell.steps = phase == Phase::decode ? 12 : 3;
      const VisitTimes times = worker->visit(cell);
      EXPECT_EQ(std::ssize(times.samples_ns), cell.steps);
      EXPECT_GT(times.warmup_steps, 0);
      EXPECT_TRUE(times.flags.empty()) << times.flags.front();
      const std::int64_t sum = std::accumulate(times.samples_ns.begin(), times.samples_ns.end(), std::int64_t{0});
      EXPECT_EQ(times.wall_ns, sum);
      return sum / cell.steps;
    };
    EXPECT_GE(mean(Phase::prefill), 60 * kMillisecond);
    EXPECT_GE(mean(Phase::decode), kMillisecond);
    EXPECT_LT(mean(Phase::decode), 60 * kMillisecond) << "the prefill is no part of it";
    EXPECT_GE(mean(Phase::generate), (60 + 4 * 4) * kMillisecond);
  }
}

TEST_F(HttpWorkerTest, StreamsNoPromptTwice) {
  const RuledServer server;
  const auto worker = worker_of(server.address());
  worker->use_prompts({{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, {21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31}});
  CellRecord cell = cell_of(Phase::prefill);
  cell.length = 11;
  worker->probe(cell);
  worker->visit(cell);
  worker->visit(cell);
  const std::multiset<Ids> streamed = server.streamed();
  EXPECT_GT(streamed.size(), 40U);
  for (const Ids& prompt : streamed) {
    EXPECT_EQ(streamed.count(prompt), 1U);
    EXPECT_EQ(prompt.size(), 11U);
  }
}

TEST_F(HttpWorkerTest, CountsWhatTheClientCostsAndHowTokensCame) {
  const RuledServer server;
  const auto worker = worker_of(server.address());
  worker->use_prompts(prompts_);
  const Probe probe = worker->probe(cell_of(Phase::decode));
  EXPECT_GE(probe.counters.at("counted_steps"), 16);
  EXPECT_GT(probe.counters.at(kClientCpuNs), 0);
  EXPECT_GT(probe.counters.at(kEmptyRoundTripNs), 0);
  EXPECT_FALSE(probe.counters.contains(kBundledTokens));
  EXPECT_GT(probe.step_ns, 0);
  EXPECT_EQ(nlohmann::json::parse(worker->settings_json()).at("served_model"), "fake");

  const RuledServer bundles({.tokens_of_an_event = 3});
  const auto other = worker_of(bundles.address());
  other->use_prompts(prompts_);
  EXPECT_GT(other->probe(cell_of(Phase::decode)).counters.at(kBundledTokens), 0);
  EXPECT_EQ(other->visit(cell_of(Phase::decode)).flags, std::vector<std::string>{kTokensBundledFlag});
}

TEST_F(HttpWorkerTest, ServesTheRequestsOfABatch) {
  const RuledServer server;
  const auto worker = worker_of(server.address());
  CellRecord cell = cell_of(Phase::batching, 1);
  cell.scope = "served";
  cell.steps = 2;
  EXPECT_NE(worker_error(RowStatus::unsupported, [&] { worker->probe(cell); }).find("no requests"), std::string::npos);
  worker->use_requests({.planned = {{.prompt_tokens = 2, .new_tokens = 3, .arrival = 0},
                                    {.prompt_tokens = 3, .new_tokens = 2, .arrival = 0.5}},
                        .prompts = {{1, 2}, {3, 4, 5}}});
  worker->use_prompts({{1, 2, 3}});
  const OutputTrace trace = worker->outputs(cell, 1 << 20, nullptr);
  const Ids first = ruled_ids({1, 2}, 3);
  const Ids second = ruled_ids({3, 4, 5}, 2);
  EXPECT_EQ(trace.batch, 2);
  EXPECT_EQ(trace.tokens, (std::vector<Ids>{{first[0], second[0]}, {first[1], second[1]}, {first[2], -1}}));
  EXPECT_EQ(worker->probe(cell).counters.at("new_tokens"), 5);
  EXPECT_EQ(worker->visit(cell).samples_ns.size(), 2U);
  cell.scope = "first-token-at-5";
  const VisitTimes at_a_rate = worker->visit(cell);
  EXPECT_GE(at_a_rate.wall_ns, 2 * 100'000'000) << "the second request comes after 100 ms";
  EXPECT_LT(at_a_rate.samples_ns[0], at_a_rate.wall_ns / 2) << "and its time counts from then";
}

TEST_F(HttpWorkerTest, SaysWhichScopeItNeeds) {
  const RuledServer server;
  const auto worker = worker_of(server.address());
  worker->use_prompts(prompts_);
  for (const Phase phase : {Phase::prefill, Phase::decode, Phase::generate}) {
    CellRecord cell = cell_of(phase);
    cell.scope = phase == Phase::generate ? "generate" : "step";
    const auto refused = [&](auto&& call) {
      return worker_error(RowStatus::unsupported, call).find("pass --scope serving") != std::string::npos;
    };
    EXPECT_TRUE(refused([&] { worker->outputs(cell, 1, nullptr); }));
    EXPECT_TRUE(refused([&] { worker->probe(cell); }));
    EXPECT_TRUE(refused([&] { worker->open_visit(cell); }));
  }
}

TEST_F(HttpWorkerTest, SaysWhenTheStreamsOfABatchNeverRunBesideEachOther) {
  std::mutex one_at_a_time;
  const FakeServer server([&](const FakeConnection& connection) {
    if (connection.path() != "/v1/completions") {
      connection.send(testing::with_length(R"({"data":[{"id":"fake"}]})"));
      return;
    }
    const std::lock_guard lock(one_at_a_time);
    const nlohmann::json asked = connection.body();
    connection.send(testing::openai_reply(ruled_ids(asked.at("prompt"), asked.at("max_tokens"))));
  });
  const auto worker = worker_of(server.address());
  worker->use_prompts(prompts_);
  const std::string why = worker_error(RowStatus::failed, [&] { worker->probe(cell_of(Phase::decode)); });
  EXPECT_NE(why.find("--max-num-seqs 2"), std::string::npos) << why;
}

TEST_F(HttpWorkerTest, GivesAReasonWhereTheServerIsNotThere) {
  const HttpAddress nobody{.host = "127.0.0.1", .port = free_port()};
  const std::string why = worker_error(RowStatus::failed, [&] { worker_of(nobody); });
  EXPECT_NE(why.find("cannot be connected to"), std::string::npos) << why;
  EXPECT_NE(why.find("--serve"), std::string::npos) << why;
}

TEST_F(HttpWorkerTest, GivesAReasonWhereTheServerStalls) {
  const FakeServer server([](const FakeConnection& connection) {
    if (connection.path() == "/v1/completions") {
      connection.send(std::string(testing::kStreamHead) + chunk_of(testing::openai_event({1})));
      connection.wait_for_the_client();
      return;
    }
    connection.send(testing::with_length(R"({"data":[{"id":"fake"}]})"));
  });
  const auto worker = worker_of(server.address(), ServerApi::openai, std::chrono::milliseconds(1000));
  worker->use_prompts(prompts_);
  const std::string why = worker_error(RowStatus::failed, [&] { worker->probe(cell_of(Phase::decode)); });
  EXPECT_NE(why.find("sent nothing for 1 s"), std::string::npos) << why;
  EXPECT_NE(why.find(to_string(server.address())), std::string::npos) << why;
}

TEST_F(HttpWorkerTest, StartsItsServerAndSaysHowItDied) {
  const std::string why = worker_error(RowStatus::failed, [&] { worker_of("echo no card for {port}; exit 7"); });
  EXPECT_NE(why.find("the server ended with exit code 7; its last line: no card for "), std::string::npos) << why;
  EXPECT_THROW(worker_of("a command without its port"), std::invalid_argument);
}

TEST_F(HttpWorkerTest, StartsItsServerAgainAfterADeathAndGivesItUpAfterThree) {
  const std::string command = "python3 " DECODELAB_TEST_DATA "/fake_server.py --port {port} --dies-after 1";
  const auto worker = worker_of(command);
  worker->use_prompts(prompts_);
  const CellRecord cell = cell_of(Phase::prefill, 2);
  for (int death = 0; death < CompletionServer::kMostServerDeaths; ++death) {
    const std::string why = worker_error(RowStatus::failed, [&] { worker->outputs(cell, 2, nullptr); });
    EXPECT_NE(why.find("ended with exit code 3"), std::string::npos) << why;
    EXPECT_NE(why.find("out of patience"), std::string::npos) << why;
  }
  EXPECT_NE(worker_error(RowStatus::failed, [&] { worker->outputs(cell, 2, nullptr); }).find("given up"),
            std::string::npos);
}

}  // namespace
}  // namespace decodelab
