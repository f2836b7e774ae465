// A stream is a completion with a time for each token, or an error that says what was wrong; it never hangs.
#include "bench/measure/serving/streamed_completion.h"

#include <gtest/gtest.h>

#include "bench/measure/worker.h"
#include "tests/bench/measure/serving/fake_server.h"
#include "tests/engine/checkpoint/mutator.h"

namespace decodelab {
namespace {

using namespace testing;  // The fake server, and what it says.

constexpr std::chrono::milliseconds kStall{20'000};

/// Asks a server that answers by `script` once, for completions of `tokens` tokens.
HttpExchange asked(const FakeServer::Script& script, std::chrono::milliseconds stall = kStall) {
  const FakeServer server(script);
  std::vector<HttpExchange> exchanges;
  exchanges.emplace_back(http_request(server.address(), "/v1/completions", "{}"));
  run_exchanges(exchanges, resolve(server.address()), {}, stall);
  return std::move(exchanges.front());
}

HttpExchange answered(const std::string& reply) {
  return asked([&](const FakeConnection& connection) { connection.send(reply); });
}

/// Returns the message of the WorkerError, whose status must be this one.
std::string completion_error(const HttpExchange& exchange, std::int64_t tokens, ServerApi api = ServerApi::openai,
                             RowStatus status = RowStatus::failed) {
  try {
    read_completion(api, exchange, tokens);
  } catch (const WorkerError& error) {
    EXPECT_EQ(error.status, status) << error.what();
    return error.what();
  }
  return "nothing was thrown";
}

TEST(StreamedCompletion, HasATimeForEachTokenInOrder) {
  const HttpExchange exchange = asked([](const FakeConnection& connection) {
    connection.send(kStreamHead);
    for (const std::int64_t id : {5, 6, 7}) {
      std::this_thread::sleep_for(std::chrono::milliseconds(150));
      connection.send(chunk_of(openai_event({id})));
    }
    connection.send(chunk_of(openai_usage(3)) + chunk_of(kOpenAiDone) + std::string(kLastChunk));
  });
  const StreamedCompletion completion = read_completion(ServerApi::openai, exchange, 3);
  EXPECT_EQ(completion.ids, (std::vector<std::int64_t>{5, 6, 7}));
  ASSERT_EQ(completion.token_ns.size(), 3U);
  EXPECT_GT(completion.token_ns[1] - completion.token_ns[0], 5'000'000) << "of the 150 ms between two tokens";
  EXPECT_GT(completion.token_ns[2] - completion.token_ns[1], 5'000'000);
  EXPECT_EQ(completion.bundled_tokens, 0);
  EXPECT_TRUE(completion.all_ids());
}

TEST(StreamedCompletion, SpreadsTheTokensOfOneEventAndCountsThem) {
  const HttpExchange exchange = asked([](const FakeConnection& connection) {
    connection.send(std::string(kStreamHead) + chunk_of(openai_event({1})));
    std::this_thread::sleep_for(std::chrono::milliseconds(150));
    connection.send(chunk_of(openai_event({2, 3, 4})));
    connection.send(chunk_of(openai_usage(4)) + chunk_of(kOpenAiDone) + std::string(kLastChunk));
  });
  const StreamedCompletion completion = read_completion(ServerApi::openai, exchange, 4);
  EXPECT_EQ(completion.bundled_tokens, 2);
  const std::int64_t third = (completion.token_ns[3] - completion.token_ns[0]) / 3;
  EXPECT_GT(third, 3'000'000);
  EXPECT_NEAR(static_cast<double>(completion.token_ns[1] - completion.token_ns[0]), static_cast<double>(third), 2);
  EXPECT_NEAR(static_cast<double>(completion.token_ns[2] - completion.token_ns[1]), static_cast<double>(third), 2);
}

TEST(StreamedCompletion, CountsEventsThatCameInOneRead) {
  const HttpExchange exchange = answered(openai_reply({1, 2, 3}));
  const StreamedCompletion completion = read_completion(ServerApi::openai, exchange, 3);
  EXPECT_EQ(completion.bundled_tokens, 0);
  EXPECT_EQ(completion.read_together, 2);
}

TEST(StreamedCompletion, GoesByLlamaServersOwnCountWhereATokenHasNoEvent) {
  const HttpExchange exchange =
      answered(std::string(kStreamHead) + chunk_of(llama_event({1}, 1)) + chunk_of(llama_event({3}, 3)) +
               chunk_of(llama_end(4)) + std::string(kLastChunk));
  const StreamedCompletion completion = read_completion(ServerApi::llama_cpp, exchange, 4);
  EXPECT_EQ(completion.ids, (std::vector<std::int64_t>{1, 3}));
  EXPECT_EQ(completion.token_ns.size(), 4U);
  EXPECT_FALSE(completion.all_ids()) << "the second token ends within a character, and so does the last";
  EXPECT_EQ(completion.bundled_tokens, 1);
  EXPECT_EQ(completion.finish, "limit");
}

TEST(StreamedCompletion, OfAReplyThatIsNoStreamHasItsIds) {
  const HttpExchange exchange =
      answered(with_length(R"({"content":"x","tokens":[4,5],"stop":true,"stop_type":"eos","tokens_predicted":2})"));
  const StreamedCompletion completion = read_whole_completion(ServerApi::llama_cpp, exchange, 9);
  EXPECT_EQ(completion.ids, (std::vector<std::int64_t>{4, 5}));
  EXPECT_EQ(completion.finish, "eos");
  EXPECT_THROW(read_whole_completion(ServerApi::llama_cpp, exchange, 1), WorkerError) << "more than were asked for";
  EXPECT_THROW(read_whole_completion(
                   ServerApi::llama_cpp,
                   answered(with_length(R"({"tokens":[4],"stop":true,"stop_type":"limit","tokens_predicted":2})")), 9),
               WorkerError);
}

TEST(StreamedCompletion, SaysWhatWasWrong) {
  const std::string head(kStreamHead);
  const std::string end = chunk_of(kOpenAiDone) + std::string(kLastChunk);
  const std::pair<std::string, const char*> cases[] = {
      {with_length(R"({"error":{"message":"prompt is too long"}})", "400 Bad Request"),
       "the server answered 400 Bad Request: prompt is too long"},
      {with_length("", "503 "), "the server answered 503: without a message"},
      {with_length(R"({"choices":[]})"), "sent no event of a stream"},
      {head + chunk_of("rubbish, and no event") + std::string(kLastChunk), "sent no event of a stream"},
      {head + chunk_of("data: rubbish\n\n") + end, "no JSON object: 'rubbish'; 0 of 2 tokens had come"},
      {head + chunk_of(openai_event({1})) + chunk_of("data: {\"error\":{\"message\":\"out of cards\"}}\n\n") + end,
       "sent an error: out of cards; 1 of 2 tokens had come"},
      {head + chunk_of(openai_event({1})) + std::string(kLastChunk), "without [DONE]; 1 of 2 tokens had come"},
      {head + chunk_of(openai_event({1})) + chunk_of("data: {") + std::string(kLastChunk), "within an event; 1 of 2"},
      {head + chunk_of(openai_event({1}, "stop")) + end,
       "sent 1 tokens where 2 were asked for, and ended the completion for the reason 'stop'"},
      {head + chunk_of(openai_event({1, 2, 3})) + end, "sent 3 tokens where 2 were asked for"},
      {head + chunk_of(openai_event({1, 2})) + chunk_of(openai_usage(5)) + end,
       "counts 5 tokens of a completion and sent 2"},
      {head + chunk_of(openai_event({1})) + "20\r\nhalf", "after 4 of the 32 bytes of a chunk; 1 of 2 tokens had come"},
      {head + "ffffffffffffffffff\r\n", "the most that is read"},
      {"", "the server closed the connection without an answer; 0 of 2 tokens had come"},
      {"HTTP/1.1 200 OK\r\nX: y\r\n", "before the end of the header fields"},
      {"what is this\r\n\r\n", "no HTTP/1.1 status line"},
  };
  for (const auto& [reply, words] : cases) {
    const std::string error = completion_error(answered(reply), 2);
    EXPECT_NE(error.find(words), std::string::npos) << reply << "\n" << error;
    EXPECT_TRUE(error.starts_with("the server ")) << error;
  }
  const std::string stalled =
      completion_error(asked(
                           [](const FakeConnection& connection) {
                             connection.send(std::string(kStreamHead) + chunk_of(openai_event({1})));
                             connection.wait_for_the_client();
                           },
                           std::chrono::milliseconds(1000)),
                       2);
  EXPECT_NE(stalled.find("sent nothing for 1 s; 1 of 2 tokens had come"), std::string::npos) << stalled;
}

TEST(StreamedCompletion, IsUnsupportedWhereTheServerShowsNoIds) {
  const std::string reply = std::string(kStreamHead) +
                            chunk_of("data: {\"choices\":[{\"text\":\"a\",\"finish_reason\":null}]}\n\n") +
                            chunk_of(kOpenAiDone) + std::string(kLastChunk);
  EXPECT_NE(completion_error(answered(reply), 1, ServerApi::openai, RowStatus::unsupported).find("return_token_ids"),
            std::string::npos);
  const std::string old =
      std::string(kStreamHead) + chunk_of("data: {\"content\":\"a\",\"stop\":true}\n\n") + std::string(kLastChunk);
  EXPECT_NE(completion_error(answered(old), 1, ServerApi::llama_cpp, RowStatus::unsupported).find("return_tokens"),
            std::string::npos);
}

TEST(StreamedCompletion, OfAThousandStreamsCutAtRandomIsWholeOrSaysWhatIsMissing) {
  constexpr std::size_t kStreams = 1000;
  const std::vector<std::int64_t> ids{11, 12, 13, 14, 15};
  const std::string whole = openai_reply(ids);
  std::atomic<std::uint64_t> next = 0;
  const FakeServer server([&](const FakeConnection& connection) {
    Mutator random(next++);
    // In pieces, up to a cut; one in four streams is whole.
    const std::size_t cut = random.below(4) == 0 ? whole.size() : random.below(whole.size());
    for (std::size_t at = 0; at < cut;) {
      const std::size_t length = std::min(1 + random.below(200), cut - at);
      connection.send(std::string_view(whole).substr(at, length));
      at += length;
    }
  });
  std::vector<HttpExchange> exchanges;
  for (std::size_t stream = 0; stream < kStreams; ++stream) {
    exchanges.emplace_back(http_request(server.address(), "/v1/completions", "{}"));
  }
  run_exchanges(exchanges, resolve(server.address()), {.most_at_once = 16}, kStall);
  std::size_t complete = 0;
  for (const HttpExchange& exchange : exchanges) {
    ASSERT_TRUE(exchange.over());
    try {
      const StreamedCompletion completion = read_completion(ServerApi::openai, exchange, std::ssize(ids));
      EXPECT_EQ(completion.ids, ids);
      EXPECT_EQ(completion.token_ns.size(), ids.size());
      ++complete;
    } catch (const WorkerError& error) {
      EXPECT_NE(std::string(error.what()).find("closed the connection"), std::string::npos) << error.what();
      EXPECT_NE(std::string(error.what()).find("of 5 tokens had come"), std::string::npos) << error.what();
    }
  }
  EXPECT_GT(complete, kStreams / 8);
  EXPECT_LT(complete, kStreams / 2);
}

}  // namespace
}  // namespace decodelab
