// Kernels of known length and bytes, launched on a stream of their own.
#include <string>

#include <cuda_runtime.h>

#include "tests/variants/device_work.h"

namespace decodelab::testing {
namespace {

constexpr int kCopyThreads = 512;
constexpr int kCopyBlocksPerMultiprocessor = 4;
constexpr int kTimerReads = 100'000;

void check(cudaError_t result, const char* what) {
  if (result != cudaSuccess) {
    throw std::runtime_error(std::string(what) + ": " + cudaGetErrorString(result));
  }
}

int attribute(cudaDeviceAttr which) {
  int value = 0;
  check(cudaDeviceGetAttribute(&value, which, 0), "cudaDeviceGetAttribute");
  return value;
}

__device__ std::int64_t device_ns() {
  std::int64_t time;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(time));
  return time;
}

__device__ void spin_until(std::int64_t ns, SpinTime* out) {
  const std::int64_t start = device_ns();
  std::int64_t now = start;
  while (now - start < ns) {
    now = device_ns();
  }
  if (out != nullptr) {
    out->start_ns = start;
    out->end_ns = now;
  }
}

__global__ void empty_kernel() {}

__global__ void spin_kernel(std::int64_t ns, SpinTime* out) {
#if __CUDA_ARCH__ >= 900
  // Lets a programmatic successor start at once; for any other launch it means nothing.
  cudaTriggerProgrammaticLaunchCompletion();
#endif
  spin_until(ns, out);
}

__global__ void copy_kernel(const int4* from, int4* to, std::int64_t count) {
  const std::int64_t stride = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += stride) {
    to[i] = from[i];
  }
}

__global__ void tick_kernel(std::int64_t* least) {
  std::int64_t before = device_ns();
  for (int read = 0; read < kTimerReads; ++read) {
    const std::int64_t now = device_ns();
    if (now > before && (*least == 0 || now - before < *least)) {
      *least = now - before;
    }
    before = now;
  }
}

}  // namespace

struct DeviceStream::Impl {
  Impl() = default;
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;
  ~Impl() {
    if (stream != nullptr) {
      cudaStreamSynchronize(stream);
      cudaStreamDestroy(stream);
    }
    cudaFree(slots);
    cudaFreeHost(host);
    cudaFree(first);
    cudaFree(second);
  }

  cudaStream_t stream = nullptr;
  SpinTime* slots = nullptr;
  std::int64_t slot_count = 0;
  std::size_t bytes = 0;
  void* host = nullptr;
  void* first = nullptr;
  void* second = nullptr;

  SpinTime* slot(std::int64_t index) const {
    if (index < 0 || index >= slot_count) {
      throw std::out_of_range("a slot below " + std::to_string(slot_count) + " was expected, got " +
                              std::to_string(index));
    }
    return slots + index;
  }
  std::size_t fits(std::size_t wanted) const {
    if (wanted > bytes) {
      throw std::out_of_range("the buffers hold " + std::to_string(bytes) + " bytes, got " + std::to_string(wanted));
    }
    return wanted;
  }
};

DeviceStream::DeviceStream(std::int64_t slots, std::size_t bytes) : impl_(std::make_unique<Impl>()) {
  impl_->slot_count = slots;
  impl_->bytes = bytes;
  check(cudaSetDevice(0), "cudaSetDevice");
  check(cudaStreamCreateWithFlags(&impl_->stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
  const std::size_t slot_bytes = static_cast<std::size_t>(slots) * sizeof(SpinTime);
  check(cudaMalloc(reinterpret_cast<void**>(&impl_->slots), slot_bytes), "cudaMalloc");
  check(cudaMallocHost(&impl_->host, bytes), "cudaMallocHost");
  check(cudaMalloc(&impl_->first, bytes), "cudaMalloc");
  check(cudaMalloc(&impl_->second, bytes), "cudaMalloc");
  check(cudaMemset(impl_->first, 1, bytes), "cudaMemset");
  check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
}

DeviceStream::~DeviceStream() = default;

void DeviceStream::empty() {
  empty_kernel<<<1, 1, 0, impl_->stream>>>();
  check(cudaGetLastError(), "empty_kernel");
}

void DeviceStream::spin(std::int64_t ns, std::int64_t slot) {
  spin_kernel<<<1, 1, 0, impl_->stream>>>(ns, impl_->slot(slot));
  check(cudaGetLastError(), "spin_kernel");
}

void DeviceStream::spin_early(std::int64_t ns, std::int64_t slot) {
  cudaLaunchAttribute early{};
  early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  early.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t launch{};
  launch.gridDim = dim3(1);
  launch.blockDim = dim3(1);
  launch.stream = impl_->stream;
  launch.attrs = &early;
  launch.numAttrs = 1;
  check(cudaLaunchKernelEx(&launch, spin_kernel, ns, impl_->slot(slot)), "cudaLaunchKernelEx");
}

void DeviceStream::copy_by_kernel() {
  const auto blocks = static_cast<unsigned>(kCopyBlocksPerMultiprocessor * multiprocessors());
  copy_kernel<<<blocks, kCopyThreads, 0, impl_->stream>>>(static_cast<const int4*>(impl_->first),
                                                          static_cast<int4*>(impl_->second),
                                                          static_cast<std::int64_t>(impl_->bytes / sizeof(int4)));
  check(cudaGetLastError(), "copy_kernel");
}

void DeviceStream::copy_to_device(std::size_t bytes) {
  check(cudaMemcpyAsync(impl_->first, impl_->host, impl_->fits(bytes), cudaMemcpyHostToDevice, impl_->stream), "copy");
}

void DeviceStream::copy_to_host(std::size_t bytes) {
  check(cudaMemcpyAsync(impl_->host, impl_->first, impl_->fits(bytes), cudaMemcpyDeviceToHost, impl_->stream), "copy");
}

void DeviceStream::copy_on_device(std::size_t bytes) {
  check(cudaMemcpyAsync(impl_->second, impl_->first, impl_->fits(bytes), cudaMemcpyDeviceToDevice, impl_->stream),
        "copy");
}

void DeviceStream::set(std::size_t bytes) {
  check(cudaMemsetAsync(impl_->first, 0, impl_->fits(bytes), impl_->stream), "cudaMemsetAsync");
}

void DeviceStream::wait() { check(cudaStreamSynchronize(impl_->stream), "cudaStreamSynchronize"); }

std::vector<SpinTime> DeviceStream::times() {
  wait();
  std::vector<SpinTime> times(static_cast<std::size_t>(impl_->slot_count));
  check(cudaMemcpy(times.data(), impl_->slots, times.size() * sizeof(SpinTime), cudaMemcpyDeviceToHost), "cudaMemcpy");
  return times;
}

namespace {

cudaGraph_t capture(cudaStream_t stream, const std::function<void()>& work) {
  cudaGraph_t graph = nullptr;
  check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
  work();
  check(cudaStreamEndCapture(stream, &graph), "cudaStreamEndCapture");
  return graph;
}

}  // namespace

DeviceGraph::DeviceGraph(DeviceStream& stream, const std::function<void()>& work) : stream_(stream) {
  cudaGraph_t graph = capture(stream.impl_->stream, work);
  cudaGraphExec_t executable = nullptr;
  const cudaError_t result = cudaGraphInstantiate(&executable, graph, 0);
  cudaGraphDestroy(graph);
  check(result, "cudaGraphInstantiate");
  executable_ = executable;
}

DeviceGraph::~DeviceGraph() {
  cudaStreamSynchronize(stream_.impl_->stream);
  cudaGraphExecDestroy(static_cast<cudaGraphExec_t>(executable_));
}

void DeviceGraph::replay() {
  check(cudaGraphLaunch(static_cast<cudaGraphExec_t>(executable_), stream_.impl_->stream), "cudaGraphLaunch");
}

void DeviceGraph::update(const std::function<void()>& work) {
  cudaGraph_t graph = capture(stream_.impl_->stream, work);
  cudaGraphExecUpdateResultInfo info{};
  const cudaError_t result = cudaGraphExecUpdate(static_cast<cudaGraphExec_t>(executable_), graph, &info);
  cudaGraphDestroy(graph);
  check(result, "cudaGraphExecUpdate");
}

EventTimer::EventTimer() {
  for (void*& event : events_) {
    check(cudaEventCreate(reinterpret_cast<cudaEvent_t*>(&event)), "cudaEventCreate");
  }
}

EventTimer::~EventTimer() {
  for (void* const event : events_) {
    cudaEventDestroy(static_cast<cudaEvent_t>(event));
  }
}

void EventTimer::start() { check(cudaEventRecord(static_cast<cudaEvent_t>(events_[0])), "cudaEventRecord"); }
void EventTimer::stop() { check(cudaEventRecord(static_cast<cudaEvent_t>(events_[1])), "cudaEventRecord"); }

std::int64_t EventTimer::elapsed_ns() const {
  float milliseconds = 0;
  check(cudaEventSynchronize(static_cast<cudaEvent_t>(events_[1])), "cudaEventSynchronize");
  check(cudaEventElapsedTime(&milliseconds, static_cast<cudaEvent_t>(events_[0]), static_cast<cudaEvent_t>(events_[1])),
        "cudaEventElapsedTime");
  return static_cast<std::int64_t>(1e6 * static_cast<double>(milliseconds));
}

void spin_on_default_stream(std::int64_t ns) {
  spin_kernel<<<1, 1>>>(ns, nullptr);
  check(cudaGetLastError(), "spin_kernel");
}

std::int64_t timer_tick_ns() {
  std::int64_t* least = nullptr;
  std::int64_t tick = 0;
  check(cudaMalloc(reinterpret_cast<void**>(&least), sizeof tick), "cudaMalloc");
  check(cudaMemset(least, 0, sizeof tick), "cudaMemset");
  tick_kernel<<<1, 1>>>(least);
  check(cudaGetLastError(), "tick_kernel");
  check(cudaMemcpy(&tick, least, sizeof tick, cudaMemcpyDeviceToHost), "cudaMemcpy");
  cudaFree(least);
  return tick;
}

std::int64_t l2_bytes() { return attribute(cudaDevAttrL2CacheSize); }
std::int64_t multiprocessors() { return attribute(cudaDevAttrMultiProcessorCount); }
bool launches_programmatically() { return attribute(cudaDevAttrComputeCapabilityMajor) >= 9; }

}  // namespace decodelab::testing
