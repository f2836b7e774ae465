// Recorded decode steps: whole ones, and those whose attention runs between the recorded parts.
#include "engine/generation/graph_runner.h"

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "engine/kernels/cuda_module.h"
#include "engine/layers/attention.h"
#include "engine/layers/kv_cache.h"
#include "engine/layers/step_rows.h"
#include "engine/layers/step_tensors.h"
#include "engine/layers/transformer.h"
#include "engine/layers/workspace.h"
#include "engine/tensor.h"
#include "profiles/range.h"

namespace decodelab {
namespace {

/// Takes the place of this thread's listener while it lives, and keeps the amounts: what is recorded is counted when it
/// runs. Ranges go on to the listener, who can tell by them where in the engine a node of a graph comes from.
class AmountsOfRecord final : public RangeListener {
 public:
  AmountsOfRecord() : outer_(std::exchange(range_listener, this)) {}
  ~AmountsOfRecord() override { range_listener = outer_; }
  AmountsOfRecord(const AmountsOfRecord&) = delete;
  AmountsOfRecord& operator=(const AmountsOfRecord&) = delete;

  void enter(Stage stage) override {
    if (outer_ != nullptr) {
      outer_->enter(stage);
    }
  }
  void leave() override {
    if (outer_ != nullptr) {
      outer_->leave();
    }
  }
  void enter_layer(std::int64_t layer) override {
    if (outer_ != nullptr) {
      outer_->enter_layer(layer);
    }
  }
  void leave_layer() override {
    if (outer_ != nullptr) {
      outer_->leave_layer();
    }
  }
  void add(Amount amount, std::int64_t value) override { amounts_[static_cast<std::size_t>(amount)] += value; }

  using Amounts = std::array<std::int64_t, kAmountNames.size()>;
  const Amounts& amounts() const { return amounts_; }

 private:
  RangeListener* outer_;
  Amounts amounts_{};
};

/// A record and what it counts.
struct Record {
  std::unique_ptr<RecordedWork> work;
  AmountsOfRecord::Amounts amounts{};

  void run() const {
    work->run();
    count_amount(Amount::graph_launches, 1);
    for (std::size_t amount = 0; amount < amounts.size(); ++amount) {
      if (amounts[amount] != 0) {
        count_amount(static_cast<Amount>(amount), amounts[amount]);
      }
    }
  }
};

/// What recorded steps read: ids and lengths of R rows, of which the batch has the first B. The others hold nothing and
/// are fed token 0, as often as rows are fed a token.
class StepInputs {
 public:
  StepInputs(std::int64_t batch_size, std::int64_t rows, std::int64_t keys, at::Device device)
      : held_(at::zeros({rows}, at::TensorOptions(at::kLong).device(device))),
        row_index_(at::arange(rows, held_.options())),
        key_index_(at::arange(keys, held_.options())),
        real_held_(held_.narrow(0, 0, batch_size)) {}

  std::int64_t batch_size() const { return real_held_.size(0); }
  std::int64_t rows() const { return held_.size(0); }
  /// Returns the ids of a step that feeds each row so many tokens, [R, T].
  const at::Tensor& ids(std::int64_t tokens) {
    at::Tensor& ids = ids_[tokens];
    if (!ids.defined()) {
      ids = at::zeros({rows(), tokens}, held_.options());
    }
    return ids;
  }
  void set_ids(const at::Tensor& of_batch) { ids(of_batch.size(1)).narrow(0, 0, batch_size()).copy_(of_batch); }

  /// Without waiting for the device, wherever rows have one length or each grew by one token.
  void set_held(const std::vector<std::int64_t>& held) {
    const auto grew = [](std::int64_t now, std::int64_t before) { return now == before + 1; };
    if (std::ranges::all_of(held, [&](std::int64_t length) { return length == held.front(); })) {
      real_held_.fill_(held.front());
    } else if (std::ranges::equal(held, last_held_, grew)) {
      real_held_.add_(1);
    } else if (held != last_held_) {
      real_held_.copy_(at::tensor(held, at::kLong));
    }
    last_held_ = held;
  }

  StepRows step_rows(std::int64_t shown_keys, std::int64_t tokens) const {
    return StepRows(RecordedRows{
        .held = held_, .row_index = row_index_, .key_index = key_index_, .shown_keys = shown_keys, .tokens = tokens});
  }

 private:
  std::map<std::int64_t, at::Tensor> ids_;  ///< [R, T], by T.
  at::Tensor held_;                         ///< [R]
  at::Tensor row_index_;                    ///< [R]
  at::Tensor key_index_;                    ///< [K]
  at::Tensor real_held_;
  std::vector<std::int64_t> last_held_;
};

/// What both scopes share.
class GraphRunner : public StepRunner {
 public:
  GraphRunner(const StepRunnerOptions& options, const GraphBuckets& buckets, RecorderFactory make_recorder)
      : options_(options),
        transformer_(options.transformer),
        attention_(options.attention),
        make_workspace_(options.make_workspace),
        device_(options.device),
        buckets_(buckets),
        make_recorder_(std::move(make_recorder)) {}

 protected:
  /// What recorded steps read; made with all else that recording needs when first asked for, and anew for another
  /// batch.
  StepInputs& inputs(const KvCache& cache) {
    const std::int64_t batch_size = cache.options().batch_size;
    const std::int64_t rows = recorded_rows(cache);
    if (!inputs_ || inputs_->batch_size() != batch_size || inputs_->rows() != rows) {
      forget();
      workspace_ = make_workspace_(transformer_.config().positions, device_);
      recorder_ = make_recorder_();
      inputs_ = std::make_unique<StepInputs>(
          batch_size, rows, std::max(cache.options().positions, cache.options().max_tokens), at::Device(device_));
    }
    return *inputs_;
  }
  virtual std::int64_t recorded_rows(const KvCache& cache) const { return buckets_.rows(cache.options().batch_size); }

  /// Lets go of all records.
  virtual void forget() = 0;

  /// Keeps what `work` issues; inside of WorkRecorder::aside().
  Record record(std::function<void()> work) {
    const AmountsOfRecord counting;
    Record record{.work = recorder_->record(std::move(work))};
    record.amounts = counting.amounts();
    return record;
  }
  static void rehearse(const std::function<void()>& work) {
    const AmountsOfRecord uncounted;
    for (int pass = 0; pass < kRehearsals; ++pass) {
      work();
    }
  }

  StepRunnerOptions options_;
  const Transformer& transformer_;
  const Attention& attention_;
  const WorkspaceFactory& make_workspace_;
  const std::string& device_;
  GraphBuckets buckets_;
  RecorderFactory make_recorder_;
  std::unique_ptr<Workspace> workspace_;  ///< Of recorded work alone: a record is the only one that writes into it.
  std::unique_ptr<WorkRecorder> recorder_;
  std::unique_ptr<StepInputs> inputs_;
};

class WholeStepRunner final : public GraphRunner {
 public:
  using GraphRunner::GraphRunner;

  std::int64_t cache_rows(std::int64_t batch_size) const override { return buckets_.rows(batch_size); }

  void prepare(KvCache& cache) override {
    const std::vector<std::int64_t>& held = cache.lengths();
    inputs(cache).set_held(held);
    for (const std::int64_t keys : buckets_.all_keys(*std::ranges::max_element(held) + 1, cache.options().max_tokens)) {
      graph(keys, 1, cache);
    }
  }

  at::Tensor decode(const DecodeStep& step) override {
    return run(step, step.rows.keys()).logits.narrow(0, 0, step.rows.batch_size());
  }

  Verified verify(const DecodeStep& step) override {
    // Rows that add fewer tokens are padded, and padding is written behind them. Where it has no slot, nothing is
    // recorded.
    const std::int64_t needed = *std::ranges::max_element(step.rows.past()) + step.rows.tokens();
    if (needed > step.cache.options().max_tokens) {
      return verify_eagerly(options_, step);
    }
    const Graph& found = run(step, needed);
    const std::vector<std::int64_t>& added = step.rows.added();
    const std::int64_t fed = step.rows.batch_size() * step.rows.tokens();
    if (std::accumulate(added.begin(), added.end(), std::int64_t{0}) == fed) {
      return {.hidden = found.hidden.narrow(0, 0, fed), .logits = found.logits.narrow(0, 0, fed)};
    }
    const at::Tensor& real = step.rows.scatter().source;
    return {.hidden = found.hidden.index_select(0, real), .logits = found.logits.index_select(0, real)};
  }

 private:
  struct Graph {
    Record record;
    at::Tensor hidden;  ///< [R * T, d], written by each run, as are the logits.
    at::Tensor logits;  ///< [R * T, V]
  };

  /// Runs the record of a step whose longest row, padding included, comes to hold `needed` keys.
  const Graph& run(const DecodeStep& step, std::int64_t needed) {
    StepInputs& in = inputs(step.cache);
    in.set_ids(step.ids);
    in.set_held(step.rows.past());
    const std::int64_t keys = buckets_.keys(needed, step.cache.options().max_tokens);
    const Graph& found = graph(keys, step.rows.tokens(), step.cache);
    found.record.run();
    const std::vector<std::int64_t>& added = step.rows.added();
    count_amount(Amount::padding_keys, transformer_.sites() * (keys - step.rows.keys()));
    count_amount(Amount::padding_tokens,
                 in.rows() * step.rows.tokens() - std::accumulate(added.begin(), added.end(), std::int64_t{0}));
    return found;
  }

  /// A cache without room for padding runs its batch as it is.
  std::int64_t recorded_rows(const KvCache& cache) const override {
    const std::int64_t rows = GraphRunner::recorded_rows(cache);
    return rows <= cache.writable_rows() ? rows : cache.options().batch_size;
  }

  void forget() override { graphs_.clear(); }

  /// Returns the record of a step that feeds each row so many tokens, made where there is none yet.
  const Graph& graph(std::int64_t keys, std::int64_t tokens, KvCache& cache) {
    if (watch_.moved(cache.addresses())) {
      forget();
    }
    std::unique_ptr<Graph>& graph = graphs_[{.rows = inputs_->rows(), .keys = keys, .tokens = tokens}];
    if (graph == nullptr) {
      auto fresh = std::make_unique<Graph>();
      const at::Tensor& ids = inputs_->ids(tokens);  // Made outside of the record.
      const auto step = [this, keys, tokens, &ids, &cache, to = fresh.get()] {
        if (tokens == 1) {
          workspace_->begin_decode();
        } else {
          workspace_->begin_verification(inputs_->rows());
        }
        const StepRows rows = inputs_->step_rows(keys, tokens);
        to->hidden = forward(transformer_, tokens == 1 ? attention_ : options_.verify_attention, cache, ids,
                             {.rows = rows, .workspace = *workspace_})
                         .flatten(0, 1);
        to->logits = transformer_.head(to->hidden, *workspace_);
      };
      recorder_->aside([&] {
        rehearse(step);
        fresh->record = record(step);
      });
      graph = std::move(fresh);
    }
    return *graph;
  }

  AddressWatch watch_;
  std::map<GraphKey, std::unique_ptr<Graph>> graphs_;
};

class PartialRunner final : public GraphRunner {
 public:
  using GraphRunner::GraphRunner;

  /// Passes over guesses are not recorded: those of few rows are bound by what they read, and their shapes change.
  Verified verify(const DecodeStep& step) override { return verify_eagerly(options_, step); }

  void prepare(KvCache& cache) override {
    inputs(cache);
    record_parts();
  }

  at::Tensor decode(const DecodeStep& step) override {
    StepInputs& in = inputs(step.cache);
    in.set_ids(step.ids);
    in.set_held(step.rows.past());
    record_parts();
    const std::int64_t batch_size = step.rows.batch_size();
    count_amount(Amount::padding_tokens, in.rows() - batch_size);
    for (const std::unique_ptr<Part>& part : parts_) {
      part->record.run();
      if (!part->segment.before) {
        break;
      }
      const std::int64_t layer = *part->segment.before;
      const LayerRange range(layer);
      step.workspace.begin_layer(layer);
      const at::Tensor query = part->projected.query.narrow(0, 0, batch_size);
      const KeysValues held = in_stage(Stage::kv_write, [&] {
        return step.cache.append(layer, part->projected.key_value.narrow(0, 0, batch_size), step.rows);
      });
      const at::Tensor attended = in_stage(Stage::attention, [&] {
        return attention_.forward({.layer = layer,
                                   .query = query,
                                   .keys = held.keys,
                                   .values = held.values,
                                   .rows = step.rows,
                                   .workspace = step.workspace,
                                   .window = transformer_.config().recipe(layer).window});
      });
      attended_.narrow(0, 0, batch_size).copy_(attended);
    }
    step.workspace.end_layers();
    return logits_.narrow(0, 0, batch_size);
  }

 private:
  struct Part {
    GraphSegment segment;
    Record record;
    Projected projected;  ///< [R, 1, ..] for the attention that follows.
  };

  void forget() override {
    parts_.clear();
    attended_.reset();
  }

  /// One part of a step, from the stream that the part before it left.
  void run_part(Part& part) {
    if (part.segment.after) {
      const LayerRange range(*part.segment.after);
      transformer_.after(*part.segment.after, stream_, attended_, step());
    } else {
      workspace_->begin_decode();
      // Positions alone are asked of these rows, so that any number of keys is right.
      rows_.emplace(inputs_->step_rows(1, 1));
      stream_ = in_stage(Stage::embed, [&] { return transformer_.embed(inputs_->ids(1), step()); });
    }
    if (part.segment.before) {
      const LayerRange range(*part.segment.before);
      workspace_->begin_layer(*part.segment.before);
      part.projected = in_stage(Stage::qkv, [&] { return transformer_.before(*part.segment.before, stream_, step()); });
      if (!attended_.defined()) {
        attended_ = at::zeros(part.projected.query.sizes(), part.projected.query.options());
      }
    } else {
      workspace_->end_layers();
      logits_ = transformer_.head(stream_.sum(*workspace_).flatten(0, 1), *workspace_);
    }
  }

  ForwardStep step() const { return {.rows = *rows_, .workspace = *workspace_}; }

  void record_parts() {
    if (!parts_.empty()) {
      return;
    }
    std::vector<std::unique_ptr<Part>> fresh;
    for (const GraphSegment& segment : segments_around_attention(transformer_.sites())) {
      fresh.push_back(std::make_unique<Part>(Part{.segment = segment}));
    }
    recorder_->aside([&] {
      rehearse([&] {
        for (const std::unique_ptr<Part>& part : fresh) {
          run_part(*part);
        }
      });
      for (const std::unique_ptr<Part>& part : fresh) {
        part->record = record([this, to = part.get()] { run_part(*to); });
      }
    });
    parts_ = std::move(fresh);
  }

  std::optional<StepRows> rows_;  ///< Of the step that is being recorded; its position ids serve all parts.
  ResidualStream stream_;         ///< Between the parts of a step.
  at::Tensor attended_;           ///< [R, 1, H * k]; what attention gave, rows of padding zero.
  at::Tensor logits_;             ///< [R, V]
  std::vector<std::unique_ptr<Part>> parts_;
};

class CalledAgain final : public RecordedWork {
 public:
  explicit CalledAgain(std::function<void()> work) : work_(std::move(work)) {}
  void run() override {
    const AmountsOfRecord counted_already;
    work_();
  }

 private:
  std::function<void()> work_;
};

class CallingRecorder final : public WorkRecorder {
 public:
  void aside(const std::function<void()>& work) override { work(); }
  std::unique_ptr<RecordedWork> record(std::function<void()> work) override {
    work();
    return std::make_unique<CalledAgain>(std::move(work));
  }
};

}  // namespace

std::unique_ptr<WorkRecorder> make_cuda_graph_recorder(const std::string& device) {
#ifdef DECODELAB_HAS_CUDA
  if (at::Device(device).is_cuda()) {
    using MakeRecorder = WorkRecorder*(const std::string&);
    auto* const make = reinterpret_cast<MakeRecorder*>(cuda_module_function("decodelab_new_cuda_graph_recorder"));
    return std::unique_ptr<WorkRecorder>(make(device));
  }
#endif
  throw std::invalid_argument("CUDA graphs cannot record what runs on " + device +
                              ": use a CUDA device and a build with CUDA");
}

std::unique_ptr<WorkRecorder> make_calling_recorder() { return std::make_unique<CallingRecorder>(); }

std::unique_ptr<StepRunner> make_graph_runner(const StepRunnerOptions& options, GraphScope scope,
                                              const GraphBuckets& buckets, RecorderFactory recorder) {
  if (scope == GraphScope::whole_step) {
    return std::make_unique<WholeStepRunner>(options, buckets, std::move(recorder));
  }
  return std::make_unique<PartialRunner>(options, buckets, std::move(recorder));
}

}  // namespace decodelab
