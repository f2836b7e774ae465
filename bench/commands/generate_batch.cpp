// Submits the lines of a file and writes what comes back.
#include "bench/commands/generate_batch.h"

#include <chrono>
#include <cstdio>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "bench/commands/terminal.h"
#include "bench/measure/progress.h"
#include "engine/generation/stop_strings.h"

namespace decodelab {
namespace {

using SteadyClock = std::chrono::steady_clock;

template <typename Value>
void take_setting(const std::optional<Value>& given, Value& value) {
  value = given.value_or(value);
}

/// A line of the file on its way.
struct Line {
  std::vector<std::int64_t> prompt;
  CompletionKeys keys;
  std::shared_ptr<StopStrings> stop;  ///< Null where nothing stops it.
};

class BatchOutput {
 public:
  BatchOutput(std::string format, nlohmann::ordered_json document)
      : format_(std::move(format)), document_(std::move(document)) {}

  void put(std::size_t index, const std::vector<Sample>& samples, const Line& line) {
    std::string text;
    for (const Sample& sample : samples) {
      text += to_text(sample) + "\n";
    }
    put(index, to_json(samples, line.prompt, line.keys), text);
  }

  void put_error(std::size_t index, const std::string& error) {
    ++errors_;
    if (format_ == "text") {
      fmt::print(stderr, "decodelab: {}\n", error);
    }
    put(index, {{"error", error}}, "");
  }

  ExitCode finish() {
    if (format_ == "json") {
      document_["completions"] = nlohmann::ordered_json::array();
      for (auto& [index, object] : objects_) {
        document_["completions"].push_back(std::move(object));
      }
      fmt::print("{}\n", document_.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
    }
    return errors_ == 0 ? ExitCode::ok : ExitCode::usage;
  }

 private:
  void put(std::size_t index, nlohmann::ordered_json object, std::string text) {
    if (format_ == "jsonl") {
      fmt::print("{}\n", to_json_line(index, object));
    } else if (format_ == "json") {
      objects_.emplace(index, std::move(object));
    } else {
      texts_.emplace(index, std::move(text));
      for (auto next = texts_.begin(); next != texts_.end() && next->first == written_; next = texts_.erase(next)) {
        fmt::print("{}", next->second);
        ++written_;
      }
    }
    std::fflush(stdout);
  }

  std::string format_;
  nlohmann::ordered_json document_;
  std::map<std::size_t, nlohmann::ordered_json> objects_;
  std::map<std::size_t, std::string> texts_;  ///< That wait for those before them.
  std::size_t written_ = 0;
  std::size_t errors_ = 0;
};

/// Shows once a second how far the requests are.
class BatchProgress {
 public:
  explicit BatchProgress(std::size_t requests) : requests_(requests) {}

  void show(std::size_t ended, const ContinuousBatch& batch) {
    const auto now = SteadyClock::now();
    const double seconds = std::chrono::duration<double>(now - start_).count();
    if (now - shown_ < std::chrono::seconds(1) || seconds < 2) {
      return;
    }
    shown_ = now;
    const double fraction = static_cast<double>(ended) / static_cast<double>(requests_);
    const double left = ended == 0 ? 0 : seconds / fraction - seconds;
    const std::string label = fmt::format("{} of {} requests, {:.0f} tokens/s", ended, requests_,
                                          static_cast<double>(batch.counts().decoded_rows) / seconds);
    line_.show(progress_line(fraction, left, label, line_.columns()));
  }

 private:
  std::size_t requests_;
  StatusLine line_;
  SteadyClock::time_point start_ = SteadyClock::now();
  SteadyClock::time_point shown_;
};

/// Makes a request of a line: its settings over those of the command.
BatchRequest request_of(const PromptLine& prompt, const GenerateOptions& options, const ModelText& text, Line& line) {
  if (!prompt.error.empty()) {
    throw std::invalid_argument(prompt.error);
  }
  const LineSettings& own = prompt.settings;
  BatchRequest request{.prompt = !prompt.ids.empty() ? prompt.ids
                                 : prompt.chat       ? text.chat_ids("--prompts", prompt.text)
                                                     : text.prompt_ids("--prompts", prompt.text),
                       .max_tokens = own.max_tokens.value_or(options.max_tokens),
                       .sampling = options.sampling.all,
                       .rules = options.sampling.rules};
  SamplingParameters& sampling = request.sampling;
  const DetailsRequest asked = options.details.request(own);
  line.keys = options.keys(asked, text.tokenizer.has_value());
  request.details = options.computed(asked);
  take_setting(own.samples, line.keys.samples);
  request.samples = line.keys.ranked ? options.sampling.best_of : line.keys.samples;
  if (request.samples < line.keys.samples) {
    throw std::invalid_argument(
        fmt::format("'samples' are {}, more than the {} of --best-of", line.keys.samples, request.samples));
  }
  if (!options.sampling.seeds.empty()) {
    sampling.seed = options.sampling.seeds.front();
  }
  if (own.seed) {
    sampling.seed = static_cast<std::uint64_t>(*own.seed);
  }
  take_setting(own.temperature, sampling.temperature);
  take_setting(own.top_k, sampling.top_k);
  take_setting(own.top_p, sampling.top_p);
  take_setting(own.typical_p, sampling.typical_p);
  take_setting(own.repetition_penalty, sampling.repetition_penalty);
  sampling.sample = own.sample.value_or(sampling.sample || own.seed || own.temperature || own.top_k || own.top_p ||
                                        own.typical_p || (own.samples && *own.samples > 1));
  take_setting(own.regex, request.rules.regex);
  if (!request.rules.regex.empty()) {
    text.require_tokenizer("'regex'");
  }
  take_setting(own.forbid_eos, request.rules.forbid_eos);
  take_setting(own.min_tokens, request.rules.min_tokens);
  take_setting(own.allow_ids, request.rules.allowed_ids);
  const std::vector<std::string>& stop = own.stop ? *own.stop : options.sampling.stop;
  if (!stop.empty()) {
    const Tokenizer& tokenizer = text.require_tokenizer("--stop");
    line.stop = std::make_shared<StopStrings>(
        stop, [&tokenizer](std::int64_t id) { return tokenizer.decode_further({&id, 1}); },
        static_cast<std::size_t>(request.samples));
    request.stops = [found = line.stop](std::size_t sample, std::int64_t id) { return found->add(sample, id); };
  }
  line.prompt = request.prompt;
  return request;
}

}  // namespace

ExitCode generate_batch(const GenerateOptions& options, const Engine& engine, const ModelText& text,
                        const std::vector<PromptLine>& lines, const BatchingOptions& batching,
                        nlohmann::ordered_json document) {
  ContinuousBatch batch(engine, batching);
  BatchOutput output(options.output, std::move(document));
  std::vector<Line> known(lines.size());
  std::map<std::int64_t, std::size_t> index_of;  // Of a request.
  for (std::size_t index = 0; index < lines.size(); ++index) {
    try {
      index_of[batch.submit(request_of(lines[index], options, text, known[index]))] = index;
    } catch (const std::invalid_argument& error) {
      output.put_error(
          index, !lines[index].error.empty() ? error.what() : fmt::format("prompt {}: {}", index + 1, error.what()));
    }
  }
  BatchProgress progress(index_of.size());
  std::size_t ended = 0;
  SkippedTokens skipped;
  while (!batch.idle()) {
    for (const FinishedRequest& finished : batch.step()) {
      skipped.add(finished.samples);
      const std::size_t index = index_of.at(finished.id);
      const Line& line = known[index];
      const auto text_of = [&](std::size_t sample) -> std::optional<std::string> {
        if (!text.tokenizer) {
          return std::nullopt;
        }
        return line.stop ? line.stop->text(sample)
                         : text.completion_text(finished.samples[sample].token_ids, engine.model().config());
      };
      output.put(index, given_samples(finished.samples, line.keys, text_of), line);
      ++ended;
    }
    progress.show(ended, batch);
  }
  const ExitCode exit_code = output.finish();
  if (options.speculates) {
    fmt::print(stderr, "decodelab: {}\n", skipped.told());
  }
  return exit_code;
}

}  // namespace decodelab
