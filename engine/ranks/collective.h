// Collective operations on tensors in the memory of GPUs, one a rank.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace at {
class Tensor;
}

namespace decodelab {

/// One rank's side. Operations are put into the device's current stream, and every rank asks for the same ones in the
/// same order; tensors are contiguous. They throw RankFailed where the library refuses.
class Collective {
 public:
  virtual ~Collective() = default;
  /// Replaces the tensor by its sum over all ranks.
  virtual void sum(const at::Tensor& part) = 0;
  /// Copies the first rank's tensor to where it stands on the others.
  virtual void broadcast(const at::Tensor& tensor) = 0;
  /// Sends a tensor to the first rank.
  virtual void send(const at::Tensor& part) = 0;
  /// Receives the tensors of the other ranks on the first one, by rank from 1.
  virtual void receive(const std::vector<at::Tensor>& parts) = 0;
  /// Waits until all that was asked for is done, or was aborted.
  virtual void wait() = 0;
  /// Lets operations that wait for other ranks end, from any thread; what they leave means nothing.
  virtual void abort() = 0;
};

/// Names a group of ranks; NCCL's ncclUniqueId.
using CollectiveId = std::array<std::byte, 128>;

/// Makes the ranks' sides.
struct Collectives {
  /// Returns a new group's name, on the first rank.
  std::function<CollectiveId()> new_id;
  /// Waits until all ranks have joined. `look` is called in between, and throws where one of them has ended.
  std::function<std::unique_ptr<Collective>(const CollectiveId& id, std::int64_t rank, std::int64_t ranks,
                                            const std::string& device, const std::function<void()>& look)>
      join;
};

/// Returns those of NCCL, of the CUDA module. They throw std::runtime_error in a build without it.
const Collectives& nccl_collectives();

}  // namespace decodelab
