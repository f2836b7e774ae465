// `decodelab generate`: completions of one batch of prompts under one arm.
#include <algorithm>
#include <charconv>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <span>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "bench/commands/checkpoint_source.h"
#include "bench/commands/commands.h"
#include "bench/commands/draft_options.h"
#include "bench/commands/generate_batch.h"
#include "bench/commands/generate_options.h"
#include "bench/commands/output.h"
#include "bench/commands/sampling_options.h"
#include "bench/commands/terminal.h"
#include "bench/machine/environment.h"
#include "bench/measure/engine_model.h"
#include "bench/measure/process/rank_process.h"
#include "bench/plan/arm.h"
#include "bench/plan/prompt_file.h"
#include "bench/plan/sweep_plan.h"
#include "engine/checkpoint/model_text.h"
#include "engine/checkpoint/safetensors.h"
#include "engine/checkpoint/token_bytes.h"
#include "engine/generation.h"
#include "engine/generation/stop_strings.h"
#include "engine/runtime.h"

namespace decodelab {
namespace {

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

/// Returns the ids of every prompt of the options, in the order --prompt-ids, --prompt, --chat; those of
/// --prompts come behind them.
std::vector<std::vector<std::int64_t>> prompts_of(const GenerateOptions& options, const ModelText& text) {
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
  if (prompts.empty() && options.prompt_file.empty()) {
    throw std::invalid_argument(
        "--prompt-ids: no prompt was given; try --prompt-ids 1,2,3, or --prompt TEXT where the model has a tokenizer");
  }
  return prompts;
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

/// Returns the bytes of the tokens, which patterns need; without a pattern, only what ends a completion.
std::shared_ptr<const MaskVocabulary> vocabulary_of(const GenerateOptions& options, const ModelText& text,
                                                    const std::vector<PromptLine>& lines,
                                                    const std::vector<std::int64_t>& eos) {
  const bool patterns =
      std::ranges::any_of(lines, [](const PromptLine& line) { return line.settings.regex.has_value(); });
  if (!options.sampling.rules.regex.empty()) {
    compile_pattern(options.sampling.rules.regex);  // Refused before the weights are loaded.
    return std::make_shared<const MaskVocabulary>(text.token_bytes("--regex"), eos);
  }
  return std::make_shared<const MaskVocabulary>(
      patterns && text.tokenizer ? text.token_bytes("regex") : std::vector<std::string>(), eos);
}

/// Completes the prompts of the command line as one batch.
ExitCode generate_at_once(const GenerateOptions& options, const Engine& engine, const ModelText& text,
                          GenerationRequest request, nlohmann::ordered_json document) {
  std::optional<StopStrings> stop;
  if (!options.sampling.stop.empty()) {
    const Tokenizer& tokenizer = text.require_tokenizer("--stop");
    stop.emplace(
        options.sampling.stop, [&](std::int64_t id) { return tokenizer.decode_further({&id, 1}); },
        request.prompts.size() * static_cast<std::size_t>(options.sampling.drawn()));
    request.stops = [&](std::size_t row, std::int64_t id) { return stop->add(row, id); };
  }
  const std::vector<Completion> completions = generate(engine, request);
  if (options.speculates) {
    SkippedTokens skipped;
    skipped.add(completions);
    fmt::print(stderr, "decodelab: {}\n", skipped.told());
  }
  if (request.keep_prefill_logits) {
    write_logits(options.logits_file, completions, request.samples);
  }
  document["completions"] = nlohmann::ordered_json::array();
  const CompletionKeys keys = options.keys(options.details.request(), text.tokenizer.has_value());
  const auto drawn = static_cast<std::size_t>(request.samples);
  for (std::size_t prompt = 0; prompt < request.prompts.size(); ++prompt) {
    const auto begin = completions.begin() + static_cast<std::ptrdiff_t>(prompt * drawn);
    const std::vector<Completion> of_prompt(begin, begin + static_cast<std::ptrdiff_t>(drawn));
    const auto text_of = [&](std::size_t sample) -> std::optional<std::string> {
      if (!text.tokenizer) {
        return std::nullopt;
      }
      return stop ? stop->text(prompt * drawn + sample)
                  : text.completion_text(of_prompt[sample].token_ids, engine.model().config());
    };
    const std::vector<Sample> samples = given_samples(of_prompt, keys, text_of);
    for (std::size_t sample = 0; options.output == "text" && sample < samples.size(); ++sample) {
      fmt::print("{}\n", to_text(samples[sample]));
    }
    nlohmann::ordered_json object = to_json(samples, request.prompts[prompt], keys);
    if (options.output == "jsonl") {
      fmt::print("{}\n", to_json_line(prompt, object));
    }
    document["completions"].push_back(std::move(object));
  }
  if (options.output == "json") {
    fmt::print("{}\n", document.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
  }
  return ExitCode::ok;
}

ExitCode run_generate(GenerateOptions options) {
  if (options.output != "text" && options.output != "json" && options.output != "jsonl") {
    throw std::invalid_argument(fmt::format("-o '{}': generate prints text, json or jsonl", options.output));
  }
  std::vector<NamedDraft> drafts = parse_drafts(options.drafts);
  options.arm = speculating_arm(options.arm, options.speculate, drafts);
  const Arm arm = parse_plain_arm(options.arm, "generate has flags for them: --regex, --samples, --prefix-store");
  const std::string device = require_device(options.device);
  const ElementType dtype = dtype_from_name(options.dtype);
  const ModelConfig config = config_of(options.model);
  const std::map<std::string, ModelConfig> draft_configs = configs_of_drafts(drafts, options.model);
  if (const std::string reason =
          unsupported_reason(arm, {.config = config, .dtype = dtype, .device = device, .drafts = &draft_configs});
      !reason.empty()) {
    throw std::invalid_argument(fmt::format("--arm '{}': {}", options.arm, reason));
  }
  const DetailsRequest asked = options.details.request();
  check_details(asked, config.vocabulary_size);
  GenerationRequest request{.prompts = {},
                            .max_tokens = options.max_tokens,
                            .eos_token_ids = options.ignore_eos ? std::vector<std::int64_t>{} : config.eos_token_ids(),
                            .details = {options.computed(asked)}};
  open_drafts(drafts, options.model, dtype, device);
  const CheckpointSource source = open_checkpoint(options.model, dtype, device);
  const ModelText text = load_model_text(source.path);
  request.prompts = prompts_of(options, text);
  std::vector<PromptLine> lines;
  if (!options.prompt_file.empty()) {
    if (!options.logits_file.empty() || options.sampling.seeds.size() > 1) {
      throw std::invalid_argument(
          "--logits and several --seed are of one batch of prompts, and --prompts makes a request of each line; give "
          "'seed' in the lines");
    }
    for (const std::vector<std::int64_t>& prompt : request.prompts) {
      lines.push_back({.ids = prompt});
    }
    std::ranges::move(load_request_lines(options.prompt_file), std::back_inserter(lines));
  }
  request.sampling = sampling_of(options.sampling, lines.empty() ? request.prompts.size() : 1);
  request.samples = options.sampling.drawn();
  request.keep_prefill_logits = !options.logits_file.empty();
  check_rules(options.sampling.rules, config.vocabulary_size);
  request.rules = {options.sampling.rules};
  request.vocabulary = vocabulary_of(options, text, lines, request.eos_token_ids);
  if (text.tokenizer) {
    // It lives as long as the engine.
    request.texts = std::make_shared<const TokenBytes>(
        std::shared_ptr<const ModelText>(std::shared_ptr<const ModelText>(), &text), "--top-tokens");
  }
  set_threads(options.threads == 0 ? detect_machine().cores : options.threads);
  const EnginePlan plan = bind_arm(arm, reference_plan());
  const auto model = [&] {
    ByteProgress progress("loading " + options.model);
    return model_for(plan, source.path, dtype, device,
                     [&](std::int64_t done, std::int64_t total) { progress(done, total); });
  }();
  const Engine engine(model, plan, load_drafts(drafts, dtype, device),
                      rank_processes({.checkpoint = source.path.string(),
                                      .dtype = options.dtype,
                                      .device = device,
                                      .arm = std::string(variants_part(arm.label)),
                                      .drafts = drafts}));
  options.speculates = engine.speculates();
  const nlohmann::ordered_json document{{"schema_version", 1},
                                        {"model", options.model},
                                        {"arm", arm.label},
                                        {"dtype", options.dtype},
                                        {"device", device}};
  if (lines.empty()) {
    return generate_at_once(options, engine, text, std::move(request), document);
  }
  std::optional<PrefixStore> prefixes;
  if (options.prefix_store_mb != 0) {
    if (!engine.reuses_prefixes()) {
      throw std::invalid_argument(
          fmt::format("--prefix-store: the arm {} reuses no prefixes; try --arm native, or {},+copied-prefix",
                      arm.label, arm.label));
    }
    constexpr double kBytesOfAMegabyte = 1e6;
    prefixes.emplace(engine, static_cast<std::int64_t>(options.prefix_store_mb * kBytesOfAMegabyte));
  }
  return generate_batch(options, engine, text, lines,
                        {.max_rows = options.max_batch,
                         .max_tokens_in_flight = options.max_tokens_in_flight,
                         .prefill_chunk = options.prefill_chunk,
                         .eos_token_ids = request.eos_token_ids,
                         .vocabulary = request.vocabulary,
                         .texts = request.texts,
                         .prefixes = prefixes ? &*prefixes : nullptr},
                        document);
}

}  // namespace

void add_generate_command(CLI::App& app, ExitCode& exit_code) {
  auto options = std::make_shared<GenerateOptions>();
  CLI::App* command = app.add_subcommand("generate", "Complete one batch of prompts under one arm.");
  command->add_option("-m,--model", options->model, "smollm2, a checkpoint directory, a GGUF file, or synthetic:NAME")
      ->required();
  command->add_option("--prompt-ids", options->prompt_ids, "Token ids of one prompt, as 1,2,3; repeat for each row")
      ->allow_extra_args(false);
  command->add_option("-p,--prompt", options->prompts, "Text of one prompt, where the model has a tokenizer; repeat")
      ->allow_extra_args(false);
  command
      ->add_option("--chat", options->questions, "A question, put into the form of the model's chat template; repeat")
      ->allow_extra_args(false);
  command->add_option("--prompts", options->prompt_file,
                      "File with a request a line, as {\"prompt\": TEXT, \"max_tokens\": 8}; requests join the batch "
                      "as others end; bench/README.md has all keys");
  command->add_option("--max-batch", options->max_batch, "Rows that are decoded at a time, with --prompts")
      ->capture_default_str();
  command
      ->add_option("--max-tokens-in-flight", options->max_tokens_in_flight,
                   "Tokens that those rows may come to hold, prompts included; 0: any number")
      ->capture_default_str();
  command->add_option(
      "--prefill-chunk", options->prefill_chunk,
      "Prompt tokens that are fed between two decode steps; 0: whole prompts. Default: as the arm says");
  command
      ->add_option("--prefix-store", options->prefix_store_mb,
                   "Megabytes of keys and values of prompts that are kept for those that begin alike, with --prompts")
      ->check(CLI::NonNegativeNumber);
  command->add_option("--max-tokens", options->max_tokens, "Tokens of each completion")->capture_default_str();
  command->add_option("--arm", options->arm, "PRESET[,+variant][,-variant]")->capture_default_str();
  command
      ->add_option("--speculate", options->speculate,
                   "Guess so many tokens ahead, which one step of the model checks: the same completion, sooner where "
                   "it repeats what was said; 0: as the arm says")
      ->check(CLI::Range(0, 64));
  add_draft_option(*command, options->drafts);
  command->add_option("--dtype", options->dtype, "fp32, fp16 or bf16")->capture_default_str();
  command->add_option("--device", options->device, "cpu or cuda:N")->capture_default_str();
  command->add_option("--threads", options->threads, "Threads of every operator; 0: one for each core")
      ->capture_default_str();
  command->add_flag("--ignore-eos", options->ignore_eos, "Go on past the end-of-sequence token");
  command->add_option("--logits", options->logits_file,
                      "Write the logits of each prompt's last token to this safetensors file");
  command->add_option("-o,--output", options->output, "text, json, or jsonl (an object a line, written as it ends)")
      ->capture_default_str();
  add_sampling_flags(*command, options->sampling.all);
  add_completion_flags(*command, options->sampling);
  add_details_flags(*command, options->details);
  command->footer(
      "Example:\n  decodelab generate -m smollm2 --chat \"What is the capital of France?\"\n"
      "  decodelab generate -m synthetic:tiny --prompt-ids 1,2,3 --prompt-ids 4,5 --max-tokens 16 --arm "
      "bigcode -o json\n  decodelab generate -m synthetic:tiny --prompt-ids 1,2,3 --temperature 0.8 --top-p 0.95 "
      "--seed 7 "
      "--arm bigcode,+philox-rng\n  decodelab generate -m smollm2 --prompt \"The sea\" --samples 4 --best-of 16 "
      "--temperature 1 --seed 3 -o json\n  decodelab generate -m smollm2 --prompt \"The year was\" --regex "
      "\" [12][0-9]{3}\\.\" --arm native\n  decodelab generate -m smollm2 --prompts requests.jsonl --max-batch 4 --arm "
      "native -o jsonl");
  command->callback([options, &exit_code] { exit_code = run_generate(*options); });
}

}  // namespace decodelab
