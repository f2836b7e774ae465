// Describes a new run: plan, build, machine, model.
#include "bench/commands/new_run.h"

#include <fstream>

#include <fmt/format.h>

#include "bench/machine/environment.h"
#include "bench/measure/torch_build.h"

namespace decodelab {

std::string own_command() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::string command = "decodelab";
  std::string word;
  std::getline(file, word, '\0');
  while (std::getline(file, word, '\0')) {
    const bool plain = !word.empty() && word.find_first_of(" \t\n'\"\\$`*?[]{}()<>|&;#~!") == std::string::npos;
    command += plain ? " " + word : fmt::format(" '{}'", word);
  }
  return command;
}

void describe_run(RunData& data, const SweepRequest& request, const CheckpointSource& source) {
  const ModelConfig& config = source.config;
  data.run.plan_json = to_json(LaunchPlan{.model = request.model,
                                          .checkpoint = source.path.string(),
                                          .dtype = request.dtype,
                                          .device = request.device,
                                          .threads = request.threads,
                                          .seed = request.seed,
                                          .max_tokens = request.max_tokens,
                                          .fill = fill_of(request),
                                          .prompts = request.prompts,
                                          .quality_ids = request.quality_ids,
                                          .quality_limit = request.quality_limit,
                                          .drafts = request.drafts,
                                          .worker_seconds = request.worker_seconds,
                                          .affinity = request.affinity,
                                          .slice_ns = slice_ns_of(request),
                                          .pin = request.pin,
                                          .tail = request.tail,
                                          .sampling = request.sampling,
                                          .adaptive = request.adaptive,
                                          .ablate = request.ablate,
                                          .shard = request.shard});
  data.run.started_unix_ns = unix_ns();
  data.run.build = this_build();
  data.run.machine = detect_machine();
  data.run.model = {.name = request.model,
                    .family = config.family,
                    .parameters = parameter_count(config),
                    .positions = config.positions,
                    .random_weights = source.synthetic};
}

}  // namespace decodelab
