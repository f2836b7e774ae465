// Finds NCCL in the CUDA module, when it is first needed.
#include "engine/kernels/cuda_module.h"
#include "engine/ranks/collective.h"

namespace decodelab {

const Collectives& nccl_collectives() {
  static const Collectives collectives{
      .new_id =
          [] {
            using NewId = void(CollectiveId&);
            CollectiveId id{};
            reinterpret_cast<NewId*>(cuda_module_function("decodelab_nccl_new_id"))(id);
            return id;
          },
      .join =
          [](const CollectiveId& id, std::int64_t rank, std::int64_t ranks, const std::string& device,
             const std::function<void()>& look) {
            using Join = Collective*(const CollectiveId&, std::int64_t, std::int64_t, const std::string&,
                                     const std::function<void()>&);
            auto* const join = reinterpret_cast<Join*>(cuda_module_function("decodelab_nccl_join"));
            return std::unique_ptr<Collective>(join(id, rank, ranks, device, look));
          }};
  return collectives;
}

}  // namespace decodelab
