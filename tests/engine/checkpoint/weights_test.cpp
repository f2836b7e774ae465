// What a checkpoint may look like, and what is refused with a sentence.
#include "engine/checkpoint/weights.h"

#include <gtest/gtest.h>

#include "engine/tensor.h"
#include "tests/engine/test_model.h"

namespace decodelab {
namespace {

using testing::small_config;
using testing::TemporaryFolder;

/// A checkpoint that a test can bend before it is written.
class Checkpoint {
 public:
  explicit Checkpoint(ModelConfig of = small_config()) : config(std::move(of)) {
    for (const WeightSpec& spec : weight_specs(config)) {
      add(spec.name, spec.shape);
    }
  }
  void add(const std::string& name, std::vector<std::int64_t> shape, float value = -1) {
    std::int64_t count = 1;
    for (const std::int64_t size : shape) {
      count *= size;
    }
    std::vector<float> data(static_cast<std::size_t>(count), value);
    if (value == -1) {
      fill_synthetic(data, 1, name, 0, 0, 1);
    }
    tensors[name] = {std::move(shape), std::move(data)};
  }
  Weights load(ElementType dtype = ElementType::float32, const LoadProgress& progress = {},
               const MemoryAtHand& at_hand = {}) const {
    std::vector<TensorToWrite> list;
    for (const auto& [name, tensor] : tensors) {
      list.push_back({.name = name,
                      .type = ElementType::float32,
                      .shape = tensor.first,
                      .data = std::as_bytes(std::span<const float>(tensor.second))});
    }
    const TemporaryFolder folder;
    write_safetensors(folder.path() / "model.safetensors", list);
    return Weights::load(folder.path(), config, dtype, "cpu", progress, at_hand);
  }
  std::string refusal() const {
    try {
      load();
    } catch (const std::invalid_argument& error) {
      return error.what();
    }
    return "it was accepted";
  }

  ModelConfig config;
  std::map<std::string, std::pair<std::vector<std::int64_t>, std::vector<float>>> tensors;
};

TEST(Weights, OutliveTheirFileAndKeepItsNumbers) {
  const Checkpoint checkpoint;
  const Weights weights = checkpoint.load();
  const at::Tensor& loaded = weights.at("embedding.weight");
  const auto& [shape, data] = checkpoint.tensors.at("transformer.wte.weight");
  EXPECT_EQ(loaded.sizes().vec(), shape);
  EXPECT_TRUE(at::equal(loaded.flatten(), at::tensor(data)));
  EXPECT_EQ(weights.bytes(), parameter_count(checkpoint.config) * 4);
}

TEST(Weights, AreConvertedToTheDtypeThatIsAskedFor) {
  const Checkpoint checkpoint;
  for (const auto& [dtype, scalar] :
       {std::pair{ElementType::bfloat16, at::kBFloat16}, std::pair{ElementType::float16, at::kHalf}}) {
    const Weights weights = checkpoint.load(dtype);
    const at::Tensor expected = at::tensor(checkpoint.tensors.at("transformer.wpe.weight").second).to(scalar);
    EXPECT_TRUE(at::equal(weights.at("positions.weight").flatten(), expected));
  }
}

TEST(Weights, StayInTheirFileUntilTheyAreAskedFor) {
  const Checkpoint checkpoint;
  std::int64_t at_hand = 0;
  const Weights weights = checkpoint.load(ElementType::float32, {}, [&] { return at_hand; });
  EXPECT_EQ(weights.loading_ns(), 0);
  const at::Tensor source = weights.read("embedding.weight");
  EXPECT_TRUE(at::equal(source.flatten(), at::tensor(checkpoint.tensors.at("transformer.wte.weight").second)));
  EXPECT_EQ(weights.loading_ns(), 0) << "what the file holds is read where it lies";
  EXPECT_THROW(weights.at("embedding.weight"), NotEnoughMemory);
  at_hand = 1 << 30;
  const at::Tensor& loaded = weights.at("embedding.weight");
  EXPECT_TRUE(at::equal(loaded, source));
  EXPECT_NE(loaded.const_data_ptr(), source.const_data_ptr());
  EXPECT_GT(weights.loading_ns(), 0);
  EXPECT_EQ(&weights.at("embedding.weight"), &loaded) << "once";
  EXPECT_THROW(weights.at("nothing"), std::logic_error);
  EXPECT_THROW(weights.read("nothing"), std::logic_error);
}

TEST(Weights, OfAnotherDtypeAreMadeToBeReadOnceAndThenTakenFromMemory) {
  const Checkpoint checkpoint;
  const Weights weights = checkpoint.load(ElementType::bfloat16);
  const at::Tensor made = weights.read("positions.weight");
  EXPECT_EQ(weights.loading_ns(), 0);
  const at::Tensor& loaded = weights.at("positions.weight");
  EXPECT_TRUE(at::equal(made, loaded));
  EXPECT_EQ(weights.read("positions.weight").const_data_ptr(), loaded.const_data_ptr());
}

TEST(Weights, OfManyHeadsHaveAllQueriesFirstThenAllKeysThenAllValues) {
  Checkpoint checkpoint(small_config(/*multi_query=*/false));
  const Weights weights = checkpoint.load();
  const std::int64_t k = checkpoint.config.head_dim;
  for (const char* part : {"weight", "bias"}) {
    const auto& [shape, data] = checkpoint.tensors.at(std::string("transformer.h.1.attn.c_attn.") + part);
    const at::Tensor stored = at::tensor(data).view(shape);
    const at::Tensor& ours = weights.at(std::string("layers.1.qkv.") + part);
    for (std::int64_t head = 0; head < checkpoint.config.heads; ++head) {
      for (std::int64_t kind = 0; kind < 3; ++kind) {
        EXPECT_TRUE(at::equal(ours.narrow(0, (kind * checkpoint.config.heads + head) * k, k),
                              stored.narrow(0, (head * 3 + kind) * k, k)))
            << part << " of head " << head;
      }
    }
    EXPECT_TRUE(
        at::equal(weights.read(std::string("layers.0.qkv.") + part), weights.at(std::string("layers.0.qkv.") + part)));
  }
}

TEST(Weights, AreAllReadAtOnceWhereSomebodyWatches) {
  const Checkpoint checkpoint;
  std::int64_t done = 0;
  const Weights weights = checkpoint.load(ElementType::float32, [&](std::int64_t bytes, std::int64_t total) {
    EXPECT_EQ(total, parameter_count(checkpoint.config) * 4);
    EXPECT_GT(bytes, done);
    done = bytes;
  });
  EXPECT_EQ(done, weights.bytes());
}

TEST(Weights, MayLackTheTransformerPrefix) {
  Checkpoint checkpoint;
  auto renamed = checkpoint.tensors;
  renamed.clear();
  for (auto& [name, tensor] : checkpoint.tensors) {
    renamed[name.substr(std::string("transformer.").size())] = tensor;
  }
  const Weights before = checkpoint.load();
  checkpoint.tensors = renamed;
  EXPECT_TRUE(at::equal(checkpoint.load().at("final_norm.bias"), before.at("final_norm.bias")));
}

TEST(Weights, PassOverMaskBuffers) {
  Checkpoint checkpoint;
  checkpoint.add("transformer.h.0.attn.bias", {1, 1, 4, 4});
  checkpoint.add("transformer.h.0.attn.masked_bias", {1});
  EXPECT_NO_THROW(checkpoint.load());
}

TEST(Weights, AcceptAHeadThatRepeatsTheEmbeddingAndRefuseOneThatDoesNot) {
  Checkpoint checkpoint;
  checkpoint.tensors["lm_head.weight"] = checkpoint.tensors.at("transformer.wte.weight");
  EXPECT_NO_THROW(checkpoint.load());
  checkpoint.tensors["lm_head.weight"].second[5] += 1;
  EXPECT_NE(checkpoint.refusal().find("ties them"), std::string::npos) << checkpoint.refusal();
}

TEST(Weights, NameWhatIsMissingAndWhatIsUnknown) {
  Checkpoint checkpoint;
  checkpoint.tensors.erase("transformer.h.1.mlp.c_fc.bias");
  checkpoint.add("transformer.h.2.ln_1.weight", {48});
  const std::string refusal = checkpoint.refusal();
  EXPECT_NE(refusal.find("1 missing: transformer.h.1.mlp.c_fc.bias"), std::string::npos) << refusal;
  EXPECT_NE(refusal.find("1 unknown: transformer.h.2.ln_1.weight"), std::string::npos) << refusal;
}

TEST(Weights, RefuseAWrongShapeWithBothShapes) {
  Checkpoint checkpoint;
  checkpoint.add("transformer.h.0.attn.c_attn.weight", {48, 72});
  const std::string refusal = checkpoint.refusal();
  EXPECT_NE(refusal.find("shape [48, 72]"), std::string::npos) << refusal;
  EXPECT_NE(refusal.find("asks for [72, 48]"), std::string::npos) << refusal;
}

}  // namespace
}  // namespace decodelab
