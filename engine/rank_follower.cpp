// Keeps a session for each of the first rank's, and runs its steps.
#include "engine/rank_follower.h"

#include <map>
#include <optional>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "engine/engine_impl.h"
#include "engine/kernels/scalar_type.h"
#include "engine/ranks/rank_orders.h"
#include "engine/tensor.h"

namespace decodelab {
namespace {

/// What a rank does of an order, but for the head.
class FollowedSessions {
 public:
  explicit FollowedSessions(const Engine& engine) : engine_(engine) {}

  void obey(RankOrder kind, std::int64_t number, std::span<const std::int64_t> numbers) {
    switch (kind) {
      case RankOrder::open:
        sessions_.emplace(
            number,
            Session(engine_,
                    {.batch_size = value(numbers, 0), .max_tokens = value(numbers, 1), .details = {}, .sampling = {}}));
        return;
      case RankOrder::close: sessions_.erase(number); return;
      case RankOrder::feed: of(number).extend(tokens_from_numbers(numbers)); return;
      case RankOrder::step: {
        Session& session = of(number);
        session.force_tokens(numbers);
        session.forward();
        return;
      }
      case RankOrder::pass: of(number).pass(tokens_from_numbers(numbers)); return;
      case RankOrder::fill_random:
        of(number).fill_random(value(numbers, 0), static_cast<std::uint64_t>(value(numbers, 1)), value(numbers, 2));
        return;
      case RankOrder::keep: kept_.insert_or_assign(value(numbers, 0), of(number).filled()); return;
      case RankOrder::fill: of(number).fill(kept_.at(value(numbers, 0))); return;
      case RankOrder::select: of(number).fork(numbers); return;
      case RankOrder::append: append(of(number), value(numbers, 0)); return;
      case RankOrder::truncate: of(number).truncate(value(numbers, 0), value(numbers, 1)); return;
      case RankOrder::shrink: of(number).truncate(value(numbers, 0)); return;
      case RankOrder::drop: kept_.erase(number); return;
      case RankOrder::head:
      case RankOrder::record:
      case RankOrder::end: break;
    }
    throw std::invalid_argument(fmt::format("there is no order {} to a rank", static_cast<std::int64_t>(kind)));
  }

 private:
  static std::int64_t value(std::span<const std::int64_t> numbers, std::size_t index) {
    if (index >= numbers.size()) {
      throw std::invalid_argument("an order to a rank ends early");
    }
    return numbers[index];
  }

  Session& of(std::int64_t number) {
    const auto found = sessions_.find(number);
    if (found == sessions_.end()) {
      throw std::invalid_argument(fmt::format("a rank has no session {}", number));
    }
    return found->second;
  }

  /// The next tokens of both come with the next step; a session joins another where it knows some.
  void append(Session& session, std::int64_t number) {
    Session& other = of(number);
    for (Session* const side : {&session, &other}) {
      side->force_tokens(std::vector<std::int64_t>(side->lengths().size(), 0));
    }
    session.concatenate(std::move(other));
    sessions_.erase(number);
  }

  const Engine& engine_;
  std::map<std::int64_t, Session> sessions_;
  std::map<std::int64_t, FilledCache> kept_;
};

}  // namespace

void RankFollower::sum(const at::Tensor& part) { exchange_->sum(part); }

at::Tensor RankFollower::head(const at::Tensor& normed, const std::function<at::Tensor(const at::Tensor&)>& part_of) {
  if (!asked_for_head_) {
    return at::empty({normed.size(0), 0}, normed.options());
  }
  return exchange_->head(normed, part_of);
}

void RankFollower::serve(const Engine& engine) {
  const c10::InferenceMode inference;
  const Engine::Impl& parts = engine.impl();
  const auto like = at::TensorOptions(scalar_type(engine.model().dtype())).device(at::Device(engine.model().device()));
  const std::unique_ptr<Workspace> workspace =
      parts.make_workspace(engine.model().config().positions, engine.model().device());
  FollowedSessions sessions(engine);
  std::optional<RangeRecorder> recorder;
  memory_.meet();
  try {
    while (true) {
      const std::vector<std::int64_t> order = memory_.receive();
      if (order.size() < 2) {
        throw std::invalid_argument("an order to a rank ends early");
      }
      const auto kind = static_cast<RankOrder>(order[0]);
      if (kind == RankOrder::end) {
        return;
      }
      if (kind == RankOrder::record) {
        recorder.reset();
        if (order[1] != 0) {
          recorder.emplace(memory_.log(memory_.rank()));
        }
        continue;
      }
      if (kind == RankOrder::head) {
        workspace->begin_prefill();
        asked_for_head_ = true;
        parts.transformer->logits(at::zeros({order.at(2), config_.hidden_size}, like), *workspace);
        asked_for_head_ = false;
        continue;
      }
      sessions.obey(kind, order[1], std::span(order).subspan(2));
    }
  } catch (const RankFailed&) {
    throw;
  } catch (const std::exception& error) {
    memory_.fail(fmt::format("rank {} of {}: {}", memory_.rank(), memory_.ranks(), error.what()));
    throw;
  }
}

}  // namespace decodelab
