// Flags of cells and how they are read.
#include "bench/commands/cell_options.h"

#include <cmath>
#include <stdexcept>
#include <vector>

#include "bench/commands/checkpoint_source.h"
#include "bench/commands/commands.h"
#include "bench/commands/draft_options.h"
#include "bench/commands/new_run.h"
#include "bench/commands/sampling_options.h"
#include "bench/machine/environment.h"
#include "bench/plan/axis.h"
#include "bench/plan/cell_fill.h"

namespace decodelab {
namespace {

const std::vector<std::string> kScopes{"step", "forward", "serving"};
const std::vector<std::string> kTokenVisible{"each", "end"};

void check_word(const char* flag, const std::string& word, const std::vector<std::string>& known) {
  if (parse_words(flag, word, known).size() != 1) {
    throw std::invalid_argument(std::string(flag) + ": expected one word, got '" + word + "'");
  }
}

}  // namespace

void add_cell_options(CLI::App& command, CellOptions& options, SweepRequest& request) {
  command.add_option("-m,--model", request.model, "A checkpoint directory, or synthetic:NAME");
  command.add_option("--phase", options.phases, "prefill, decode, generate, batching, or several")
      ->capture_default_str();
  command.add_option("--batch", options.batches, "Rows: a,b | a-b | a-b+step | a-bxfactor")->capture_default_str();
  command.add_option("--length", options.lengths, "Tokens of the prompt, or already held in decode; same grammar")
      ->capture_default_str();
  command.add_option("--dtype", request.dtype, "fp32, fp16 or bf16")->capture_default_str();
  command.add_option("--device", request.device, "cpu or cuda:N")->capture_default_str();
  command.add_option("--threads", request.threads, "Threads of every operator; 0: one for each core")
      ->capture_default_str();
  command.add_option("--affinity", options.affinity, "Cores that all threads are bound to: 0,2 or 0-3");
  command.add_option("--blocks", request.blocks, "Mirrored blocks in each launch")->capture_default_str();
  command.add_option("--seed", request.seed, "Of prompts, cache contents and block order")->capture_default_str();
  command
      .add_option("--max-tokens", request.max_tokens,
                  "Tokens of a completion in phase generate; in phase batching their mean")
      ->capture_default_str();
  command.add_option("--samples", request.scope.samples, "Rows of each prompt in phases prefill and generate")
      ->capture_default_str();
  command
      .add_option("--request-rate", options.request_rates,
                  "Requests a second that come in phase batching, at random: inf (all at once), 2.5, or several")
      ->capture_default_str();
  command.add_option("--goodput", options.goodput,
                     "Also measure, in phase batching, how many requests a second are answered within these "
                     "milliseconds: ttft=200,tpot=50, or one of both");
  command.add_option("--prompts", options.prompt_file,
                     "JSON lines with prompt or prompt_ids, which rows are cut from instead of random ids; the page "
                     "shows what the model says to the first of them");
  add_draft_option(command, options.drafts);
  command.add_flag("--quality", options.quality,
                   "Let every arm predict a text, beside the reference in fp32: perplexity, KL divergence, most "
                   "probable tokens");
  command.add_option("--quality-text", options.quality_text,
                     "A file with the text, instead of the one that ships; sets --quality");
  command.add_option("--quality-limit", options.quality_limit,
                     "The worst quality of an arm that is not incorrect: kl=NATS, perplexity=RATIO, top-1=SHARE, or "
                     "several with commas; sets --quality");
  command.add_option(
      "--fill", request.fill,
      "How a decode cell's cache is filled: random or generated (by a prefill); random:N gives the decoder beside an "
      "encoder N tokens of its own, not 8. Default: random; generated with --worker or --prompts, or "
      "where the model is not synthetic");
  command
      .add_option("--scope", options.scope,
                  "What a step is: step (with the choice, tokens on the host), forward (ids in, logits out) or serving "
                  "(as a client of a server sees it, for workers that ask one)")
      ->capture_default_str();
  command.add_flag("--at-length", options.at_length,
                   "Every timed decode step starts from the cell's length, instead of following the one before");
  command
      .add_option("--token-visible", options.token_visible,
                  "When the host reads a decode step's tokens: each (after every step) or end (of a visit; GPU only)")
      ->capture_default_str();
  command.add_flag("!--no-pin", request.pin,
                   "Leave it to the system where threads run. Otherwise each has a core of its own, where there are as "
                   "many cores as threads");
  command.add_option(
      "--slice,--turn", options.slice_ms,
      "Milliseconds that an arm is timed before the next arm is; 0: whole visits, one after the other. Default: 4, in "
      "a sweep with --worker 0. --turn is its old name");
  command.add_option("--worker-timeout", request.worker_seconds, "Seconds that a worker may take for one reply")
      ->capture_default_str();
  command.add_option("--name", request.name, "A name to find the run by");
  add_sampling_flags(command, request.sampling);
}

void complete_cells(const CellOptions& options, SweepRequest& request) {
  if (request.model.empty()) {
    throw std::invalid_argument("--model: which model? A checkpoint directory, or one of 'decodelab list models'");
  }
  std::vector<std::string> known;
  for (const PhaseWords& words : kPhaseWords) {
    known.emplace_back(words.name);
  }
  request.phases.clear();
  for (const std::string& name : parse_words("--phase", options.phases, known)) {
    request.phases.push_back(phase_from_string(name));
  }
  request.batches = parse_axis("--batch", options.batches);
  request.lengths = parse_axis("--length", options.lengths);
  if (!request.fill.empty()) {
    cell_fill_from_string(request.fill);
  }
  if (!options.prompt_file.empty()) {
    request.prompts = real_prompts("--prompts", load_prompt_lines(options.prompt_file), text_of_model(request.model),
                                   config_of(request.model).vocabulary_size);
  }
  request.quality_limit = parse_quality_limit(options.quality_limit);
  if (options.quality || !options.quality_text.empty() || !options.quality_limit.empty()) {
    request.quality_ids =
        quality_ids(options.quality_text, text_of_model(request.model), config_of(request.model).vocabulary_size,
                    static_cast<std::uint64_t>(request.seed));
  }
  request.drafts = parse_drafts(options.drafts);
  request.draft_configs = configs_of_drafts(request.drafts, request.model);
  request.request_rates = parse_rates("--request-rate", options.request_rates);
  request.goodput = parse_limits("--goodput", options.goodput);
  check_word("--scope", options.scope, kScopes);
  check_word("--token-visible", options.token_visible, kTokenVisible);
  request.scope = {.forward = options.scope == "forward",
                   .at_length = options.at_length,
                   .visible_end = options.token_visible == "end",
                   .serving = options.scope == "serving",
                   .warped = !request.sampling.plain_greedy(),
                   .samples = request.scope.samples};
  check_sampling(request.sampling);
  if (options.slice_ms) {
    request.slice_ns = std::llround(1e6 * *options.slice_ms);
  }
  request.device = require_device(request.device);
  if (!options.affinity.empty()) {
    request.affinity = parse_axis("--affinity", options.affinity, 0);
    bind_to_cores(request.affinity);
  }
  request.threads = request.threads == 0 ? detect_machine().cores : request.threads;
  request.command = own_command();
}

}  // namespace decodelab
