// Products with the weights of SantaCoder's layers and head, of few rows and of prompts, by each `linear` variant:
// bytes of weights a second, as they are held, and multiplications a second.
#include "engine/layers/linear.h"

#include "bench/micro/slot_plans.h"
#include "engine/kernels/scalar_type.h"
#include "engine/layers/prepared_weights.h"
#include "engine/layers/workspace.h"

namespace decodelab {
namespace {

struct Product {
  const char* name;
  std::int64_t outputs;
  std::int64_t inputs;
};
constexpr Product kProducts[] = {
    {"qkv", 2304, 2048}, {"projection", 2048, 2048}, {"up", 8192, 2048}, {"down", 2048, 8192}, {"head", 49280, 2048}};

/// Argument: rows. Weights of so many products that no cache holds them, one after the other, as a step reads them.
void run_linear(benchmark::State& state, const LinearFactory& factory, const Product& product, at::ScalarType dtype) {
  const c10::InferenceMode inference;
  constexpr std::int64_t kWeightBytes = 512 << 20;
  const at::TensorOptions options = at::TensorOptions(dtype);
  const std::int64_t elements = product.outputs * product.inputs;
  const std::int64_t bytes = elements * static_cast<std::int64_t>(at::elementSize(dtype));
  const std::int64_t count = std::max<std::int64_t>(1, kWeightBytes / bytes);
  PreparedWeights prepared;
  PlainWorkspace workspace;
  std::vector<at::Tensor> weights;
  weights.reserve(static_cast<std::size_t>(count));  // Products refer to them.
  std::vector<std::unique_ptr<Linear>> products;
  for (std::int64_t index = 0; index < count; ++index) {
    weights.push_back(at::randn({product.outputs, product.inputs}, options));
    products.push_back(
        factory({.name = std::to_string(index),
                 .outputs = product.outputs,
                 .inputs = product.inputs,
                 .dtype = element_type(dtype),
                 .bias = nullptr,
                 .read = [&weights, place = weights.size() - 1] { return weights[place]; },
                 .load = [&weights, place = weights.size() - 1]() -> const at::Tensor& { return weights[place]; }},
                prepared));
  }
  const at::Tensor x = at::randn({state.range(0), 1, product.inputs}, options);
  std::size_t next = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(products[next]->forward(x, workspace));
    next = (next + 1) % products.size();
  }
  const std::int64_t coded = products.front()->coded_bytes();
  state.SetBytesProcessed(state.iterations() * (coded > 0 ? coded : bytes));
  state.counters["multiplications"] = benchmark::Counter(
      static_cast<double>(state.iterations() * elements * state.range(0)), benchmark::Counter::kIsRate);
}

void register_all() {
  for (const auto& [name, plan] : plans_of_slot("linear")) {
    for (const Product& product : kProducts) {
      for (const auto& [dtype_name, dtype] : {std::pair("fp32", at::kFloat), std::pair("bf16", at::kBFloat16)}) {
        benchmark::RegisterBenchmark((std::string("linear/") + name + "/" + product.name + "/" + dtype_name).c_str(),
                                     [factory = plan.linear.factory(), product, dtype = dtype](
                                         benchmark::State& state) { run_linear(state, factory, product, dtype); })
            ->ArgName("rows")
            ->Arg(1)
            ->Arg(2)
            ->Arg(4)
            ->Arg(6)
            ->Arg(8)
            ->Arg(32)
            ->Arg(128)
            ->Arg(512)
            ->UseRealTime();
      }
    }
  }
}

}  // namespace
}  // namespace decodelab

int main(int argc, char** argv) { return decodelab::run_benchmarks(argc, argv, decodelab::register_all); }
