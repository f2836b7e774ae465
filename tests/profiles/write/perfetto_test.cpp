// The bytes of a .pftrace, taken apart by a scanner that shares nothing with the writer.
#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "profiles/write/formats.h"
#include "tests/profiles/write/sample_trace.h"

namespace decodelab {
namespace {

/// A message as field numbers and what they hold.
struct Message {
  std::multimap<std::uint32_t, std::uint64_t> numbers;
  std::multimap<std::uint32_t, std::string_view> parts;

  std::uint64_t number(std::uint32_t field) const {
    const auto found = numbers.find(field);
    return found == numbers.end() ? 0 : found->second;
  }
  bool has(std::uint32_t field) const { return numbers.contains(field) || parts.contains(field); }
  std::string_view part(std::uint32_t field) const {
    const auto found = parts.find(field);
    return found == parts.end() ? std::string_view() : found->second;
  }
};

std::uint64_t read_varint(std::string_view bytes, std::size_t& at) {
  std::uint64_t value = 0;
  for (int shift = 0;; shift += 7) {
    const auto byte = static_cast<unsigned char>(bytes.at(at++));
    value |= std::uint64_t{byte & 0x7fu} << shift;
    if (byte < 0x80) {
      return value;
    }
  }
}

Message scan(std::string_view bytes) {
  Message message;
  for (std::size_t at = 0; at < bytes.size();) {
    const std::uint64_t key = read_varint(bytes, at);
    const auto field = static_cast<std::uint32_t>(key >> 3);
    if ((key & 7) == 0) {
      message.numbers.emplace(field, read_varint(bytes, at));
    } else if ((key & 7) == 1) {
      std::uint64_t value = 0;
      for (int i = 0; i < 8; ++i) {
        value |= std::uint64_t{static_cast<unsigned char>(bytes.at(at++))} << 8 * i;
      }
      message.numbers.emplace(field, value);
    } else {
      EXPECT_EQ(key & 7, 2u);
      const std::uint64_t length = read_varint(bytes, at);
      EXPECT_LE(at + length, bytes.size());
      message.parts.emplace(field, bytes.substr(at, length));
      at += length;
    }
  }
  return message;
}

std::string bytes_of(const Trace& trace) {
  std::string bytes;
  write_perfetto(trace, testing::sample_quality(), [&](std::string_view part) { bytes += part; });
  return bytes;
}

std::vector<Message> packets_of(const std::string& bytes) {
  std::vector<Message> packets;
  std::size_t at = 0;
  while (at < bytes.size()) {
    EXPECT_EQ(bytes.at(at++), '\n');
    const std::uint64_t length = read_varint(bytes, at);
    packets.push_back(scan(std::string_view(bytes).substr(at, length)));
    at += length;
  }
  return packets;
}

constexpr std::uint32_t kEvent = 11;
constexpr std::uint32_t kDescriptor = 60;

std::vector<std::string> track_names(const std::vector<Message>& packets) {
  std::vector<std::string> names;
  for (const Message& packet : packets) {
    if (!packet.has(kDescriptor)) {
      continue;
    }
    const Message track = scan(packet.part(kDescriptor));
    const Message process = scan(track.part(3));
    const Message thread = scan(track.part(4));
    names.emplace_back(std::string(track.part(2)) + std::string(process.part(6)) + std::string(thread.part(5)));
  }
  return names;
}

TEST(Perfetto, ItsFirstPacketClearsTheStateAndNamesTheClock) {
  const std::string bytes = bytes_of(seal(testing::sample_events()));
  const auto packets = packets_of(bytes);
  EXPECT_EQ(packets[0].number(13), 1u);
  const Message clocks = scan(packets[0].part(6));
  EXPECT_EQ(clocks.number(2), 3u);
  std::map<std::uint64_t, std::uint64_t> times;
  for (const auto& [field, part] : clocks.parts) {
    times[scan(part).number(1)] = scan(part).number(2);
  }
  EXPECT_EQ(times, (std::map<std::uint64_t, std::uint64_t>{{1, 1'700'000'000'001'000'000}, {3, 1'000'000}}));
}

TEST(Perfetto, TracksStandInTheOrderOfTheModel) {
  const std::string bytes = bytes_of(seal(testing::sample_events()));
  EXPECT_EQ(
      track_names(packets_of(bytes)),
      (std::vector<std::string>{"decodelab causal", "process 5151", "steps", "main", "waits", "overhead", "thread 5152",
                                "GPU 0", "stream 7", "stream 7 lane 2", "stream 8", "ranges (layer/stage)", "GPU 1",
                                "stream 7", "ranges (layer/stage)", "held_bytes", "sm_clock_mhz"}));
}

TEST(Perfetto, EventsAreSortedAndEndsStandBeforeBeginsOfTheSameTime) {
  const std::string bytes = bytes_of(testing::synthetic({.layers = 3, .graph = true}));
  std::uint64_t now = 0;
  std::map<std::uint64_t, std::vector<std::uint64_t>> begun;
  std::size_t events = 0;
  for (const Message& packet : packets_of(bytes)) {
    if (!packet.has(kEvent)) {
      continue;
    }
    const Message event = scan(packet.part(kEvent));
    EXPECT_GE(packet.number(8), now);
    now = packet.number(8);
    auto& stack = begun[event.number(11)];
    ++events;
    if (event.number(9) == 1) {
      // What is over now must have been ended before.
      stack.push_back(now);
    } else if (event.number(9) == 2) {
      ASSERT_FALSE(stack.empty());
      stack.pop_back();
    }
  }
  EXPECT_GT(events, 100u);
  for (const auto& [track, stack] : begun) {
    EXPECT_TRUE(stack.empty());
  }
}

TEST(Perfetto, EveryNameIsWrittenOnceAndBeforeItIsUsed) {
  const std::string bytes = bytes_of(testing::synthetic({.layers = 3}));
  std::map<std::uint64_t, std::string> names;
  for (const Message& packet : packets_of(bytes)) {
    const Message interned = scan(packet.part(12));
    for (auto [entry, last] = interned.parts.equal_range(2); entry != last; ++entry) {
      const Message name = scan(entry->second);
      EXPECT_TRUE(names.emplace(name.number(1), name.part(2)).second) << name.part(2);
    }
    const Message event = scan(packet.part(kEvent));
    if (event.has(10)) {
      EXPECT_TRUE(names.contains(event.number(10)));
    }
  }
  EXPECT_GT(names.size(), 5u);
}

TEST(Perfetto, FlowsOfOneTraceAreUniqueAndDifferBetweenTraces) {
  const auto flows = [](const Trace& trace) {
    std::vector<std::uint64_t> ids;
    const std::string bytes = bytes_of(trace);
    for (const Message& packet : packets_of(bytes)) {
      const Message event = scan(packet.part(kEvent));
      if (event.has(48)) {
        ids.push_back(event.number(48));
      }
    }
    std::sort(ids.begin(), ids.end());
    return ids;
  };
  TraceEvents other = testing::sample_events();
  other.session.uuid = "another";
  const auto first = flows(seal(testing::sample_events()));
  const auto second = flows(seal(std::move(other)));
  ASSERT_EQ(first.size(), 6u);
  EXPECT_EQ(std::adjacent_find(first.begin(), first.end()), first.end());
  std::vector<std::uint64_t> shared;
  std::set_intersection(first.begin(), first.end(), second.begin(), second.end(), std::back_inserter(shared));
  EXPECT_TRUE(shared.empty());
}

TEST(Perfetto, EqualTracesGiveEqualBytes) {
  EXPECT_EQ(bytes_of(seal(testing::sample_events())), bytes_of(seal(testing::sample_events())));
}

// FNV-1a, 64 bits. Where the format was changed on purpose, and Perfetto's engine still reads it, this is the number to
// change.
std::uint64_t hash_of(std::string_view bytes) {
  std::uint64_t hash = 14695981039346656037u;
  for (const char c : bytes) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
  }
  return hash;
}

TEST(Perfetto, ARankOfAnotherProcessHasATrackWithItsName) {
  TraceEvents events;
  events.session.process = 10;
  events.session.main_thread = 11;
  events.session.threads = {{.process = 20, .thread = 21, .name = "rank 1"},
                            {.process = 0, .thread = 12, .name = "rank 2"}};
  const StringId name = events.strings.id("mlp");
  for (const auto& [process, thread] : {std::pair(0, 11), std::pair(20, 21), std::pair(0, 12)}) {
    events.spans.push_back({.start_ns = 100,
                            .end_ns = 200,
                            .thread = thread,
                            .name = name,
                            .kind = SpanKind::stage,
                            .stage = Stage::mlp,
                            .process = process});
  }
  const std::vector<std::string> names = track_names(packets_of(bytes_of(seal(std::move(events)))));
  for (const char* expected : {"main", "rank 1", "rank 2", "process 20"}) {
    EXPECT_EQ(std::ranges::count(names, expected), 1) << expected;
  }
}

TEST(Perfetto, ATinyTraceHasTheBytesThatItAlwaysHad) {
  TraceEvents events;
  events.session.uuid = "tiny";
  events.session.process = 10;
  events.session.main_thread = 11;
  events.spans = {{.start_ns = 100,
                   .end_ns = 200,
                   .thread = 11,
                   .name = events.strings.id("aten::mm"),
                   .kind = SpanKind::operator_call}};
  events.api_calls = {{.start_ns = 110,
                       .end_ns = 120,
                       .process = 10,
                       .thread = 11,
                       .correlation = 1,
                       .name = events.strings.id("cudaLaunchKernel"),
                       .kind = ApiKind::launch}};
  events.operations = {{.start_ns = 150,
                        .end_ns = 250,
                        .process = 10,
                        .stream = 7,
                        .correlation = 1,
                        .name = events.strings.id("gemm")}};
  const std::string bytes = bytes_of(seal(std::move(events)));
  EXPECT_EQ(hash_of(bytes), 7477910444969147151u) << bytes.size() << " bytes";
}

}  // namespace
}  // namespace decodelab
