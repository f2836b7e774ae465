// Builds the automaton of a pattern from its end to its beginning.
#include "engine/masks/byte_nfa.h"

#include <algorithm>
#include <map>
#include <stdexcept>
#include <tuple>

#include <fmt/format.h>

#include "base/text.h"
#include "engine/masks/pattern.h"

namespace decodelab {
namespace {

using Kind = ByteNfa::Kind;

class NfaBuilder {
 public:
  explicit NfaBuilder(std::string_view pattern) : pattern_(pattern) {}

  ByteNfa build() {
    const PatternNode tree = parse_pattern(pattern_);
    nfa_.start = before(tree, add({.kind = Kind::accept}));
    find_alive();
    if (!nfa_.alive[nfa_.start]) {
      throw std::invalid_argument(fmt::format("no text matches the pattern {}", in_quotes(pattern_)));
    }
    return std::move(nfa_);
  }

 private:
  std::uint32_t add(ByteNfa::State state) {
    if (nfa_.states.size() == kMostNfaStates) {
      throw std::invalid_argument(
          fmt::format("the pattern {} is too large: it needs more than {} states; repeat less, or smaller classes",
                      in_quotes(pattern_), kMostNfaStates));
    }
    nfa_.states.push_back(state);
    return static_cast<std::uint32_t>(nfa_.states.size() - 1);
  }
  std::uint32_t split(std::uint32_t next, std::uint32_t other) {
    return next == other ? next : add({.kind = Kind::split, .next = next, .other = other});
  }

  /// Returns the state from which the node leads to `next`.
  std::uint32_t before(const PatternNode& node, std::uint32_t next) {
    switch (node.kind) {
      case PatternNode::Kind::empty: return next;
      case PatternNode::Kind::one_of: return before_character(node.points, next);
      case PatternNode::Kind::sequence: {
        for (auto child = node.children.rbegin(); child != node.children.rend(); ++child) {
          next = before(*child, next);
        }
        return next;
      }
      case PatternNode::Kind::alternatives: {
        std::uint32_t all = before(node.children.back(), next);
        for (auto child = node.children.rbegin() + 1; child != node.children.rend(); ++child) {
          all = split(before(*child, next), all);
        }
        return all;
      }
      case PatternNode::Kind::repeated: return before_repeated(node, next);
    }
    return next;
  }

  std::uint32_t before_repeated(const PatternNode& node, std::uint32_t next) {
    const PatternNode& child = node.children.front();
    std::uint32_t at = next;
    int copies = node.least;
    if (node.most == PatternNode::kUnlimited) {
      const std::uint32_t loop = add({.kind = Kind::split, .next = next, .other = next});
      const std::uint32_t body = before(child, loop);
      nfa_.states[loop].next = body;
      at = copies > 0 ? body : loop;
      copies = std::max(copies - 1, 0);
    } else {
      at = repeat(node.most - node.least, at, [&](std::uint32_t from) { return split(before(child, from), next); });
    }
    return repeat(copies, at, [&](std::uint32_t from) { return before(child, from); });
  }

  /// Applies `step` so many times, and no more once it changes nothing: a part that matches only the empty text may be
  /// repeated any number of times without a state.
  template <typename Step>
  static std::uint32_t repeat(int times, std::uint32_t at, const Step& step) {
    for (int done = 0; done < times; ++done) {
      const std::uint32_t stepped = step(at);
      if (stepped == at) {
        return at;
      }
      at = stepped;
    }
    return at;
  }

  std::uint32_t before_character(const CodePoints& points, std::uint32_t next) {
    // Sequences that end alike share their ends.
    std::map<std::tuple<std::uint8_t, std::uint8_t, std::uint32_t>, std::uint32_t> shared;
    std::uint32_t all = 0;
    bool any = false;
    for (const ByteSequence& sequence : utf8_sequences(points)) {
      std::uint32_t at = next;
      bool is_new = false;
      for (int place = sequence.length - 1; place >= 0; --place) {
        const ByteRange range = sequence.places[static_cast<std::size_t>(place)];
        const auto [found, added] = shared.try_emplace({range.first, range.last, at}, 0);
        if (added) {
          found->second = add({.kind = Kind::range, .first = range.first, .last = range.last, .next = at});
        }
        is_new = added;
        at = found->second;
      }
      if (is_new || !any) {
        all = any ? split(at, all) : at;
        any = true;
      }
    }
    return any ? all : add({.kind = Kind::fail});
  }

  /// Finds the states from which the end can be reached. What a state leads to was mostly made before it, so that one
  /// pass finds nearly all, and loops take another.
  void find_alive() {
    nfa_.alive.assign(nfa_.states.size(), false);
    for (bool changed = true; changed;) {
      changed = false;
      for (std::size_t index = 0; index < nfa_.states.size(); ++index) {
        const ByteNfa::State& state = nfa_.states[index];
        const bool alive = state.kind == Kind::accept || (state.kind != Kind::fail && nfa_.alive[state.next]) ||
                           (state.kind == Kind::split && nfa_.alive[state.other]);
        changed = changed || alive != nfa_.alive[index];
        nfa_.alive[index] = alive;
      }
    }
  }

  std::string_view pattern_;
  ByteNfa nfa_;
};

}  // namespace

ByteNfa compile_pattern(std::string_view pattern) { return NfaBuilder(pattern).build(); }

}  // namespace decodelab
