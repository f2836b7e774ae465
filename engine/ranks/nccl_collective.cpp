// Collective operations by NCCL. In the CUDA module, since it names symbols of CUDA and of NCCL.
#include <atomic>
#include <chrono>
#include <cstring>
#include <memory>
#include <mutex>
#include <thread>

#include <fmt/format.h>
#include <nccl.h>

#include "engine/ranks/collective.h"
#include "engine/ranks/rank_failed.h"
#include "engine/tensor.h"

namespace decodelab {
namespace {

constexpr std::chrono::microseconds kBetweenAsks{100};
static_assert(sizeof(ncclUniqueId) == sizeof(CollectiveId));

ncclDataType_t type_of(const at::Tensor& tensor) {
  switch (tensor.scalar_type()) {
    case at::kFloat: return ncclFloat32;
    case at::kHalf: return ncclFloat16;
    case at::kBFloat16: return ncclBfloat16;
    default: throw std::logic_error("ranks exchange tensors in fp32, fp16 and bf16");
  }
}

void require(ncclResult_t result, const char* what) {
  if (result != ncclSuccess && result != ncclInProgress) {
    throw RankFailed(fmt::format("NCCL cannot {}: {}", what, ncclGetErrorString(result)));
  }
}

class NcclCollective final : public Collective {
 public:
  NcclCollective(const CollectiveId& id, std::int64_t rank, std::int64_t ranks, const std::string& device,
                 const std::function<void()>& look)
      : device_(device) {
    const c10::cuda::CUDAGuard guard(device_);
    ncclUniqueId name;
    std::memcpy(&name, id.data(), id.size());
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;  // So that the host can look whether the others live.
    require(ncclCommInitRankConfig(&comm_, static_cast<int>(ranks), name, static_cast<int>(rank), &config),
            "join the ranks of the model");
    try {
      settle("join the ranks of the model", look);
    } catch (...) {
      abort();
      throw;
    }
  }

  ~NcclCollective() override {
    if (!aborted_.exchange(true)) {
      ncclCommDestroy(comm_);
    }
  }

  void sum(const at::Tensor& part) override {
    ask("sum over ranks", [&](cudaStream_t stream) {
      return ncclAllReduce(part.const_data_ptr(), part.mutable_data_ptr(), static_cast<std::size_t>(part.numel()),
                           type_of(part), ncclSum, comm_, stream);
    });
  }

  void broadcast(const at::Tensor& tensor) override {
    ask("send to all ranks", [&](cudaStream_t stream) {
      return ncclBroadcast(tensor.const_data_ptr(), tensor.mutable_data_ptr(), static_cast<std::size_t>(tensor.numel()),
                           type_of(tensor), 0, comm_, stream);
    });
  }

  void send(const at::Tensor& part) override {
    ask("send to the first rank", [&](cudaStream_t stream) {
      return ncclSend(part.const_data_ptr(), static_cast<std::size_t>(part.numel()), type_of(part), 0, comm_, stream);
    });
  }

  void receive(const std::vector<at::Tensor>& parts) override {
    ask("receive from other ranks", [&](cudaStream_t stream) {
      ncclGroupStart();
      for (std::size_t index = 0; index < parts.size(); ++index) {
        const at::Tensor& part = parts[index];
        ncclRecv(part.mutable_data_ptr(), static_cast<std::size_t>(part.numel()), type_of(part),
                 static_cast<int>(index + 1), comm_, stream);
      }
      return ncclGroupEnd();
    });
  }

  void wait() override { c10::cuda::getCurrentCUDAStream(device_.index()).synchronize(); }

  void abort() override {
    if (!aborted_.exchange(true)) {
      ncclCommAbort(comm_);
    }
  }

 private:
  /// Waits until NCCL has begun what it was asked for, and throws where that failed.
  void settle(const char* what, const std::function<void()>& look) {
    ncclResult_t state = ncclInProgress;
    while (!aborted_) {
      require(ncclCommGetAsyncError(comm_, &state), what);
      require(state, what);
      if (state == ncclSuccess) {
        return;
      }
      look();
      std::this_thread::sleep_for(kBetweenAsks);
    }
    throw RankFailed(fmt::format("NCCL was told to end while it had to {}", what));
  }

  template <typename Operation>
  void ask(const char* what, Operation&& operation) {
    if (aborted_) {
      throw RankFailed(fmt::format("NCCL was told to end before it had to {}", what));
    }
    const c10::cuda::CUDAGuard guard(device_);
    const ncclResult_t result = operation(c10::cuda::getCurrentCUDAStream(device_.index()).stream());
    require(result, what);
    if (result == ncclInProgress) {
      settle(what, [] {});
    }
  }

  at::Device device_;
  ncclComm_t comm_ = nullptr;
  std::atomic<bool> aborted_{false};
};

}  // namespace

extern "C" void decodelab_nccl_new_id(CollectiveId& id) {
  ncclUniqueId name;
  require(ncclGetUniqueId(&name), "name a group of ranks");
  std::memcpy(id.data(), &name, id.size());
}

extern "C" Collective* decodelab_nccl_join(const CollectiveId& id, std::int64_t rank, std::int64_t ranks,
                                           const std::string& device, const std::function<void()>& look) {
  return new NcclCollective(id, rank, ranks, device, look);
}

}  // namespace decodelab
