// `decodelab generate`: completions of one batch of prompts under one arm.
#include <charconv>
#include <memory>
#include <optional>
#include <span>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "bench/commands/checkpoint_source.h"
#include "bench/commands/commands.h"
#include "bench/commands/output.h"
#include "bench/commands/sampling_options.h"
#include "bench/commands/terminal.h"
#include "bench/machine/environment.h"
#include "bench/plan/arm.h"
#include "bench/plan/prompts.h"
#include "bench/plan/sweep_plan.h"
#include "engine/checkpoint/model_text.h"
#include "engine/checkpoint/safetensors.h"
#include "engine/generation.h"
#include "engine/generation/stop_strings.h"
#include "engine/runtime.h"

namespace decodelab {
namespace {

struct GenerateOptions {
  std::string model;
  std::vector<std::string> prompt_ids;
  std::vector<std::string> prompts;
  std::vector<std::string> questions;
  std::string prompt_file;
  std::int64_t max_tokens = 16;
  std::string arm = "bigcode";
  std::string dtype = "fp32";
  std::string device = "cpu";
  std::int64_t threads = 0;
  bool ignore_eos = false;
  bool log_probs = false;
  std::string logits_file;
  std::string output = "text";
  SamplingOptions sampling;
};

std::vector<std::int64_t> parse_ids(const std::string& text) {
  std::vector<std::int64_t> ids;
  const char* at = text.data();
  const char* end = text.data() + text.size();
  while (at != end) {
    std::int64_t id = 0;
    const auto parsed = std::from_chars(at, end, id);
    if (parsed.ec != std::errc() || (parsed.ptr != end && *parsed.ptr != ',')) {
      throw std::invalid_argument(
          fmt::format("--prompt-ids '{}': expected token ids separated by commas, as in 1,2,3", text));
    }
    ids.push_back(id);
    at = parsed.ptr == end ? end : parsed.ptr + 1;
  }
  return ids;
}

/// A completion and its text up to the stop string that ended it; no text without a tokenizer.
struct Sample {
  Completion completion;
  std::optional<std::string> text;
};

/// Returns the samples of each prompt that are given: all, in the order of their seeds, or the best, the best first.
std::vector<std::vector<Sample>> samples_of(const std::vector<Completion>& completions, const SamplingOptions& asked,
                                            const ModelText& text, const std::optional<StopStrings>& stop) {
  const auto drawn = static_cast<std::size_t>(asked.drawn());
  std::vector<std::vector<Sample>> prompts(completions.size() / drawn);
  for (std::size_t row = 0; row < completions.size(); ++row) {
    Sample& sample = prompts[row / drawn].emplace_back(Sample{.completion = completions[row], .text = {}});
    if (text.tokenizer) {
      sample.text = stop ? stop->text(row) : text.tokenizer->decode(completions[row].token_ids);
    }
  }
  for (std::vector<Sample>& of_prompt : prompts) {
    if (asked.best_of != 0) {
      std::ranges::stable_sort(of_prompt, std::ranges::greater(),
                               [](const Sample& sample) { return mean_log_prob(sample.completion); });
      of_prompt.resize(static_cast<std::size_t>(asked.samples));
    }
  }
  return prompts;
}

/// Returns the ids of every prompt of the options, in the order --prompt-ids, --prompt, --chat, --prompts.
std::vector<std::vector<std::int64_t>> prompts_of(const GenerateOptions& options, const ModelText& text,
                                                  std::int64_t vocabulary_size) {
  std::vector<std::vector<std::int64_t>> prompts;
  for (const std::string& ids : options.prompt_ids) {
    prompts.push_back(parse_ids(ids));
  }
  for (const std::string& prompt : options.prompts) {
    prompts.push_back(text.prompt_ids("--prompt", prompt));
  }
  for (const std::string& question : options.questions) {
    prompts.push_back(text.chat_ids("--chat", question));
  }
  if (!options.prompt_file.empty()) {
    for (RealPrompt& prompt :
         real_prompts("--prompts", load_prompt_lines(options.prompt_file), text, vocabulary_size)) {
      prompts.push_back(std::move(prompt.ids));
    }
  }
  if (prompts.empty()) {
    throw std::invalid_argument(
        "--prompt-ids: no prompt was given; try --prompt-ids 1,2,3, or --prompt TEXT where the model has a tokenizer");
  }
  return prompts;
}

/// Adds the keys of a sample: those of log-probabilities where they were asked for.
void add_to_json(const Sample& sample, const GenerateOptions& options, nlohmann::ordered_json& json) {
  const Completion& completion = sample.completion;
  json["token_ids"] = completion.token_ids;
  json["text"] = sample.text ? nlohmann::ordered_json(*sample.text) : nullptr;
  json["finish_reason"] = completion.finish_reason;
  json["seed"] = completion.seed ? nlohmann::ordered_json(*completion.seed) : nullptr;
  if (options.sampling.best_of != 0) {
    json["mean_log_prob"] = completion.token_ids.empty() ? nullptr : nlohmann::ordered_json(mean_log_prob(completion));
  }
  if (options.log_probs && !completion.token_log_probs.empty()) {
    json["token_log_probs"] = completion.token_log_probs;
    json["ranks"] = completion.ranks;
  }
}

/// Returns the object of a prompt: with several samples their list, else the keys of the only one.
nlohmann::ordered_json to_json(const std::vector<Sample>& samples, const std::vector<std::int64_t>& prompt,
                               const GenerateOptions& options) {
  nlohmann::ordered_json json{{"prompt_ids", prompt}};
  if (options.sampling.samples == 1) {
    add_to_json(samples.front(), options, json);
  } else {
    json["samples"] = nlohmann::ordered_json::array();
    for (const Sample& sample : samples) {
      add_to_json(sample, options, json["samples"].emplace_back(nlohmann::ordered_json::object()));
    }
  }
  if (options.log_probs) {
    json["prefill_log_probs"] = samples.front().completion.prefill_log_probs;
  }
  return json;
}

/// Writes the prompts' last logits as one fp32 tensor `prefill_logits`, [B, V].
void write_logits(const std::filesystem::path& file, const std::vector<Completion>& completions, std::int64_t samples) {
  std::vector<float> logits;
  std::int64_t rows = 0;
  for (std::size_t row = 0; row < completions.size(); row += static_cast<std::size_t>(samples), ++rows) {
    const std::vector<float>& of_prompt = completions[row].prefill_logits;
    logits.insert(logits.end(), of_prompt.begin(), of_prompt.end());
  }
  const TensorToWrite tensor{.name = "prefill_logits",
                             .type = ElementType::float32,
                             .shape = {rows, static_cast<std::int64_t>(logits.size()) / rows},
                             .data = std::as_bytes(std::span<const float>(logits))};
  write_safetensors(file, {&tensor, 1});
}

ExitCode run_generate(const GenerateOptions& options) {
  if (options.output != "text" && options.output != "json") {
    throw std::invalid_argument(fmt::format("-o '{}': generate prints text or json", options.output));
  }
  const Arm arm = parse_arm(options.arm);
  const std::string device = require_device(options.device);
  const ElementType dtype = dtype_from_name(options.dtype);
  const ModelConfig config = config_of(options.model);
  if (const std::string reason = unsupported_reason(arm, {.config = config, .dtype = dtype, .device = device});
      !reason.empty()) {
    throw std::invalid_argument(fmt::format("--arm '{}': {}", options.arm, reason));
  }
  GenerationRequest request{.prompts = {},
                            .max_tokens = options.max_tokens,
                            .eos_token_ids = options.ignore_eos ? std::vector<std::int64_t>{} : config.eos_token_ids(),
                            .details = {}};
  const CheckpointSource source = open_checkpoint(options.model, dtype, device);
  const ModelText text = load_model_text(source.path);
  request.prompts = prompts_of(options, text, config.vocabulary_size);
  request.sampling = sampling_of(options.sampling, request.prompts.size());
  std::optional<StopStrings> stop;
  if (!options.sampling.stop.empty()) {
    const Tokenizer& tokenizer = text.require_tokenizer("--stop");
    stop.emplace(
        options.sampling.stop, [&](std::int64_t id) { return tokenizer.decode({&id, 1}); },
        request.prompts.size() * static_cast<std::size_t>(options.sampling.drawn()));
    request.stops = [&](std::size_t row, std::int64_t id) { return stop->add(row, id); };
  }
  if (const TokenRules& rules = options.sampling.rules; rules.any()) {
    check_rules(rules, config.vocabulary_size);
    request.rules = {rules};
    request.vocabulary = std::make_shared<const MaskVocabulary>(
        rules.regex.empty() ? std::vector<std::string>() : text.token_bytes("--regex"), request.eos_token_ids);
    if (!rules.regex.empty()) {
      compile_pattern(rules.regex);  // Refused before the weights are loaded.
    }
  }
  request.samples = options.sampling.drawn();
  request.details = {.prefill_log_probs = options.log_probs,
                     .token_log_prob = options.log_probs || options.sampling.best_of != 0,
                     .rank = options.log_probs};
  request.keep_prefill_logits = !options.logits_file.empty();
  set_threads(options.threads == 0 ? detect_machine().cores : options.threads);
  std::shared_ptr<const Model> model;
  {
    ByteProgress progress("loading " + options.model);
    model = Model::load(source.path, dtype, device, memory_to_take(device),
                        [&](std::int64_t done, std::int64_t total) { progress(done, total); });
  }
  const Engine engine(model, bind_arm(arm, reference_plan()));
  const std::vector<Completion> completions = generate(engine, request);
  if (request.keep_prefill_logits) {
    write_logits(options.logits_file, completions, request.samples);
  }
  const std::vector<std::vector<Sample>> prompts = samples_of(completions, options.sampling, text, stop);
  if (options.output == "json") {
    nlohmann::ordered_json json{{"schema_version", 1},
                                {"model", options.model},
                                {"arm", arm.label},
                                {"dtype", options.dtype},
                                {"device", device}};
    json["completions"] = nlohmann::ordered_json::array();
    for (std::size_t prompt = 0; prompt < prompts.size(); ++prompt) {
      json["completions"].push_back(to_json(prompts[prompt], request.prompts[prompt], options));
    }
    fmt::print("{}\n", json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
    return ExitCode::ok;
  }
  for (const std::vector<Sample>& samples : prompts) {
    for (const Sample& sample : samples) {
      fmt::print("{}\n", sample.text ? *sample.text : fmt::format("{}", fmt::join(sample.completion.token_ids, ",")));
    }
  }
  return ExitCode::ok;
}

}  // namespace

void add_generate_command(CLI::App& app, ExitCode& exit_code) {
  auto options = std::make_shared<GenerateOptions>();
  CLI::App* command = app.add_subcommand("generate", "Complete one batch of prompts under one arm.");
  command->add_option("-m,--model", options->model, "smollm2, a checkpoint directory, a GGUF file, or synthetic:NAME")
      ->required();
  command->add_option("--prompt-ids", options->prompt_ids, "Token ids of one prompt, as 1,2,3; repeat for each row")
      ->allow_extra_args(false);
  command
      ->add_option("--prompt", options->prompts,
                   "Text of one prompt, where the model has a byte-level BPE tokenizer; repeat")
      ->allow_extra_args(false);
  command
      ->add_option("--chat", options->questions, "A question, put into the form of the model's chat template; repeat")
      ->allow_extra_args(false);
  command->add_option("--prompts", options->prompt_file,
                      "File with a prompt a line, as {\"prompt\": TEXT}; bench/README.md has all keys");
  command->add_option("--max-tokens", options->max_tokens, "Tokens of each completion")->capture_default_str();
  command->add_option("--arm", options->arm, "PRESET[,+variant][,-variant]")->capture_default_str();
  command->add_option("--dtype", options->dtype, "fp32, fp16 or bf16")->capture_default_str();
  command->add_option("--device", options->device, "cpu or cuda:N")->capture_default_str();
  command->add_option("--threads", options->threads, "Threads of every operator; 0: one for each core")
      ->capture_default_str();
  command->add_flag("--ignore-eos", options->ignore_eos, "Go on past the end-of-sequence token");
  command->add_flag("--log-probs", options->log_probs, "Also give log-probabilities and ranks (json)");
  command->add_option("--logits", options->logits_file,
                      "Write the logits of each prompt's last token to this safetensors file");
  command->add_option("-o,--output", options->output, "text or json")->capture_default_str();
  add_sampling_flags(*command, options->sampling.all);
  add_completion_flags(*command, options->sampling);
  command->footer(
      "Example:\n  decodelab generate -m smollm2 --chat \"What is the capital of France?\"\n"
      "  decodelab generate -m synthetic:tiny --prompt-ids 1,2,3 --prompt-ids 4,5 --max-tokens 16 --arm "
      "bigcode -o json\n  decodelab generate -m synthetic:tiny --prompt-ids 1,2,3 --temperature 0.8 --top-p 0.95 "
      "--seed 7 "
      "--arm bigcode,+philox-rng\n  decodelab generate -m smollm2 --prompt \"The sea\" --samples 4 --best-of 16 "
      "--temperature 1 --seed 3 -o json\n  decodelab generate -m smollm2 --prompt \"The year was\" --regex "
      "\" [12][0-9]{3}\\.\" --arm native");
  command->callback([options, &exit_code] { exit_code = run_generate(*options); });
}

}  // namespace decodelab
