// What is asked of servers, and what their events say, in both forms.
#include "bench/measure/serving/server_api.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace decodelab {
namespace {

TEST(ServerApi, HasANameAndAPath) {
  EXPECT_EQ(server_api_from_string("--api", "openai"), ServerApi::openai);
  EXPECT_EQ(server_api_from_string("--api", to_string(ServerApi::llama_cpp)), ServerApi::llama_cpp);
  EXPECT_THROW(server_api_from_string("--api", "llama"), std::invalid_argument);
  EXPECT_EQ(completions_path(ServerApi::openai, ""), "/v1/completions");
  EXPECT_EQ(completions_path(ServerApi::openai, "/v1"), "/v1/completions");
  EXPECT_EQ(completions_path(ServerApi::openai, "/proxy"), "/proxy/v1/completions");
  EXPECT_EQ(completions_path(ServerApi::llama_cpp, ""), "/completion");
}

TEST(ServerApi, AsksForGreedyTokensByIds) {
  const std::vector<std::int64_t> prompt{5, 6, 7};
  const auto openai =
      nlohmann::json::parse(completion_body(ServerApi::openai, {.model = "m", .prompt = prompt, .max_tokens = 9}));
  EXPECT_EQ(openai.at("prompt"), prompt);
  EXPECT_EQ(openai.at("model"), "m");
  EXPECT_EQ(openai.at("max_tokens"), 9);
  EXPECT_EQ(openai.at("temperature"), 0);
  EXPECT_EQ(openai.at("ignore_eos"), true);
  EXPECT_EQ(openai.at("return_token_ids"), true);
  EXPECT_EQ(openai.at("stream_options").at("include_usage"), true);
  const auto llama = nlohmann::json::parse(
      completion_body(ServerApi::llama_cpp, {.prompt = prompt, .max_tokens = 9, .stream = false, .ignore_eos = false}));
  EXPECT_EQ(llama.at("prompt"), prompt);
  EXPECT_EQ(llama.at("n_predict"), 9);
  EXPECT_EQ(llama.at("samplers"), nlohmann::json::array({"top_k"}));
  EXPECT_EQ(llama.at("top_k"), 1);
  EXPECT_EQ(llama.at("cache_prompt"), false);
  EXPECT_EQ(llama.at("return_tokens"), true);
  EXPECT_EQ(llama.at("ignore_eos"), false);
  EXPECT_EQ(llama.at("stream"), false);
  EXPECT_FALSE(llama.contains("id_slot"));
}

TEST(ServerApi, NamesTheSlotOfARowToLlamaServerAlone) {
  const std::vector<std::int64_t> prompt{5};
  const auto body = [&](ServerApi api) {
    return nlohmann::json::parse(completion_body(api, {.prompt = prompt, .slot = 3}));
  };
  EXPECT_EQ(body(ServerApi::llama_cpp).at("id_slot"), 3);
  EXPECT_FALSE(body(ServerApi::openai).contains("id_slot"));
}

TEST(ServerApi, ReadsTheEventsOfTheOpenAiForm) {
  const CompletionEvent event = parse_completion_event(
      ServerApi::openai, R"({"choices":[{"text":"a","token_ids":[3,4],"finish_reason":"length"}],"usage":null})");
  EXPECT_EQ(event.ids, (std::vector<std::int64_t>{3, 4}));
  EXPECT_TRUE(event.shows_ids);
  EXPECT_TRUE(event.has_choice);
  EXPECT_EQ(event.finish, "length");
  EXPECT_FALSE(event.last);
  const CompletionEvent silent =
      parse_completion_event(ServerApi::openai, R"({"choices":[{"text":"a","finish_reason":null}]})");
  EXPECT_FALSE(silent.shows_ids);
  EXPECT_EQ(silent.finish, "");
  const CompletionEvent usage =
      parse_completion_event(ServerApi::openai, R"({"choices":[],"usage":{"completion_tokens":9}})");
  EXPECT_EQ(usage.total, 9);
  EXPECT_FALSE(usage.has_choice);
  EXPECT_TRUE(parse_completion_event(ServerApi::openai, "[DONE]").last);
}

TEST(ServerApi, ReadsTheEventsOfLlamaServer) {
  const CompletionEvent event =
      parse_completion_event(ServerApi::llama_cpp, R"({"content":"a","tokens":[3],"stop":false,"tokens_predicted":5})");
  EXPECT_EQ(event.ids, std::vector<std::int64_t>{3});
  EXPECT_EQ(event.total, 5);
  EXPECT_FALSE(event.last);
  const CompletionEvent end = parse_completion_event(
      ServerApi::llama_cpp, R"({"tokens":[],"stop":true,"stop_type":"eos","tokens_predicted":6})");
  EXPECT_TRUE(end.last);
  EXPECT_EQ(end.finish, "eos");
}

TEST(ServerApi, QuotesTheMessageOfAnError) {
  for (const char* data : {R"({"error":{"message":"out of slots","code":500}})", R"({"error":"out of slots"})",
                           R"({"object":"error","message":"out of slots"})", R"({"detail":"out of slots"})"}) {
    try {
      parse_completion_event(ServerApi::openai, data);
      FAIL() << data;
    } catch (const EventError& error) {
      EXPECT_NE(std::string(error.what()).find("out of slots"), std::string::npos) << error.what();
    }
    EXPECT_EQ(message_of_error(data), "out of slots");
  }
  EXPECT_EQ(message_of_error("<html>"), "<html>");
  EXPECT_EQ(message_of_error(" \n"), "without a message");
  EXPECT_LT(message_of_error(std::string(10'000, 'x')).size(), 200U);
}

TEST(ServerApi, RefusesWhatIsNoEvent) {
  for (const ServerApi api : {ServerApi::openai, ServerApi::llama_cpp}) {
    for (const char* data :
         {"", "[]", "7", "null", "{", "{}", R"({"choices":7})", R"({"choices":[7]})", R"({"choices":[]})",
          R"({"choices":[{"token_ids":[-1]}]})", R"({"choices":[{"token_ids":["a"]}]})", R"({"stop":7})",
          R"({"stop":false,"tokens":[1.5]})", "\xff"}) {
      EXPECT_THROW(parse_completion_event(api, data), EventError) << to_string(api) << " " << data;
    }
  }
}

TEST(ServerApi, ReadsWhatAServerSaysOfItself) {
  EXPECT_EQ(first_model(R"({"data":[{"id":"a"},{"id":"b"}]})"), "a");
  for (const char* body : {"", "{}", R"({"data":[]})", R"({"data":[7]})", R"({"data":[{"id":7}]})"}) {
    EXPECT_EQ(first_model(body), "") << body;
  }
  EXPECT_EQ(text_in_reply(R"({"version":"0.24.0"})", "version"), "0.24.0");
  EXPECT_EQ(text_in_reply("[]", "version"), "");
}

}  // namespace
}  // namespace decodelab
