// `decodelab predict`: the time of a whole completion, from the measured curves of a run.
#include "bench/commands/commands.h"
#include "bench/commands/output.h"
#include "reports/page/prediction_table.h"
#include "reports/statistics/summary.h"
#include "reports/store/store.h"

#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <memory>

namespace decodelab {
namespace {

struct Options {
  std::string run;
  std::string store = kDefaultStore;
  std::string output = "text";
  CompletionRequest request;
};

ExitCode run(const Options& options) {
  const OutputFormat format = output_format(options.output);
  const RunSelector selector = parse_run_selector(options.run, options.store);
  const Store store(selector.store, StoreAccess::read);
  const RunSummary summary = summarize(store.load_run(store.find_run(selector.run)));
  const std::vector<Prediction> predictions = predict_completion(summary, options.request, selector.arm);
  if (predictions.empty()) {
    std::string known;
    for (const ArmRecord& arm : summary.arms) known += (known.empty() ? "" : ", ") + arm.label;
    throw std::invalid_argument(fmt::format("run {} has no arm '{}' to predict; it has {}", summary.run.id,
                                            selector.arm, known.empty() ? "none" : known));
  }
  if (std::ranges::all_of(predictions, [](const Prediction& prediction) { return !prediction.total_ns; })) {
    throw std::invalid_argument(
        fmt::format("run {} predicts nothing of it: {}", summary.run.id, predictions.front().refusal));
  }
  switch (format) {
    case OutputFormat::text: std::cout << to_text(prediction_table(predictions)); break;
    case OutputFormat::markdown: std::cout << to_markdown(prediction_table(predictions)); break;
    case OutputFormat::csv: std::cout << predictions_to_csv(predictions); break;
    case OutputFormat::json: std::cout << predictions_to_json(predictions); break;
    case OutputFormat::jsonl: throw std::invalid_argument("-o jsonl: predict knows text, md, csv and json");
  }
  return ExitCode::ok;
}

}  // namespace

void add_predict_command(CLI::App& app, ExitCode& exit_code) {
  auto options = std::make_shared<Options>();
  CLI::App* command =
      app.add_subcommand("predict", "Predict how long a whole completion takes, from the curves that a run measured.");
  command->add_option("RUN", options->run, "[STORE@](id | name | latest | latest~n)[:ARM]; without ARM all arms")
      ->required();
  command->add_option("--prompt-tokens", options->request.prompt_tokens, "Tokens of the prompt")->required();
  command->add_option("--new-tokens", options->request.new_tokens, "Tokens that are made, the first one by the prefill")
      ->required();
  command->add_option("--batch", options->request.batch, "Rows decoded together; a batch size of the run")
      ->capture_default_str();
  command->add_option("--store", options->store, "The SQLite file that holds the runs")->capture_default_str();
  command->add_option("-o,--output", options->output, "text, md, csv or json")->capture_default_str();
  command->footer(
      "The prefill of the prompt, and a step of decode for each further token at the number of keys that it finds;\n"
      "lengths between measured ones are read from a straight line, and nothing beyond them is predicted. Where the\n"
      "run measured the same completion (sweep --phase generate --max-tokens N), it stands beside the prediction.\n\n"
      "Example:\n"
      "  decodelab predict latest --prompt-tokens 64 --new-tokens 128 --batch 4");
  command->callback([options, &exit_code] { exit_code = run(*options); });
}

}  // namespace decodelab
