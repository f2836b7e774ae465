// A deterministic automaton over bytes whose states are made when they are met.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "engine/masks/byte_nfa.h"

namespace decodelab {

/// Follows a ByteNfa with one state at a time, the set of states that the NFA may be in (Thompson 1968; made when met
/// and forgotten when there are too many, as in RE2). Patterns whose automaton is exponentially large, such as
/// `(a|b)*a(a|b){20}`, then cost what is met of them. Not for several threads at once.
class ByteDfa {
 public:
  /// A set of states of the NFA. Whoever holds a pointer to it may go on from it whatever was forgotten meanwhile.
  class State : public std::enable_shared_from_this<State> {
   public:
    /// Returns whether the text that led here matches.
    bool accepting() const { return accepting_; }

    /// What a user of the automaton keeps with the state; forgotten with it. Its size is told to ByteDfa::keep().
    std::vector<std::uint32_t> kept;

   private:
    friend class ByteDfa;
    std::vector<std::uint32_t> set_;  ///< Ranges and the end, in order.
    bool accepting_ = false;
    std::uint64_t generation_ = 0;  ///< When `next_` was valid.
    std::vector<State*> next_;      ///< By class of bytes; null: the text is dead.
  };

  /// `most_bytes` is what states may take together, about; those of one text may take more.
  explicit ByteDfa(ByteNfa nfa, std::size_t most_bytes = kMostBytes);

  std::shared_ptr<State> start() const { return start_; }
  /// Returns the state behind `text`; null where no matching text begins so.
  std::shared_ptr<State> after(const std::shared_ptr<State>& from, std::string_view text);

  /// Returns the state behind one more byte, or null; for walks over many texts, between which nothing is forgotten.
  /// Where states take too much, the new one is written to `scratch` and not kept; it is valid until `scratch` is
  /// written again.
  State* step(State& from, std::uint8_t byte, State& scratch) {
    if (from.generation_ == generation_) {
      State* const known = from.next_[class_of_[byte]];
      if (known != &unknown_) {
        return known;
      }
    }
    return find_step(from, byte, scratch);
  }
  /// Returns whether every text of up to `length` bytes of `bytes` may come behind a state. May say no where it would
  /// take long to find out.
  bool survives(State& state, const std::vector<std::uint8_t>& bytes, std::size_t length);
  /// Forgets all states but those that somebody holds, where they take too much. Called before a walk.
  void forget_if_full();
  /// Counts bytes that were put into State::kept.
  void keep(std::size_t bytes) { bytes_ += bytes; }

  /// Returns how many states were made, forgotten ones included.
  std::int64_t states_made() const { return states_made_; }

  static constexpr std::size_t kMostBytes = std::size_t{40} << 20;

 private:
  struct SetHash {
    std::size_t operator()(const std::vector<std::uint32_t>& set) const;
  };

  void find_byte_classes();
  State* find_step(State& from, std::uint8_t byte, State& scratch);
  void close(std::uint32_t nfa_state);
  bool full() const { return bytes_ > most_bytes_; }
  /// Puts what close() has gathered into a state; returns false where it is empty.
  bool take_gathered(State& state);
  State* remember(State&& state);

  ByteNfa nfa_;
  std::size_t most_bytes_;
  std::array<std::uint8_t, 256> class_of_{};  ///< Bytes of one class lead to the same states from everywhere.
  std::size_t classes_ = 0;
  std::unordered_map<std::vector<std::uint32_t>, std::shared_ptr<State>, SetHash> states_;
  std::shared_ptr<State> start_;
  std::size_t bytes_ = 0;
  std::uint64_t generation_ = 1;
  std::int64_t states_made_ = 0;
  State unknown_;  ///< Stands in `next_` for what was not followed yet.
  std::vector<std::uint32_t> gathered_;
  std::vector<std::uint32_t> open_;
  std::vector<std::uint32_t> marks_;  ///< [states of the NFA]: the last closure that has met it.
  std::uint32_t mark_ = 0;
};

}  // namespace decodelab
