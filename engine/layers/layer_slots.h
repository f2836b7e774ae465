// The slots of a plan that layers are built from: settings, and factories of implementations.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace decodelab {

struct AttentionShape;
struct EmbeddingWeights;
struct KvCacheOptions;
struct LinearWeights;
struct MlpWeights;
struct NormWeights;
struct RotaryWeights;
class Attention;
class Embedding;
class KvCache;
class Linear;
class LmHeadRows;
class Mlp;
class PreparedWeights;
class Ranks;
class ResidualNorm;
class Rotary;
class Softmax;
class Workspace;

/// Says how the prompts of a batch go through the layers: as rows padded to the longest prompt (the reference), or
/// concatenated without padding, so that matrix products see real tokens only (SantaCoder study: its `flash` build).
/// Attention and cache see padded rows either way.
enum class PrefillLayout : std::uint8_t { padded, packed };

/// Says how keys and values of a layer lie in memory: in a tensor each (the reference), or side by side in one, so that
/// a step writes once (SantaCoder study, step 3: a row of the merged tensor is a key and its value).
enum class KvLayout : std::uint8_t { split, merged };

/// The number of keys that a decode step passes to attention is rounded up to a multiple of this; keys past a row's
/// length are zero, and hidden by its mask. 1, the reference, adds none. Multiples of 8 take the aligned 16-bit matrix
/// kernels (SantaCoder study, step 3).
using KeyMultiple = std::int64_t;

using SoftmaxFactory = std::function<std::unique_ptr<Softmax>()>;
using AttentionFactory = std::function<std::unique_ptr<Attention>(const AttentionShape&, const SoftmaxFactory&)>;
using KvCacheFactory = std::function<std::unique_ptr<KvCache>(const KvCacheOptions&)>;
using EmbeddingFactory = std::function<std::unique_ptr<Embedding>(const EmbeddingWeights&)>;
using LinearFactory = std::function<std::unique_ptr<Linear>(const LinearWeights&, PreparedWeights&)>;
using MlpFactory = std::function<std::unique_ptr<Mlp>(const MlpWeights&, const LinearFactory&, PreparedWeights&)>;
using RotaryFactory = std::function<std::unique_ptr<Rotary>(const RotaryWeights&)>;
using ResidualNormFactory = std::function<std::unique_ptr<ResidualNorm>(const NormWeights&)>;
/// The engine calls it once per session, with the most positions that the model has, and a device.
using WorkspaceFactory = std::function<std::unique_ptr<Workspace>(std::int64_t positions, const std::string&)>;
using LmHeadRowsFactory = std::function<std::unique_ptr<LmHeadRows>()>;

/// Holds the factories that a model family builds its layers from.
struct LayerSlots {
  EmbeddingFactory embedding;
  LinearFactory linear;
  MlpFactory mlp;
  ResidualNormFactory residual_norm;
  RotaryFactory rotary;
  Ranks* ranks = nullptr;  ///< Those that share the model, which outlive the layers; null: it is whole.
};

}  // namespace decodelab
