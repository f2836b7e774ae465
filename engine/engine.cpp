// Loads a model, builds a plan's implementations, and knows what a step will need.
#include "engine/engine.h"

#include <algorithm>
#include <stdexcept>

#include <fmt/format.h>

#include "engine/checkpoint/packed_files.h"
#include "engine/checkpoint/rank_part.h"
#include "engine/checkpoint/synthetic_cache.h"
#include "engine/checkpoint/weights.h"
#include "engine/drafts.h"
#include "engine/engine_impl.h"
#include "engine/layers/layer_slots.h"
#include "engine/layers/linear.h"
#include "engine/rank_follower.h"
#include "engine/ranks/rank_thread.h"
#include "engine/runtime.h"
#include "engine/tensor.h"

namespace decodelab {
namespace {

/// Returns null where there is no cache directory: all weights are then packed anew.
std::unique_ptr<PackedFiles> packed_files(const std::filesystem::path& checkpoint, const RankPart& part = {}) {
  try {
    return std::make_unique<PackedFiles>(checkpoint, default_cache_directory(),
                                         part.whole() ? "" : fmt::format("rank {} of {} ", part.rank, part.ranks));
  } catch (const std::invalid_argument&) {
    return nullptr;
  }
}

/// Returns what a model knows of its weights, all of them or a rank's part; `config` is of what they are.
std::unique_ptr<Model::Impl> model_of(const std::filesystem::path& directory, const ModelConfig& config,
                                      Weights weights, const std::string& device, const MemoryAtHand& at_hand,
                                      const RankPart& part = {}) {
  const std::int64_t bytes = weights.bytes();
  const ElementType dtype = weights.dtype();
  return std::make_unique<Model::Impl>(
      Model::Impl{.config = config,
                  .dtype = dtype,
                  .device = device,
                  .weights = std::make_shared<const Weights>(std::move(weights)),
                  .weight_bytes = bytes,
                  .prepared = std::make_shared<PreparedWeights>(at_hand, packed_files(directory, part)),
                  .directory = directory,
                  .at_hand = at_hand});
}

/// Returns the engine that makes the guesses of a plan: its own plan on another model. Null where no model guesses.
std::shared_ptr<const Engine> draft_engine(const std::shared_ptr<const Model>& model, const EnginePlan& plan,
                                           const Drafts& drafts, const RankLauncher& launch) {
  const ProposerRule& rule = plan.proposer.value();
  if ((!rule.draft && rule.first_layers == 0) || rule.apart) {
    return nullptr;
  }
  const std::shared_ptr<const Model> guesses = rule.first_layers > 0       ? model->first_layers(rule.first_layers)
                                               : *rule.draft == kSelfDraft ? model
                                                                           : draft_named(*rule.draft, drafts).model();
  check_draft(model->config(), guesses->config());
  EnginePlan plain = plan;
  plain.proposer = Slot<ProposerRule>(plan.proposer.name());
  if (!rule.shared) {
    plain.communicator = Slot<CommunicatorRule>(plan.communicator.name());  // It is whole on the rank that chooses.
    return std::make_shared<const Engine>(guesses, plain);
  }
  const auto of_draft = [launch, draft = rule.draft.value_or(kSelfDraft), layers = rule.first_layers](RankStart start) {
    start.draft = draft;
    start.first_layers = layers;
    return launch(start);
  };
  return std::make_shared<const Engine>(guesses, plain, Drafts(), launch ? RankLauncher(of_draft) : RankLauncher());
}

/// Returns what guesses in another process; empty where the plan has nobody there.
DraftMaker draft_apart(const ModelConfig& config, const EnginePlan& plan, const Drafts& drafts) {
  const ProposerRule& rule = plan.proposer.value();
  if (!rule.apart) {
    return {};
  }
  const Draft& draft = draft_named(*rule.draft, drafts);
  check_draft(config, draft.config);
  if (!draft.apart) {
    throw std::invalid_argument("the draft is in no process of its own, which the program decodelab would start");
  }
  return draft.apart;
}

}  // namespace

Draft::Draft(std::shared_ptr<const Model> loaded)
    : config(loaded->config()), model([loaded = std::move(loaded)] { return loaded; }) {}
Draft::Draft(ModelConfig its_config, std::function<std::shared_ptr<const Model>()> get_model, DraftMaker its_process)
    : config(std::move(its_config)), model(std::move(get_model)), apart(std::move(its_process)) {}

Model::Model(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Model::~Model() = default;

std::shared_ptr<const Model> Model::load(const std::filesystem::path& directory, ElementType dtype,
                                         const std::string& device, const MemoryAtHand& at_hand,
                                         const std::function<void(std::int64_t, std::int64_t)>& progress) {
  const ModelConfig config = load_model_config(directory);
  require_memory(decodelab::weight_bytes(config, dtype), at_hand, "the model's weights");
  Weights weights = Weights::load(directory, config, dtype, device, progress, at_hand);
  return std::shared_ptr<const Model>(new Model(model_of(directory, config, std::move(weights), device, at_hand)));
}

std::shared_ptr<const Model> Model::open(const std::filesystem::path& directory, ElementType dtype,
                                         const std::string& device, const MemoryAtHand& at_hand) {
  const ModelConfig config = load_model_config(directory);
  Weights weights = Weights::open(directory, config, dtype, device, at_hand);
  return std::shared_ptr<const Model>(new Model(model_of(directory, config, std::move(weights), device, at_hand)));
}

std::shared_ptr<const Model> Model::first_layers(std::int64_t layers) const {
  if (layers < 1 || layers > config().layers) {
    throw std::invalid_argument(
        fmt::format("the first {} layers of a model that has {} are not there", layers, config().layers));
  }
  auto impl = std::make_unique<Impl>(*impl_);
  impl->config.layers = layers;
  if (!impl->config.recipes.empty()) {
    impl->config.recipes.resize(static_cast<std::size_t>(layers));
  }
  return std::shared_ptr<const Model>(new Model(std::move(impl)));
}

std::shared_ptr<const Model> Model::part(const RankPart& part) const {
  Weights weights = impl_->weights->part(config(), part);
  require_memory(weights.bytes(), impl_->at_hand, "what a rank holds of the model's weights");
  return std::shared_ptr<const Model>(new Model(model_of(impl_->directory, part_config(config(), part),
                                                         std::move(weights), impl_->device, impl_->at_hand, part)));
}

void check_checkpoint(const std::filesystem::path& directory) {
  Weights::check(directory, load_model_config(directory));
}

const ModelConfig& Model::config() const { return impl_->config; }
ElementType Model::dtype() const { return impl_->dtype; }
const std::string& Model::device() const { return impl_->device; }
std::int64_t Model::weight_bytes() const { return impl_->weight_bytes; }
std::int64_t Model::loading_ns() const { return impl_->weights->loading_ns(); }
std::int64_t Model::packing_ns() const { return impl_->prepared->packing_ns(); }

Engine::Engine(std::shared_ptr<const Model> model, const EnginePlan& plan, const Drafts& drafts,
               const RankLauncher& launch)
    : Engine(std::move(model), plan, drafts, launch, [&](Impl& impl) {
        if (const CommunicatorRule& rule = plan.communicator.value(); rule.ranks > 1) {
          lead(impl, rule, plan, launch);
        }
      }) {}

void Engine::lead(Impl& impl, const CommunicatorRule& rule, const EnginePlan& plan, const RankLauncher& launch) {
  impl.part = RankPart{.rank = 0, .ranks = rule.ranks};
  impl.model = impl.whole->part(*impl.part);
  impl.rank_threads = std::max<std::int64_t>(1, threads() / rule.ranks);
  const auto in_thread = [whole = impl.whole, plan, threads = impl.rank_threads](
                             const RankMemory& memory, std::int64_t rank) -> std::unique_ptr<RankElsewhere> {
    return std::make_unique<RankThread>(memory, rank, [whole, plan, threads](RankMemory& own) {
      set_threads(threads);
      run_rank(whole, plan, own);
    });
  };
  const auto in_process = [launch, threads = impl.rank_threads,
                           own_device = rule.exchange == RanksExchange::between_devices](const RankMemory& memory,
                                                                                         std::int64_t rank) {
    return launch({.rank = rank,
                   .ranks = memory.ranks(),
                   .threads = threads,
                   .own_device = own_device,
                   .memory_descriptor = memory.descriptor()});
  };
  if (rule.run == RanksRun::processes && !launch) {
    throw std::invalid_argument(
        "the other ranks are in processes of their own, which the program decodelab would start");
  }
  impl.leader = std::make_shared<RankLeader>(
      impl.whole->config(), rule, rule.run == RanksRun::processes ? StartRank(in_process) : StartRank(in_thread));
  impl.ranks = impl.leader.get();
}

void Engine::run_rank(const std::shared_ptr<const Model>& model, const EnginePlan& plan, RankMemory& memory) {
  RankFollower follower(memory, model->config(), plan.communicator.value());
  EnginePlan plain = plan;
  plain.proposer = Slot<ProposerRule>(plan.proposer.name());  // The first rank alone guesses and chooses.
  const Engine engine(model, plain, {}, {}, [&](Impl& impl) {
    impl.part = RankPart{.rank = memory.rank(), .ranks = memory.ranks()};
    impl.model = model->part(*impl.part);
    impl.ranks = &follower;
  });
  follower.serve(engine);
}

Engine::Engine(std::shared_ptr<const Model> model, const EnginePlan& plan, const Drafts& drafts,
               const RankLauncher& launch, const std::function<void(Impl&)>& share)
    : impl_(std::make_unique<Impl>()) {
  impl_->whole = impl_->model = std::move(model);
  share(*impl_);
  const ModelConfig& config = impl_->model->config();
  const Model::Impl& parts = impl_->model->impl();
  const std::int64_t ranks = plan.communicator.value().ranks;
  const auto linear = [make = plan.linear.factory(), &coded = impl_->coded_bytes, ranks](const LinearWeights& weights,
                                                                                         PreparedWeights& prepared) {
    std::unique_ptr<Linear> made = make(weights, prepared);
    if (const std::int64_t bytes = made->coded_bytes(); bytes > 0) {
      coded[weights.name + ".weight"] = ranks * bytes;  // Each holds as much.
    }
    return made;
  };
  impl_->transformer = make_transformer(config, *parts.weights,
                                        {.embedding = plan.embedding.factory(),
                                         .linear = linear,
                                         .mlp = plan.mlp.factory(),
                                         .residual_norm = plan.residual_norm.factory(),
                                         .rotary = plan.rotary.factory(),
                                         .ranks = impl_->ranks},
                                        *parts.prepared);
  impl_->prefill_layout = plan.prefill_layout.value();
  impl_->prefill_attention = plan.prefill_attention.factory()(attention_shape(config), plan.softmax.factory());
  impl_->decode_attention = plan.decode_attention.factory()(attention_shape(config), plan.softmax.factory());
  impl_->verify_attention = plan.verify_attention.factory()(attention_shape(config), plan.softmax.factory());
  impl_->make_cache = plan.kv_growth.factory();
  impl_->kv_layout = plan.kv_layout.value();
  impl_->key_multiple = plan.key_padding.value();
  impl_->prefix_reuse = plan.prefix_reuse.value();
  impl_->fork = plan.fork.value();
  impl_->batching = plan.batching.value();
  impl_->proposer = plan.proposer.value();
  impl_->draft = draft_engine(impl_->whole, plan, drafts, launch);
  impl_->draft_apart = draft_apart(impl_->whole->config(), plan, drafts);
  impl_->make_draft_length = plan.draft_length.factory();
  impl_->read_back = plan.read_back.value();
  impl_->make_workspace = plan.workspace.factory();
  impl_->make_runner = plan.step_runner.factory();
  impl_->lm_head_rows = plan.lm_head_rows.factory()();
  impl_->make_token_choice = plan.token_choice.factory();
  impl_->acceptance = plan.acceptance.factory()();
  impl_->make_rng = plan.rng.factory();
  impl_->make_token_mask = plan.token_mask.factory();
  impl_->token_details = plan.token_details.factory()();
  impl_->top_tokens = plan.top_tokens.factory()();
  impl_->make_token_text = plan.token_text.factory();
}
Engine::~Engine() = default;

const Model& Engine::model() const { return *impl_->whole; }
const std::map<std::string, std::int64_t>& Engine::coded_bytes() const { return impl_->coded_bytes; }
PrefixReuse Engine::prefix_reuse() const { return impl_->prefix_reuse; }
std::shared_ptr<PatternMasks> Engine::pattern_masks(std::shared_ptr<const MaskVocabulary> vocabulary) const {
  return std::make_shared<PatternMasks>(impl_->make_token_mask, std::move(vocabulary));
}
bool Engine::forks() const { return impl_->fork != ForkWay::prefill_each; }
std::int64_t Engine::ranks() const { return impl_->part ? impl_->part->ranks : 1; }
void Engine::record_ranks() const {
  if (impl_->leader != nullptr) {
    impl_->leader->record();
  }
}
std::vector<RankRecord> Engine::recorded_ranks() const {
  return impl_->leader != nullptr ? impl_->leader->recorded() : std::vector<RankRecord>();
}
const BatchingRule& Engine::batching() const { return impl_->batching; }
bool Engine::keeps_keys() const { return impl_->cache(0, 1, 0)->keeps(); }
bool Engine::speculates() const { return impl_->proposer.make != nullptr; }
bool Engine::has_async_read_back() const { return impl_->read_back == ReadBack::async; }

std::int64_t Engine::step_bytes(std::int64_t batch_size, std::int64_t tokens, std::int64_t past,
                                std::int64_t max_tokens, const DetailsRequest& asked) const {
  const ModelConfig& config = model().config();
  const std::unique_ptr<KvCache> rule = impl_->cache(0, max_tokens, 0);
  if (past > 0 && !rule->keeps()) {
    return step_bytes(batch_size, past + tokens, 0, max_tokens, asked);
  }
  const auto bytes = static_cast<std::int64_t>(element_bytes(model().dtype()));
  const std::int64_t keys = past + tokens;
  const std::int64_t rows = batch_size * tokens;
  const std::int64_t slots = rule->slots_of(config.encoder ? max_tokens : std::max(keys, max_tokens));
  const std::int64_t layer_cache = impl_->step_runner()->cache_rows(batch_size) * slots * config.kv_width() * bytes;
  // One layer is held twice while it grows.
  const bool grows = rule->slots_of(1) < slots;
  const std::int64_t prompts = config.encoder ? config.layers * batch_size * keys * config.kv_width() * bytes : 0;
  const std::int64_t cache = (config.layers + (grows ? 1 : 0)) * layer_cache + prompts;

  const Attention& attention = past == 0 ? *impl_->prefill_attention : *impl_->decode_attention;
  const std::int64_t hidden = rows * config.hidden_size * bytes;
  const std::int64_t queries = rows * config.query_width() * bytes;
  const std::int64_t bias = config.relative_bias ? 2 * config.heads * tokens * keys * (bytes + 8) : 0;
  const std::int64_t in_attention = attention.workspace_bytes(batch_size, tokens, keys, bytes) + bias + 2 * hidden +
                                    2 * queries + rows * config.kv_width() * bytes + batch_size * tokens * keys;
  const std::int64_t in_mlp = 3 * hidden + (config.gated_mlp ? 4 : 2) * rows * config.intermediate_size * bytes;

  const DetailsRequest details = impl_->token_details->effective(asked);
  const LmHeadRows& head_rows = *impl_->lm_head_rows;
  const bool all_positions = head_rows.all_positions(asked) && !config.encoder;
  const std::int64_t piece = head_rows.piece() == 0 ? tokens : std::min(tokens, head_rows.piece());
  const std::int64_t logits_rows = !all_positions ? batch_size : head_rows.piece() == 0 ? rows : batch_size + piece;
  const std::int64_t in_head = 2 * hidden + (logits_rows + batch_size) * config.vocabulary_size * bytes +
                               std::max(details_workspace_bytes(details.prompt, piece, config.vocabulary_size, bytes),
                                        details_workspace_bytes(details.generated, 1, config.vocabulary_size, bytes));
  const std::int64_t in_draft =
      impl_->draft == nullptr ? 0 : impl_->draft->step_bytes(batch_size, tokens, past, max_tokens);
  return cache + std::max({in_attention, in_mlp, in_head}) + in_draft;
}

}  // namespace decodelab
