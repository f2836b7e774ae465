// JSON texts of both forms.
#include "bench/measure/serving/server_api.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "base/text.h"

namespace decodelab {
namespace {

const char* const kOpenAiName = "openai";
const char* const kLlamaCppName = "llama.cpp";

/// What is quoted of an event or a body that nobody can read.
constexpr std::size_t kQuotedEvent = 120;

/// Returns the message of an error object in any of the shapes that servers use; empty where there is none.
std::string error_message_in(const nlohmann::json& json) {
  if (!json.is_object()) {
    return "";
  }
  const auto text_of = [](const nlohmann::json& value) {
    return value.is_string() ? value.get<std::string>() : value.is_null() ? "" : shown(value);
  };
  if (const auto error = json.find("error"); error != json.end() && !error->is_null()) {
    const bool has_message = error->is_object() && error->contains("message");
    return text_of(has_message ? error->at("message") : *error);
  }
  for (const char* key : {"message", "detail"}) {
    if (const auto found = json.find(key); found != json.end() && !json.contains("choices")) {
      return text_of(*found);
    }
  }
  return "";
}

std::vector<std::int64_t> ids_of(const nlohmann::json& value, std::string_view data) {
  std::vector<std::int64_t> ids;
  for (const nlohmann::json& id : value) {
    if (!id.is_number_integer() || id < 0) {
      throw EventError(fmt::format("sent a token id that is no number from 0 on, in {}", in_quotes(data)));
    }
    ids.push_back(id.get<std::int64_t>());
  }
  return ids;
}

std::optional<std::int64_t> count_in(const nlohmann::json& object, const char* key) {
  const auto found = object.is_object() ? object.find(key) : object.end();
  return object.is_object() && found != object.end() && found->is_number_integer()
             ? std::optional(found->get<std::int64_t>())
             : std::nullopt;
}

std::string text_in(const nlohmann::json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

CompletionEvent openai_event(const nlohmann::json& json, std::string_view data) {
  CompletionEvent event;
  const auto usage = json.find("usage");
  event.total = usage == json.end() ? std::nullopt : count_in(*usage, "completion_tokens");
  const auto choices = json.find("choices");
  if (choices == json.end() || !choices->is_array() || (choices->empty() && !event.total)) {
    throw EventError(fmt::format("sent an event without choices: {}", in_quotes(data)));
  }
  if (choices->empty()) {
    return event;
  }
  const nlohmann::json& choice = choices->front();
  if (!choice.is_object()) {
    throw EventError(fmt::format("sent a choice that is no object: {}", in_quotes(data)));
  }
  event.has_choice = true;
  event.finish = text_in(choice, "finish_reason");
  const auto ids = choice.find("token_ids");
  event.shows_ids = ids != choice.end() && ids->is_array();
  if (event.shows_ids) {
    event.ids = ids_of(*ids, data);
  }
  return event;
}

CompletionEvent llama_cpp_event(const nlohmann::json& json, std::string_view data) {
  CompletionEvent event{.total = count_in(json, "tokens_predicted")};
  const auto stop = json.find("stop");
  if (stop == json.end() || !stop->is_boolean()) {
    throw EventError(fmt::format("sent an event that does not say whether it is the last: {}", in_quotes(data)));
  }
  event.last = stop->get<bool>();
  event.has_choice = true;
  event.finish = event.last ? text_in(json, "stop_type") : "";
  if (event.last && event.finish.empty()) {
    event.finish = "stop";
  }
  const auto ids = json.find("tokens");
  event.shows_ids = ids != json.end() && ids->is_array();
  if (event.shows_ids) {
    event.ids = ids_of(*ids, data);
  }
  return event;
}

}  // namespace

const char* to_string(ServerApi api) { return api == ServerApi::openai ? kOpenAiName : kLlamaCppName; }

ServerApi server_api_from_string(std::string_view flag, std::string_view text) {
  for (const ServerApi api : {ServerApi::openai, ServerApi::llama_cpp}) {
    if (text == to_string(api)) {
      return api;
    }
  }
  throw std::invalid_argument(
      fmt::format("{}: '{}' is unknown; expected {} or {}", flag, text, kOpenAiName, kLlamaCppName));
}

std::string completions_path(ServerApi api, std::string_view base) {
  if (api == ServerApi::llama_cpp) {
    return fmt::format("{}/completion", base);
  }
  return fmt::format("{}{}/completions", base, base.ends_with("/v1") ? "" : "/v1");
}

std::string completion_body(ServerApi api, const StreamRequest& request) {
  nlohmann::json body{{"prompt", std::vector<std::int64_t>(request.prompt.begin(), request.prompt.end())},
                      {"stream", request.stream},
                      {"ignore_eos", request.ignore_eos}};
  if (api == ServerApi::openai) {
    body["temperature"] = 0;
    body["model"] = request.model;
    body["max_tokens"] = request.max_tokens;
    body["return_token_ids"] = true;
    if (request.stream) {
      body["stream_options"] = {{"include_usage", true}};
    }
  } else {
    body["n_predict"] = request.max_tokens;
    body["samplers"] = nlohmann::json::array({"top_k"});
    body["top_k"] = 1;
    body["cache_prompt"] = false;
    body["return_tokens"] = true;
    if (request.slot) {
      body["id_slot"] = *request.slot;
    }
  }
  return body.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

CompletionEvent parse_completion_event(ServerApi api, std::string_view data) {
  if (api == ServerApi::openai && trimmed(data) == "[DONE]") {
    return {.last = true};
  }
  const nlohmann::json json = parse_json_or_discard(data);
  if (!json.is_object()) {
    throw EventError(fmt::format("sent an event that is no JSON object: {}", in_quotes(data)));
  }
  if (const std::string message = error_message_in(json); !message.empty()) {
    throw EventError(fmt::format("sent an error: {}", one_line(message)));
  }
  return api == ServerApi::openai ? openai_event(json, data) : llama_cpp_event(json, data);
}

std::string message_of_error(std::string_view body) {
  const std::string message = error_message_in(parse_json_or_discard(body));
  if (!message.empty()) {
    return one_line(message);
  }
  const std::string_view text = trimmed(body);
  return text.empty() ? "without a message" : one_line(text, kQuotedEvent);
}

std::string first_model(std::string_view body) {
  const nlohmann::json json = parse_json_or_discard(body);
  const auto models = json.is_object() ? json.find("data") : json.end();
  if (!json.is_object() || models == json.end() || !models->is_array() || models->empty() ||
      !models->front().is_object()) {
    return "";
  }
  return text_in(models->front(), "id");
}

std::string text_in_reply(std::string_view body, const char* key) {
  const nlohmann::json json = parse_json_or_discard(body);
  return json.is_object() ? one_line(text_in(json, key)) : "";
}

}  // namespace decodelab
