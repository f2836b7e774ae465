// A GGUF file's own blocks in products, and its rows in place of a table: the values of the dequantized model within
// the rounding of activations, and the bytes that are held.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "engine/kernels/products/coded/coded_matrix.h"
#include "tests/variants/arms.h"
#include "tests/variants/stored_file.h"

namespace decodelab {
namespace {

struct StoredCase {
  GgufType type;
  GgufType values;
};
constexpr StoredCase kStoredCases[] = {{GgufType::q8_0, GgufType::q8_0}, {GgufType::q4_0, GgufType::q4_0},
                                       {GgufType::q4_1, GgufType::q4_1}, {GgufType::q4_0, GgufType::q8_0},
                                       {GgufType::q5_0, GgufType::q8_0}, {GgufType::q4_k, GgufType::q6_k}};

TEST(StoredLinear, GivesTheLogitsOfTheDequantizedModelWithinTheRoundingOfActivations) {
  for (const auto& [type, values] : kStoredCases) {
    for (const ElementType dtype : {ElementType::float32, ElementType::bfloat16}) {
      const auto model = Model::load(testing::stored_file(type, values), dtype, "cpu");
      const Engine reference = testing::engine_for("causal", model);
      const auto fed = generate(reference, {.prompts = testing::ragged_prompts(), .max_tokens = 9});
      const auto expected = testing::forced_logits(reference, fed, 8);
      for (const std::string arm : {"causal,+stored-linear", "native,-packed-linear,+stored-linear",
                                    "native,-packed-linear,+mapped-embedding,+stored-linear"}) {
        ASSERT_EQ(unsupported_reason(parse_arm(arm), {.config = model->config(), .dtype = dtype, .device = "cpu"}), "");
        const auto got = testing::forced_logits(testing::engine_for(arm, model), fed, 8);
        for (std::size_t step = 0; step < expected.size(); ++step) {
          EXPECT_LT(testing::relative_difference(got[step], expected[step]), 0.1)
              << gguf_type_name(type) << ", " << arm << ", step " << step;
        }
      }
    }
  }
}

TEST(StoredLinear, HoldsTheBytesOfTheBlocksAndNoTable) {
  for (const auto& [type, values] : kStoredCases) {
    const auto model = Model::load(testing::stored_file(type, values), ElementType::float32, "cpu");
    const Engine engine = testing::engine_for("native,-packed-linear,+mapped-embedding,+stored-linear", model);
    const auto bytes_of = [](GgufType of, std::uint64_t columns, std::uint64_t rows) {
      // 8 bits of Q8_0 take as much as in the file; outputs are filled up to 16. Q5_0 is held in 8 bits.
      const GgufType held = of == GgufType::q5_0 ? GgufType::q8_0 : of;
      const GgufEncoding& encoding = *find_gguf_encoding(held);
      const std::uint64_t weights = (rows + 15) / 16 * 16 * columns;
      return static_cast<std::int64_t>(weights) / encoding.block_elements * encoding.block_bytes;
    };
    const auto [wide, inner, layers, tokens] = testing::small_stored_shape(type);
    const auto& held = engine.coded_bytes();
    EXPECT_EQ(held.at("embedding.weight"), bytes_of(GgufType::q8_0, wide, tokens));
    EXPECT_EQ(held.at("layers.1.down.weight"), bytes_of(type, inner, wide));
    EXPECT_EQ(held.at("layers.0.up.weight"), bytes_of(type, wide, 2 * inner));
    EXPECT_EQ(held.at("layers.0.qkv.weight"), bytes_of(type, wide, wide + wide / 2) + bytes_of(values, wide, wide / 2));
  }
}

TEST(StoredLinear, IsRefusedWhereTheFileHoldsNoBlocks) {
  const auto model = testing::small_model(testing::small_llama_config());
  EXPECT_NE(unsupported_reason(parse_arm("causal,+stored-linear"),
                               {.config = model->config(), .dtype = ElementType::float32, .device = "cpu"})
                .find("holds no matrix in blocks"),
            std::string::npos);
}

TEST(MappedEmbedding, GivesTheBitsOfTheTable) {
  for (const ElementType dtype : {ElementType::float32, ElementType::bfloat16}) {
    for (const auto& model : {Model::load(testing::stored_file(GgufType::q8_0, GgufType::q8_0), dtype, "cpu"),
                              testing::small_model(testing::small_llama_config(), dtype),
                              testing::small_model(testing::small_config(), dtype)}) {
      const auto expected =
          generate(testing::engine_for("causal", model),
                   {.prompts = testing::ragged_prompts(), .max_tokens = 5, .keep_prefill_logits = true});
      const auto got = generate(testing::engine_for("causal,+mapped-embedding", model),
                                {.prompts = testing::ragged_prompts(), .max_tokens = 5, .keep_prefill_logits = true});
      for (std::size_t row = 0; row < expected.size(); ++row) {
        EXPECT_EQ(got[row].token_ids, expected[row].token_ids);
        EXPECT_EQ(got[row].prefill_logits, expected[row].prefill_logits);
      }
    }
  }
}

}  // namespace
}  // namespace decodelab
