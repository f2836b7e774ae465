// Joins a run's plan, its store and a worker's process.
#include "bench/measure/external_arm.h"

#include <algorithm>
#include <filesystem>

#include "bench/measure/process/process_worker.h"

namespace decodelab {

bool all_external(const std::vector<ArmRecord>& arms) {
  return std::ranges::none_of(arms, [](const ArmRecord& arm) { return arm.command.empty(); });
}

std::unique_ptr<Worker> make_process_worker(Store& store, const ArmRecord& arm, const LaunchPlan& plan) {
  const ModelConfig config = load_model_config(plan.checkpoint);
  return std::make_unique<ProcessWorker>(ProcessWorkerOptions{
      .command = arm.command,
      .load = {.model = plan.checkpoint,
               .dtype = plan.dtype,
               .device = plan.device,
               .threads = plan.threads,
               .seed = plan.seed,
               .max_tokens = plan.max_tokens,
               .sampling = plan.sampling,
               .request = parse_arm_request(request_part(arm.label))},
      .prompts = plan.prompts,
      .places = places_of(plan),
      .vocabulary = config.vocabulary_size,
      .positions = config.positions,
      .reply_limit = std::chrono::seconds(plan.worker_seconds),
      .identified =
          [&store, arm](const WorkerHello& hello) {
            ArmRecord known = arm;
            known.engine = hello.engine;
            known.version = hello.version;
            known.settings = hello.settings_json;
            try {
              store.identify_arm(known);
            } catch (const std::invalid_argument& error) {
              throw WorkerError(RowStatus::failed, error.what());
            }
          },
  });
}

}  // namespace decodelab
