// Loads a model, or opens it for those who share it.
#include "bench/measure/engine_model.h"

#include "bench/machine/environment.h"

namespace decodelab {

std::shared_ptr<const Model> model_for(const EnginePlan& plan, const std::filesystem::path& checkpoint,
                                       ElementType dtype, const std::string& device,
                                       const std::function<void(std::int64_t, std::int64_t)>& progress) {
  return plan.communicator.value().ranks > 1 ? Model::open(checkpoint, dtype, device, memory_to_take(device))
                                             : Model::load(checkpoint, dtype, device, memory_to_take(device), progress);
}

}  // namespace decodelab
