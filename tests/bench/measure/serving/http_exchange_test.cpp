// Requests run beside each other, each ends in time, and what came is stamped in order.
#include "bench/measure/serving/http_exchange.h"

#include <atomic>

#include <gtest/gtest.h>

#include "bench/measure/serving/server_process.h"
#include "tests/bench/measure/serving/fake_server.h"

namespace decodelab {
namespace {

using testing::chunk_of;
using testing::FakeConnection;
using testing::FakeServer;
using testing::kLastChunk;
using testing::kStreamHead;
using testing::with_length;

constexpr std::chrono::milliseconds kPatience{20'000};

std::vector<HttpExchange> exchanges_of(const FakeServer& server, std::size_t count, std::string_view body = "{}") {
  std::vector<HttpExchange> exchanges;
  for (std::size_t index = 0; index < count; ++index) {
    exchanges.emplace_back(http_request(server.address(), "/p", body));
  }
  return exchanges;
}

TEST(HttpExchange, CarriesARequestAndItsResponse) {
  const FakeServer server([](const FakeConnection& connection) {
    EXPECT_EQ(connection.path(), "/where");
    connection.send(with_length(connection.body().dump()));
  });
  const HttpResponse response =
      exchange_once(resolve(server.address()), http_request(server.address(), "/where", R"({"a":[1,2]})"), kPatience);
  EXPECT_EQ(response.status(), 200);
  EXPECT_EQ(response.body(), R"({"a":[1,2]})");
}

TEST(HttpExchange, StampsWhatComesWhenItComes) {
  constexpr auto kGap = std::chrono::milliseconds(150);
  const FakeServer server([&](const FakeConnection& connection) {
    connection.send(kStreamHead);
    for (const char* piece : {"a", "b", "c"}) {
      std::this_thread::sleep_for(kGap);
      connection.send(chunk_of(piece));
    }
    connection.send(kLastChunk);
  });
  std::vector<HttpExchange> exchanges = exchanges_of(server, 1);
  const std::int64_t start = run_exchanges(exchanges, resolve(server.address()), {}, kPatience);
  ASSERT_EQ(exchanges[0].error(), "");
  ASSERT_EQ(exchanges[0].arrivals().size(), 3U) << "the head and the last chunk bring nothing of the body";
  std::int64_t before = start;
  for (const HttpExchange::Arrival& arrival : exchanges[0].arrivals()) {
    EXPECT_GE(arrival.ns - before, 10'000'000) << "of the 150 ms between two pieces";
    before = arrival.ns;
  }
  EXPECT_EQ(exchanges[0].arrivals().back().bytes, 3U);
}

TEST(HttpExchange, HasNoMoreAtOnceThanThePlanSays) {
  std::atomic<int> open = 0;
  std::atomic<int> most = 0;
  const FakeServer server([&](const FakeConnection& connection) {
    const int now = ++open;
    int known = most;
    while (now > known && !most.compare_exchange_weak(known, now)) {
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    --open;
    connection.send(with_length("x"));
  });
  std::vector<HttpExchange> exchanges = exchanges_of(server, 20);
  run_exchanges(exchanges, resolve(server.address()), {.most_at_once = 3}, kPatience);
  for (const HttpExchange& exchange : exchanges) {
    EXPECT_EQ(exchange.error(), "");
    EXPECT_EQ(exchange.response().body(), "x");
  }
  EXPECT_LE(most, 3);
}

TEST(HttpExchange, BeginsEachAtItsTime) {
  const FakeServer server([](const FakeConnection& connection) { connection.send(with_length("x")); });
  std::vector<HttpExchange> exchanges = exchanges_of(server, 3);
  const std::int64_t start = run_exchanges(exchanges, resolve(server.address()),
                                           {.most_at_once = 3, .after_ns = {0, 40'000'000, 80'000'000}}, kPatience);
  for (std::size_t index = 0; index < exchanges.size(); ++index) {
    EXPECT_GE(exchanges[index].arrivals().front().ns - start, static_cast<std::int64_t>(index) * 40'000'000);
  }
}

TEST(HttpExchange, FailsWhereNobodyListens) {
  const HttpAddress nobody{.host = "127.0.0.1", .port = free_port()};
  EXPECT_THROW(exchange_once(resolve(nobody), http_request(nobody, "/"), kPatience), HttpError);
  EXPECT_THROW(resolve({.host = "no.such.host.invalid", .port = 1}), HttpError);
}

TEST(HttpExchange, NeverWaitsLongerThanTheLongestSilence) {
  const FakeServer server([](const FakeConnection& connection) {
    connection.send(kStreamHead);
    connection.send(chunk_of("some"));
    connection.wait_for_the_client();
  });
  std::vector<HttpExchange> exchanges = exchanges_of(server, 3);
  run_exchanges(exchanges, resolve(server.address()), {.most_at_once = 3}, std::chrono::milliseconds(1000));
  for (const HttpExchange& exchange : exchanges) {
    EXPECT_TRUE(exchange.over());
    EXPECT_EQ(exchange.error(), "sent nothing for 1 s");
    EXPECT_EQ(exchange.response().body(), "some") << "and what had come is there";
  }
}

TEST(HttpExchange, CarriesALargeRequestAndAnErrorStatus) {
  const std::string large = fmt::format("\"{}\"", std::string(8 << 20, 'x'));
  const FakeServer reads_all([](const FakeConnection& connection) {
    connection.send(with_length(R"({"error":{"message":"too large"}})", "413 Content Too Large"));
  });
  std::vector<HttpExchange> exchanges = exchanges_of(reads_all, 1, large);
  run_exchanges(exchanges, resolve(reads_all.address()), {}, kPatience);
  EXPECT_EQ(exchanges[0].error(), "");
  EXPECT_EQ(exchanges[0].response().status(), 413);
}

}  // namespace
}  // namespace decodelab
