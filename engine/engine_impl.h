// The private parts of Model, FilledCache and Engine, for the engine's own files only.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/checkpoint/weights.h"
#include "engine/engine.h"
#include "engine/generation/step_runner.h"
#include "engine/layers/attention.h"
#include "engine/layers/kv_cache.h"
#include "engine/layers/lm_head_rows.h"
#include "engine/layers/prepared_weights.h"
#include "engine/layers/shared_pages.h"
#include "engine/layers/transformer.h"
#include "engine/layers/workspace.h"
#include "engine/ranks/rank_leader.h"
#include "engine/sampling/acceptance.h"
#include "engine/sampling/token_choice.h"
#include "engine/sampling/token_details.h"
#include "engine/sampling/token_text.h"
#include "engine/sampling/top_tokens.h"
#include "engine/tensor.h"

namespace decodelab {

struct Model::Impl {
  ModelConfig config;
  ElementType dtype;
  std::string device;
  std::shared_ptr<const Weights> weights;
  std::int64_t weight_bytes;
  std::shared_ptr<PreparedWeights> prepared;  ///< Shared by all engines of the model.
  std::filesystem::path directory;
  MemoryAtHand at_hand;
};

struct FilledCache::Impl {
  std::vector<at::Tensor> layers;  ///< [B, L, W] each; none where the plan shares pages.
  SharedPages pages{};             ///< Of one row.
  std::shared_ptr<const KeptByRanks> of_other_ranks{};
};

struct Engine::Impl {
  std::shared_ptr<const Model> whole;
  std::shared_ptr<const Model> model;  ///< Of this, what this rank holds.
  std::shared_ptr<RankLeader> leader;  ///< Null but on the first of several ranks.
  Ranks* ranks = nullptr;              ///< That, or a follower's; null: the model is whole.
  std::optional<RankPart> part;        ///< What this rank holds; empty: all.
  std::int64_t rank_threads = 0;       ///< Threads of the steps of each rank; 0: those that are set.
  std::unique_ptr<Transformer> transformer;
  std::unique_ptr<Attention> prefill_attention;
  std::unique_ptr<Attention> decode_attention;
  std::unique_ptr<Attention> verify_attention;
  PrefillLayout prefill_layout;
  KvCacheFactory make_cache;
  KvLayout kv_layout;
  KeyMultiple key_multiple;
  PrefixReuse prefix_reuse;
  ForkWay fork;
  BatchingRule batching;
  ProposerRule proposer;
  std::shared_ptr<const Engine> draft;  ///< Null unless the rule names a model.
  DraftMaker draft_apart;               ///< Empty unless that model is in a process of its own.
  DraftLengthFactory make_draft_length;
  WorkspaceFactory make_workspace;
  StepRunnerFactory make_runner;
  std::unique_ptr<LmHeadRows> lm_head_rows;
  std::map<std::string, std::int64_t> coded_bytes;
  TokenChoiceFactory make_token_choice;
  std::unique_ptr<Acceptance> acceptance;
  ReadBack read_back;
  RngFactory make_rng;
  TokenMaskFactory make_token_mask;
  std::unique_ptr<TokenDetailsPolicy> token_details;
  std::unique_ptr<TopTokens> top_tokens;
  TokenTextFactory make_token_text;

  /// Returns whether this is another rank than the first, which chooses no tokens and knows no logits.
  bool follows() const { return ranks != nullptr && leader == nullptr; }
  /// Makes the runner of one session's decode steps; it refers to this engine.
  std::unique_ptr<StepRunner> step_runner() const {
    return make_runner({.transformer = *transformer,
                        .attention = *decode_attention,
                        .verify_attention = *verify_attention,
                        .make_workspace = make_workspace,
                        .device = model->device()});
  }

  /// Makes a cache that follows the plan's growth rule. A cache of 0 rows takes no memory, and still knows the slots
  /// that the rule gives.
  std::unique_ptr<KvCache> cache(std::int64_t batch_size, std::int64_t max_tokens, std::int64_t spare_rows) const {
    const ModelConfig& config = model->config();
    return make_cache({.layers = config.layers,
                       .batch_size = batch_size,
                       .width = config.kv_width(),
                       .max_tokens = max_tokens,
                       .positions = config.positions,
                       .layout = kv_layout,
                       .key_multiple = key_multiple,
                       .spare_rows = spare_rows,
                       .dtype = model->dtype(),
                       .device = model->device()});
  }
};

}  // namespace decodelab
