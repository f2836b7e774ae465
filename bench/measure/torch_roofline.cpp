// A read-only sum and a large matrix product, timed like any other step.
#include "bench/measure/torch_roofline.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>
#include <sys/mman.h>

#include "bench/measure/warmup.h"
#include "bench/plan/modelled_work.h"
#include "engine/layers/onednn_linear.h"
#include "engine/runtime.h"
#include "engine/tensor.h"

namespace decodelab {
namespace {

using Clock = std::chrono::steady_clock;

/// Bytes that one task reads: there are many tasks for few threads, and each takes longer than it takes to hand out.
constexpr std::int64_t kPieceBytes = std::int64_t{256} << 10;
/// Large enough for every kernel to be at its best, small enough (some milliseconds on two cores) for a visit to hold
/// many.
constexpr std::int64_t kProductSize = 768;
constexpr double kProductFlops = 2.0 * kProductSize * kProductSize * kProductSize;
/// Untimed products before each timed one.
constexpr int kColdProducts = 4;
/// Timed products of each library, the first one not counted; the library with the fastest product is used.
constexpr int kTrials = 6;

std::int64_t nanoseconds_since(Clock::time_point start) {
  return std::chrono::nanoseconds(Clock::now() - start).count();
}

/// One buffer a process, kept until it ends; on huge pages where the system gives them.
class ReadBuffer {
 public:
  static ReadBuffer& shared() {
    static ReadBuffer buffer;
    return buffer;
  }

  const std::uint64_t* piece(std::int64_t index) const {
    return words_ + (index * kPieceBytes % kRooflineBufferBytes) / static_cast<std::int64_t>(sizeof(std::uint64_t));
  }
  std::int64_t advance(std::int64_t pieces) { return std::exchange(next_, next_ + pieces); }

 private:
  ReadBuffer() {
    void* const memory =
        mmap(nullptr, kRooflineBufferBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
      throw std::runtime_error(
          fmt::format("not enough memory for the {} MiB that roofline-read reads", kRooflineBufferBytes >> 20));
    }
    madvise(memory, kRooflineBufferBytes, MADV_HUGEPAGE);
    words_ = static_cast<std::uint64_t*>(memory);
    // Written once, so that every page is there and holds no zeros that the system could share.
    at::parallel_for(0, kRooflineBufferBytes / kPieceBytes, 1, [this](std::int64_t begin, std::int64_t end) {
      std::iota(words_ + begin * kPieceBytes / 8, words_ + end * kPieceBytes / 8, static_cast<std::uint64_t>(begin));
    });
  }

  std::uint64_t* words_;
  std::int64_t next_ = 0;
};

/// 32 independent sums, so that the loop waits for loads and not for additions.
__attribute__((target_clones("avx512f", "avx2", "default"))) std::uint64_t sum_of(const std::uint64_t* words,
                                                                                  std::int64_t count) {
  constexpr std::int64_t kSums = 32;
  std::uint64_t sums[kSums] = {};
  for (std::int64_t index = 0; index + kSums <= count; index += kSums) {
    for (std::int64_t lane = 0; lane < kSums; ++lane) {
      sums[lane] += words[index + lane];
    }
  }
  return std::accumulate(std::begin(sums), std::end(sums), std::uint64_t{0});
}

/// Receives the sums, so that the compiler cannot leave them out.
std::atomic<std::uint64_t> sink{0};

/// Most nanoseconds of all slices of a visit together. A product may take far longer than the step that it stands for,
/// and need not be repeated as often.
constexpr double kLongestVisitNs = 5e8;

at::ScalarType scalar_type(const std::string& dtype) {
  return dtype == "fp32" ? at::kFloat : dtype == "fp16" ? at::kHalf : at::kBFloat16;
}

/// A large product by the faster library, since a limit that another library exceeds is none: by libtorch itself (MKL's
/// fp32 leaves half of an AMD processor unused), or by oneDNN on weights in its own order.
class LargeProduct {
 public:
  LargeProduct(at::ScalarType type, const std::string& device) : device_(device) {
    const auto options = at::TensorOptions().dtype(at::kFloat).device(at::Device(device));
    a_ = at::rand({kProductSize, kProductSize}, options).to(type);
    b_ = at::rand({kProductSize, kProductSize}, options).to(type);
    product_ = at::empty({kProductSize, kProductSize}, options.dtype(type));
    best_ns_ = best_ns();
    packed_ = type == at::kHalf ? nullptr : OneDnnLinear::make(b_);
    if (const std::int64_t plain_ns = best_ns_; packed_ != nullptr) {
      best_ns_ = std::min(plain_ns, best_ns());
      packed_ = best_ns_ < plain_ns ? std::move(packed_) : nullptr;
    }
  }

  /// Returns the nanoseconds of the fastest product that the constructor saw.
  std::int64_t seen_ns() const { return best_ns_; }

  /// Returns the nanoseconds of a product whose matrices are in the caches, after untimed ones that bring them there.
  /// Where arms run in slices, others have filled the caches before each step: on AMX in bf16 the first product then
  /// took twice as long as one among many, the third 1.1 times, the fifth as long.
  std::int64_t multiply_ns() {
    for (int product = 0; product < kColdProducts; ++product) {
      multiply();
    }
    const auto start = Clock::now();
    multiply();
    return nanoseconds_since(start);
  }

 private:
  void multiply() {
    if (packed_ != nullptr) {
      product_ = packed_->forward(a_, {}, {});
    } else {
      at::mm_out(product_, a_, b_);
    }
    synchronize(device_);
  }

  std::int64_t best_ns() {
    multiply_ns();
    std::int64_t best = std::numeric_limits<std::int64_t>::max();
    for (int trial = 1; trial < kTrials; ++trial) {
      best = std::min(best, multiply_ns());
    }
    return best;
  }

  std::string device_;
  at::Tensor a_;
  at::Tensor b_;
  at::Tensor product_;
  std::unique_ptr<OneDnnLinear> packed_;  ///< Null where libtorch's own product is faster.
  std::int64_t best_ns_ = 0;
};

/// Returns the fastest product for numbers of a dtype. A CPU without arithmetic in 16-bit types multiplies them in
/// float32, as our own kernels do there; libtorch's 16-bit product was seen to take 17 times as long on AVX2.
std::unique_ptr<LargeProduct> fastest_product(const std::string& dtype, const std::string& device) {
  auto product = std::make_unique<LargeProduct>(scalar_type(dtype), device);
  if (device == "cpu" && dtype != "fp32") {
    auto wide = std::make_unique<LargeProduct>(at::kFloat, device);
    return wide->seen_ns() < product->seen_ns() ? std::move(wide) : std::move(product);
  }
  return product;
}

class RooflineWorker final : public Worker {
 public:
  RooflineWorker(bool reads, ModelConfig config) : reads_(reads), config_(std::move(config)) {}

  std::int64_t bytes_needed(const CellRecord&) const override { return reads_ ? kRooflineBufferBytes : 0; }
  OutputRule output_rule(const CellRecord&) const override { return OutputRule::none; }
  OutputTrace outputs(const CellRecord&, std::int64_t, const OutputTrace*) override { return {}; }

  Probe probe(const CellRecord& cell) override {
    step(cell);
    return {.peak_bytes = std::nullopt, .step_ns = step(cell)};
  }

  std::unique_ptr<OpenVisit> open_visit(const CellRecord& cell) override {
    return std::make_unique<RooflineVisit>(*this, cell);
  }

 private:
  class RooflineVisit final : public OpenVisit {
   public:
    RooflineVisit(const RooflineWorker& worker, const CellRecord& cell) : worker_(worker), cell_(cell) {
      Warmup warmup;
      while (!warmup.done()) {
        warmup.add(worker.step(cell));
      }
      times_.warmup_steps = warmup.steps();
      times_.quiet = warmup.quiet();
    }

    /// Times at least one step, and ends early after the slice's share of kLongestVisitNs.
    void time_slice(std::int64_t steps) override {
      const double longest = kLongestVisitNs * static_cast<double>(steps) / static_cast<double>(cell_.steps);
      const auto start = Clock::now();
      for (std::int64_t index = 0; index < steps; ++index) {
        if (index > 0 && std::chrono::duration<double, std::nano>(Clock::now() - start).count() > longest) {
          return;
        }
        times_.samples_ns.push_back(worker_.step(cell_));
        times_.wall_ns += times_.samples_ns.back();
      }
    }

    const VisitTimes& times() const override { return times_; }

   private:
    const RooflineWorker& worker_;
    const CellRecord& cell_;
    VisitTimes times_;
  };

  std::int64_t step(const CellRecord& cell) const {
    if (cell.phase != Phase::prefill && cell.phase != Phase::decode) {
      throw std::invalid_argument("a roofline is modelled for prefill and decode steps, not for whole completions");
    }
    if (reads_ && cell.device != "cpu") {
      throw std::invalid_argument("roofline-read reads the memory of a CPU; on a GPU there is none yet");
    }
    const ModelledWork work = modelled_work(config_, cell, 1);
    return reads_ ? read_memory_ns(work.weight_bytes + work.kv_bytes)
                  : multiply_ns(work.flops, cell.dtype, cell.device);
  }

  bool reads_;
  ModelConfig config_;
};

}  // namespace

std::int64_t read_memory_ns(std::int64_t bytes) {
  ReadBuffer& buffer = ReadBuffer::shared();
  const std::int64_t pieces = std::max<std::int64_t>(1, (bytes + kPieceBytes / 2) / kPieceBytes);
  const std::int64_t first = buffer.advance(pieces);
  const auto start = Clock::now();
  at::parallel_for(0, pieces, 1, [&](std::int64_t begin, std::int64_t end) {
    std::uint64_t sum = 0;
    for (std::int64_t piece = begin; piece < end; ++piece) {
      sum += sum_of(buffer.piece(first + piece), kPieceBytes / 8);
    }
    sink += sum;
  });
  const auto took = static_cast<double>(nanoseconds_since(start));
  // Whole pieces were read; the time is scaled to the bytes asked for.
  return std::max<std::int64_t>(
      1, std::llround(took * static_cast<double>(bytes) / static_cast<double>(pieces * kPieceBytes)));
}

std::int64_t multiply_ns(std::int64_t flops, const std::string& dtype, const std::string& device) {
  const c10::InferenceMode inference;
  static std::map<std::pair<std::string, std::string>, std::unique_ptr<LargeProduct>> products;
  std::unique_ptr<LargeProduct>& product = products[{dtype, device}];
  if (product == nullptr) {
    product = fastest_product(dtype, device);
  }
  const auto took = static_cast<double>(product->multiply_ns());
  return std::max<std::int64_t>(1, std::llround(took * static_cast<double>(flops) / kProductFlops));
}

std::unique_ptr<Worker> make_roofline_worker(const std::string& label, const ModelConfig& config) {
  if (label != kRooflineRead && label != kRooflineGemm) {
    throw std::invalid_argument(
        fmt::format("'{}' is no roofline; there are {} and {}", label, kRooflineRead, kRooflineGemm));
  }
  return std::make_unique<RooflineWorker>(label == kRooflineRead, config);
}

}  // namespace decodelab
