// Records work into CUDA graphs. A module of its own, since it names symbols of libtorch's CUDA part.
#include <memory>
#include <stdexcept>
#include <utility>

#include "engine/generation/graph_runner.h"
#include "engine/tensor.h"

namespace decodelab {

namespace {

/// A pool of device memory that graphs share. libtorch gives it up with the last graph, and takes no further one then.
using SharedPool = std::shared_ptr<const at::cuda::MempoolId_t>;

class CudaGraphWork final : public RecordedWork {
 public:
  explicit CudaGraphWork(SharedPool pool) : pool_(std::move(pool)) {}

  at::cuda::CUDAGraph graph;
  /// On the current stream, in whose order ids, lengths and results are written and read.
  void run() override { graph.replay(); }

 private:
  SharedPool pool_;
};

class CudaGraphRecorder final : public WorkRecorder {
 public:
  explicit CudaGraphRecorder(at::Device device)
      : device_(device), stream_(c10::cuda::getStreamFromPool(/*isHighPriority=*/false, device.index())) {}

  void aside(const std::function<void()>& work) override {
    const c10::cuda::CUDAGuard on_device(device_);
    c10::cuda::device_synchronize();
    {
      const c10::cuda::CUDAStreamGuard on_stream(stream_);
      work();
    }
    c10::cuda::device_synchronize();
  }

  std::unique_ptr<RecordedWork> record(std::function<void()> work) override {
    if (pool_.use_count() <= 1) {
      pool_ = std::make_shared<const at::cuda::MempoolId_t>(at::cuda::graph_pool_handle());
    }
    auto recorded = std::make_unique<CudaGraphWork>(pool_);
    // Other threads may allocate meanwhile: what they do is no part of the graph.
    recorded->graph.capture_begin(*pool_, cudaStreamCaptureModeThreadLocal);
    try {
      work();
    } catch (...) {
      try {
        recorded->graph.capture_end();
      } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): the first failure is the one to tell.
      }
      throw;
    }
    recorded->graph.capture_end();
    return recorded;
  }

 private:
  at::Device device_;
  c10::cuda::CUDAStream stream_;
  /// Graphs share memory for what they need while they run: one runs at a time, and results are read before the next.
  SharedPool pool_;
};

}  // namespace

/// What graph_runner.cpp finds by its name. Throws what libtorch throws.
extern "C" WorkRecorder* decodelab_new_cuda_graph_recorder(const std::string& device) {
  const at::Device named(device);
  return new CudaGraphRecorder(named.has_index() ? named : at::Device(at::kCUDA, c10::cuda::current_device()));
}

}  // namespace decodelab
