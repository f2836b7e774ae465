// What a server said to one request for a completion, and when each of its tokens came.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/measure/serving/http_exchange.h"
#include "bench/measure/serving/server_api.h"

namespace decodelab {

struct StreamedCompletion {
  std::vector<std::int64_t> ids{};       ///< In order; see all_ids().
  std::vector<std::int64_t> token_ns{};  ///< When each token came, by monotonic_ns().
  std::int64_t bundled_tokens = 0;       ///< Tokens that came in an event with one before them.
  std::int64_t read_together = 0;        ///< Events with tokens that came in one read with one before them.
  std::string finish{};                  ///< Why it ended.

  /// Returns whether every token has its id: llama-server shows no id of a token that ends within a character, unless
  /// the reply is no stream.
  bool all_ids() const { return ids.size() == token_ns.size(); }
};

/// Reads a completion of `tokens` tokens out of an exchange that is over.
///
/// A token's time is that of the read that completed its event. Tokens of one read have come one after the other since
/// the read before, nobody can say when: they get times at equal distances. Those of the first read have that of the
/// read.
///
/// Throws WorkerError, `failed`, where the exchange has an error (the message says how many tokens had come), the
/// status is none of success, an event is none or says an error, the stream ends early, the tokens are fewer or more,
/// or the server counts another number of them; `unsupported` where events show no token ids.
StreamedCompletion read_completion(ServerApi api, const HttpExchange& exchange, std::int64_t tokens);

/// Reads the reply to a request that asked for no stream: ids and `finish` alone. It may have fewer tokens than asked
/// for, `tokens`. Throws like read_completion().
StreamedCompletion read_whole_completion(ServerApi api, const HttpExchange& exchange, std::int64_t tokens);

}  // namespace decodelab
