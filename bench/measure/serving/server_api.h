// What is asked of a server, and what its events say, in each of the two forms that are spoken.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace decodelab {

enum class ServerApi : std::uint8_t {
  openai,     ///< `POST /v1/completions`, with token ids as vLLM shows them (`return_token_ids`).
  llama_cpp,  ///< `POST /completion` of llama-server, with `return_tokens`.
};

/// Returns `openai` or `llama.cpp`.
const char* to_string(ServerApi api);
/// Parses the name. Throws std::invalid_argument, naming `flag` and both names, for any other text.
ServerApi server_api_from_string(std::string_view flag, std::string_view text);

/// Returns the path of completions behind the path of a server's URL, which may end in `/v1` for the openai form.
std::string completions_path(ServerApi api, std::string_view base);

/// A greedy completion of one prompt.
struct StreamRequest {
  std::string model{};  ///< Only the openai form says it.
  std::span<const std::int64_t> prompt;
  std::int64_t max_tokens = 1;
  bool stream = true;
  /// Whether the completion goes on behind an end-of-text token, so that it ends by its length alone.
  bool ignore_eos = true;
  /// Which of llama-server's slots computes it, modulo their number; nothing: the one that was used longest ago. The
  /// server steps rows of slots that lie side by side together, and others one after the other.
  std::optional<std::int64_t> slot{};
};

/// Returns the JSON text of the request. Prompts go as ids, and reuse of an earlier prompt's keys is turned off where
/// the form has a word for that.
///
/// llama-server goes on behind an end-of-text token only by never choosing one (it gives all of them a bias of minus
/// infinity), so that with `ignore_eos` its tokens may differ from those of another engine; see Completions.
std::string completion_body(ServerApi api, const StreamRequest& request);

/// Says what is wrong with an event, or the message of an error that the server sent instead of one.
class EventError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// What one event of a stream says, or the body of a reply that is no stream.
struct CompletionEvent {
  std::vector<std::int64_t> ids{};
  bool shows_ids = false;   ///< The event has a place for ids, if only an empty one.
  bool has_choice = false;  ///< It is a part of the completion, and no news of another kind.
  /// How many tokens the completion has by the server's own count; empty where the event does not say.
  std::optional<std::int64_t> total{};
  std::string finish{};  ///< Why the completion has ended (`length`, `stop`, `eos`, ...); empty: it has not.
  bool last = false;     ///< Nothing comes behind it: `[DONE]`, or llama-server's last event.
};

/// Parses the data of an event. Throws EventError for what is no JSON object, for ids that are no numbers from 0 on,
/// and for an error, whose message it quotes.
CompletionEvent parse_completion_event(ServerApi api, std::string_view data);

/// Returns the message of a JSON body that came with an HTTP error status, in quotes; the beginning of any other body.
std::string message_of_error(std::string_view body);

/// Returns the name of the first model in the reply to `GET /v1/models`; empty where there is none.
std::string first_model(std::string_view body);

/// Returns a text in the reply to a question about the server itself, by its key; empty where there is none.
std::string text_in_reply(std::string_view body, const char* key);

}  // namespace decodelab
