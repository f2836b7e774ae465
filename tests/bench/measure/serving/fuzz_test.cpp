// Feeds damaged replies to the readers of a server's streams: each must be read or refused, and never differently when
// it is cut elsewhere.
#include <gtest/gtest.h>

#include "bench/measure/serving/event_stream.h"
#include "bench/measure/serving/http_address.h"
#include "bench/measure/serving/http_response.h"
#include "bench/measure/serving/server_api.h"
#include "tests/bench/measure/serving/fake_server.h"
#include "tests/engine/checkpoint/mutator.h"

namespace decodelab {
namespace {

/// What a reply comes to: its error, or its body.
std::string read_in_pieces(const std::string& reply, Mutator* cuts) {
  HttpResponse response;
  try {
    for (std::size_t at = 0; at < reply.size();) {
      const std::size_t length = cuts == nullptr ? reply.size() : 1 + cuts->below(64);
      response.feed(std::string_view(reply).substr(at, length));
      at += length;
    }
    response.end();
  } catch (const HttpError& error) {
    return std::string("error: ") + error.what();
  }
  return response.body();
}

TEST(Fuzz, ResponsesOfServersAreReadOrRefusedWhereverTheyAreCut) {
  fuzz(testing::openai_reply({5, 6, 7}), [](const std::string& whole, Mutator& mutator) {
    const std::string damaged = mutator.mutate(whole);
    const std::string read = read_in_pieces(damaged, nullptr);
    ASSERT_EQ(read_in_pieces(damaged, &mutator), read);
    if (read.starts_with("error: ")) {
      throw std::invalid_argument(read);
    }
  });
}

TEST(Fuzz, EventsOfServersAreReadOrRefused) {
  const std::string events = testing::openai_event({5, 6}) + testing::openai_event({7}, "length") +
                             testing::openai_usage(3) + std::string(testing::kOpenAiDone) +
                             testing::llama_event({5}, 1) + testing::llama_end(2);
  fuzz(events, [](const std::string& whole, Mutator& mutator) {
    const std::string damaged = mutator.mutate(whole);
    EventStream stream;
    stream.feed(damaged);
    int refused = 0;
    for (const StreamEvent& event : stream.events()) {
      ASSERT_LE(event.end, damaged.size());
      for (const ServerApi api : {ServerApi::openai, ServerApi::llama_cpp}) {
        try {
          for (const std::int64_t id : parse_completion_event(api, event.data).ids) {
            ASSERT_GE(id, 0);
          }
        } catch (const EventError& error) {
          ASSERT_NE(std::string_view(error.what()), "");
          ++refused;
        }
      }
      message_of_error(event.data);
      first_model(event.data);
    }
    // Of the events of one form, the other form refuses each.
    if (refused > std::ssize(stream.events())) {
      throw std::invalid_argument("an event was refused by both");
    }
  });
}

TEST(Fuzz, UrlsAreReadOrRefused) {
  fuzz("http://127.0.0.1:8080/v1", [](const std::string& whole, Mutator& mutator) {
    const HttpAddress address = parse_http_address("--url", mutator.mutate(whole));
    ASSERT_EQ(parse_http_address("--url", to_string(address)), address);
  });
}

}  // namespace
}  // namespace decodelab
