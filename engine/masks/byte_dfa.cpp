// Makes states of the deterministic automaton, and forgets them.
#include "engine/masks/byte_dfa.h"

#include <algorithm>
#include <utility>

namespace decodelab {

std::size_t ByteDfa::SetHash::operator()(const std::vector<std::uint32_t>& set) const {
  std::uint64_t hash = 0xCBF29CE484222325;  // FNV-1a, over whole numbers.
  for (const std::uint32_t member : set) {
    hash = (hash ^ member) * 0x100000001B3;
    hash ^= hash >> 32;
  }
  return hash;
}

ByteDfa::ByteDfa(ByteNfa nfa, std::size_t most_bytes) : nfa_(std::move(nfa)), most_bytes_(most_bytes) {
  marks_.assign(nfa_.states.size(), 0);
  find_byte_classes();
  ++mark_;
  close(nfa_.start);
  State first;
  take_gathered(first);
  start_ = remember(std::move(first))->shared_from_this();
}

void ByteDfa::find_byte_classes() {
  std::array<bool, 257> begins{};
  begins[0] = true;
  for (const ByteNfa::State& state : nfa_.states) {
    if (state.kind == ByteNfa::Kind::range) {
      begins[state.first] = true;
      begins[std::size_t{state.last} + 1] = true;
    }
  }
  for (std::size_t byte = 0; byte < class_of_.size(); ++byte) {
    classes_ += begins[byte] ? 1 : 0;
    class_of_[byte] = static_cast<std::uint8_t>(classes_ - 1);
  }
}

/// Gathers the states that are reached without a byte, those that read one and the end.
void ByteDfa::close(std::uint32_t nfa_state) {
  open_.push_back(nfa_state);
  while (!open_.empty()) {
    const std::uint32_t index = open_.back();
    open_.pop_back();
    if (marks_[index] == mark_ || !nfa_.alive[index]) {
      continue;
    }
    marks_[index] = mark_;
    const ByteNfa::State& state = nfa_.states[index];
    if (state.kind == ByteNfa::Kind::split) {
      open_.push_back(state.next);
      open_.push_back(state.other);
    } else {
      gathered_.push_back(index);
    }
  }
}

bool ByteDfa::take_gathered(State& state) {
  std::ranges::sort(gathered_);
  state.set_ = gathered_;
  gathered_.clear();
  state.generation_ = 0;
  state.kept.clear();
  state.accepting_ = std::ranges::any_of(
      state.set_, [&](std::uint32_t index) { return nfa_.states[index].kind == ByteNfa::Kind::accept; });
  return !state.set_.empty();
}

ByteDfa::State* ByteDfa::remember(State&& state) {
  auto made = std::make_shared<State>(std::move(state));
  State* const result = made.get();
  constexpr std::size_t kOfTheTable = 96;  // A node of the table and what the allocator adds.
  bytes_ += sizeof(State) + kOfTheTable + 2 * result->set_.size() * sizeof(std::uint32_t) + classes_ * sizeof(State*);
  ++states_made_;
  states_.emplace(result->set_, std::move(made));
  return result;
}

ByteDfa::State* ByteDfa::find_step(State& from, std::uint8_t byte, State& scratch) {
  if (from.generation_ != generation_) {
    from.next_.assign(classes_, &unknown_);
    from.generation_ = generation_;
  }
  State*& known = from.next_[class_of_[byte]];
  if (known != &unknown_) {
    return known;
  }
  if (++mark_ == 0) {  // All numbers are used up: begin anew.
    std::ranges::fill(marks_, 0);
    mark_ = 1;
  }
  for (const std::uint32_t index : from.set_) {
    const ByteNfa::State& state = nfa_.states[index];
    if (state.kind == ByteNfa::Kind::range && state.first <= byte && byte <= state.last) {
      close(state.next);
    }
  }
  State made;
  if (!take_gathered(made)) {
    return known = nullptr;
  }
  if (const auto found = states_.find(made.set_); found != states_.end()) {
    return known = found->second.get();
  }
  if (full()) {
    scratch = std::move(made);
    return &scratch;
  }
  return known = remember(std::move(made));
}

bool ByteDfa::survives(State& state, const std::vector<std::uint8_t>& bytes, std::size_t length) {
  constexpr std::size_t kMostStates = 32;  // Of one length; a pattern that counts characters has a few.
  std::array<bool, 256> class_met{};
  std::vector<std::uint8_t> one_of_each_class;
  for (const std::uint8_t byte : bytes) {
    if (!std::exchange(class_met[class_of_[byte]], true)) {
      one_of_each_class.push_back(byte);
    }
  }
  std::vector<State*> reached{&state};
  State scratch;
  for (std::size_t place = 0; place < length; ++place) {
    std::vector<State*> next;
    for (State* const from : reached) {
      for (const std::uint8_t byte : one_of_each_class) {
        State* const to = step(*from, byte, scratch);
        if (to == nullptr || to == &scratch) {
          return false;
        }
        if (std::ranges::find(next, to) == next.end()) {
          next.push_back(to);
        }
      }
    }
    if (next.size() > kMostStates) {
      return false;
    }
    if (next == reached) {
      return true;  // From here on nothing changes.
    }
    reached = std::move(next);
  }
  return true;
}

std::shared_ptr<ByteDfa::State> ByteDfa::after(const std::shared_ptr<State>& from, std::string_view text) {
  forget_if_full();
  std::shared_ptr<State> at = from;
  for (const char byte : text) {
    State scratch;
    State* const next = at == nullptr ? nullptr : step(*at, static_cast<std::uint8_t>(byte), scratch);
    if (next == nullptr) {
      return nullptr;
    }
    at = next == &scratch ? std::make_shared<State>(std::move(scratch)) : next->shared_from_this();
  }
  return at;
}

void ByteDfa::forget_if_full() {
  if (!full()) {
    return;
  }
  ++generation_;  // What held states know of others is no longer valid.
  states_.clear();
  bytes_ = 0;
  states_.emplace(start_->set_, start_);
}

}  // namespace decodelab
