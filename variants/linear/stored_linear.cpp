// Products by the blocks that a GGUF file holds.
#include <algorithm>
#include <optional>

#include "engine/layers/prepared_weights.h"
#include "engine/layers/stored_codes.h"
#include "engine/tensor.h"
#include "variants/linear/coded_linear.h"

namespace decodelab {
namespace {

/// Puts the blocks of rows in the order that products read.
std::shared_ptr<const CodedMatrix> ordered_matrix(const std::string& name, const std::vector<StoredBlocks>& parts,
                                                  bool gated, PreparedWeights& prepared) {
  const GgufType type = parts.front().type();
  const WeightCode code = *code_of(type);
  std::int64_t outputs = 0;
  for (const StoredBlocks& part : parts) {
    outputs += part.rows();
  }
  const std::int64_t inputs = parts.front().columns();
  const auto bytes = static_cast<std::size_t>(CodedMatrix::bytes_of(outputs, inputs, code, gated));
  return prepared.prepare<CodedMatrix>((gated ? "stored gated " : "stored ") + name, bytes, [&] {
    auto matrix = std::make_unique<CodedMatrix>(outputs, inputs, code, gated);
    at::parallel_for(0, matrix->panels(), 1, [&](std::int64_t first, std::int64_t last) {
      const auto group_of = [&](std::int64_t row, std::int64_t group) {
        auto part = parts.begin();
        while (row >= part->rows()) {
          row -= part->rows();
          ++part;
        }
        return coded_block(type, part->row(row), group);
      };
      matrix->fill(group_of, first, last);
    });
    for (const StoredBlocks& part : parts) {
      part.release();
    }
    return matrix;
  });
}

std::unique_ptr<Linear> make_stored_linear(const LinearWeights& weights, PreparedWeights& prepared) {
  std::vector<std::shared_ptr<const CodedMatrix>> matrices;
  bool of_one_type = true;
  for (const StoredBlocks& part : weights.blocks) {
    if (!code_of(part.type())) {
      return make_plain_linear(weights, prepared);
    }
    of_one_type = of_one_type && part.type() == weights.blocks.front().type();
  }
  if (weights.blocks.empty()) {
    return make_plain_linear(weights, prepared);
  }
  if (of_one_type) {
    matrices.push_back(ordered_matrix(weights.name, weights.blocks, weights.gated, prepared));
  } else {
    for (std::size_t part = 0; part < weights.blocks.size(); ++part) {
      matrices.push_back(
          ordered_matrix(weights.name + " " + std::to_string(part), {weights.blocks[part]}, false, prepared));
    }
  }
  return make_coded_linear(weights, std::move(matrices));
}

bool has_code(GgufType type) { return code_of(type).has_value(); }

/// Matrices of other types are multiplied by libtorch.
std::vector<Expectation> expects(const CountedSteps& counted, const Parameters& parameters) {
  return std::ranges::all_of(counted.config.stored_types, has_code) ? coded_linear_expects(counted, parameters)
                                                                    : std::vector<Expectation>{};
}

void apply(EnginePlan& plan, const Parameters&) { plan.linear.bind("stored-linear", make_stored_linear); }

std::string unsupported(const RunsOn& where) {
  if (std::ranges::none_of(where.config.stored_types, has_code)) {
    return "the model's file holds no matrix in blocks of Q8_0, Q5_0, Q4_0, Q4_1, Q4_K or Q6_K; int8-linear and "
           "int4-linear round "
           "other weights";
  }
  return coded_linear_unsupported(where);
}

[[maybe_unused]] const bool registered = register_variant({
    .name = "stored-linear",
    .summary = "Multiplies by the blocks of 8 or 4 bits that a GGUF file holds, and rounds activations to 8 bits.",
    .source = "ggml (github.com/ggml-org/llama.cpp): vec_dot_q8_0_q8_0, vec_dot_q4_1_q8_1 and its repacked matrices",
    .parameters = {},
    .expects = expects,
    .unsupported = unsupported,
    .apply = apply,
    .fidelity = {.logit_bound = 0.2},
});

}  // namespace
}  // namespace decodelab
