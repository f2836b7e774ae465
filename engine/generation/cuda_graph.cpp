// Records work into CUDA graphs. A module of its own, since it names symbols of libtorch's CUDA part.
#include <stdexcept>

#include "engine/generation/graph_runner.h"
#include "engine/tensor.h"

namespace decodelab {

namespace {

class CudaGraphWork final : public RecordedWork {
 public:
  at::cuda::CUDAGraph graph;
  /// On the current stream, in whose order ids, lengths and results are written and read.
  void run() override { graph.replay(); }
};

class CudaGraphRecorder final : public WorkRecorder {
 public:
  explicit CudaGraphRecorder(at::Device device)
      : device_(device),
        stream_(c10::cuda::getStreamFromPool(/*isHighPriority=*/false, device.index())),
        pool_(at::cuda::graph_pool_handle()) {}

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
    auto recorded = std::make_unique<CudaGraphWork>();
    // Other threads may allocate meanwhile: what they do is no part of the graph.
    recorded->graph.capture_begin(pool_, cudaStreamCaptureModeThreadLocal);
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
  at::cuda::MempoolId_t pool_;
};

}  // namespace

/// What graph_runner.cpp finds by its name. Throws what libtorch throws.
extern "C" WorkRecorder* decodelab_new_cuda_graph_recorder(const std::string& device) {
  const at::Device named(device);
  return new CudaGraphRecorder(named.has_index() ? named : at::Device(at::kCUDA, c10::cuda::current_device()));
}

}  // namespace decodelab
