// A reader of Perfetto's packets that believes no length, no order and no number.
#include "profiles/write/import_perfetto.h"

#include <array>
#include <bit>
#include <charconv>
#include <fstream>
#include <stdexcept>
#include <unordered_map>
#include <vector>

#include <protozero/pbf_reader.hpp>

#include "profiles/write/perfetto_schema.h"
#include "profiles/write/rows.h"
#include "profiles/write/session_text.h"

namespace decodelab {
namespace {

using perfetto::Category;
using perfetto::Key;

// Ours are below 1 KB but for the session; no packet of a real trace is larger.
constexpr std::uint64_t kMostPacketBytes = std::uint64_t{1} << 26;

/// A field of any type, so that one of another type than expected is a zero or an empty text, and nothing worse.
struct Field {
  std::uint32_t tag = 0;
  std::uint64_t number = 0;
  std::string_view bytes;
};

template <typename Visit>
void for_each_field(std::string_view message, Visit visit) {
  protozero::pbf_reader reader(message.data(), message.size());
  while (reader.next()) {
    Field field{.tag = reader.tag()};
    switch (reader.wire_type()) {
      case protozero::pbf_wire_type::varint: field.number = reader.get_uint64(); break;
      case protozero::pbf_wire_type::fixed64: field.number = reader.get_fixed64(); break;
      case protozero::pbf_wire_type::fixed32: field.number = reader.get_fixed32(); break;
      case protozero::pbf_wire_type::length_delimited: {
        const auto view = reader.get_view();
        field.bytes = {view.data(), view.size()};
        break;
      }
      default: reader.skip(); continue;
    }
    visit(field);
  }
}

struct Arguments {
  std::array<std::int64_t, perfetto::kKeyNames.size()> numbers{};
  std::array<bool, perfetto::kKeyNames.size()> present{};
  std::string_view stage;
  std::string_view grid;
  std::string_view block;

  std::int64_t get(Key key, std::int64_t otherwise = 0) const {
    const auto place = static_cast<std::size_t>(key);
    return present[place] ? numbers[place] : otherwise;
  }
  bool has(Key key) const { return present[static_cast<std::size_t>(key)]; }
};

struct TrackOfFile {
  std::int64_t process = 0;
  std::int64_t thread = 0;
  StringId series = 0;
  bool counter = false;
  std::vector<std::pair<Category, std::size_t>> open;
};

class PerfettoReader {
 public:
  PerfettoReader(const std::filesystem::path& path, const ImportLimits& limits)
      : rows_(path, limits), events_(rows_.events()) {
    file_.open(path, std::ios::binary);
    if (!file_) rows_.refuse("cannot be opened");
  }

  TraceEvents read() {
    while (read_packet_bytes()) {
      try {
        read_packet();
      } catch (const protozero::exception&) {
        rows_.refuse("is no whole Perfetto trace: its packet " + std::to_string(packets_) + " cannot be decoded");
      }
    }
    if (!has_session_) refuse_foreign();
    if (open_ > 0) rows_.refuse("ends before " + std::to_string(open_) + " of its slices do: it was cut");
    return std::move(events_);
  }

 private:
  [[noreturn]] void refuse_foreign() const {
    rows_.refuse("is no trace that decodelab wrote: of other tools, traces come in as nsys' SQLite or kineto's JSON");
  }

  // Trace.packet, one at a time; false at the end of the file.
  bool read_packet_bytes() {
    const int tag = file_.get();
    if (tag == std::char_traits<char>::eof()) return false;
    if (tag != (perfetto::trace::packet << 3 | 2))
      rows_.refuse("is no Perfetto trace: byte " + std::to_string(position_) + " starts no packet");
    std::uint64_t length = 0;
    for (int shift = 0;; shift += 7) {
      const int byte = file_.get();
      ++position_;
      if (byte == std::char_traits<char>::eof() || shift > 28)
        rows_.refuse("is cut or damaged after " + std::to_string(packets_) + " packets");
      length |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
      if ((byte & 0x80) == 0) break;
    }
    if (length > kMostPacketBytes)
      rows_.refuse("has a packet of " + std::to_string(length) + " bytes, which is no packet of ours");
    packet_.resize(length);
    file_.read(packet_.data(), static_cast<std::streamsize>(length));
    if (file_.gcount() != static_cast<std::streamsize>(length))
      rows_.refuse("is cut after " + std::to_string(packets_) + " packets");
    position_ += length + 1;
    ++packets_;
    return true;
  }

  void read_packet() {
    std::int64_t time_ns = 0;
    std::string_view event;
    for_each_field(packet_, [&](const Field& field) {
      switch (field.tag) {
        case perfetto::packet::timestamp: time_ns = static_cast<std::int64_t>(field.number); break;
        case perfetto::packet::interned_data: read_interned(field.bytes); break;
        case perfetto::packet::trace_attributes: read_attributes(field.bytes); break;
        case perfetto::packet::track_descriptor: read_track(field.bytes); break;
        case perfetto::packet::track_event: event = field.bytes; break;
        default: break;
      }
    });
    if (event.data() == nullptr) return;
    if (!has_session_) refuse_foreign();
    if (time_ns < 0 || time_ns > kLatestTime) rows_.time(time_ns);
    read_event(event, time_ns - offset_ns_);
  }

  void read_attributes(std::string_view message) {
    for_each_field(message, [&](const Field& attribute) {
      std::string_view key;
      std::string_view value;
      for_each_field(attribute.bytes, [&](const Field& field) {
        if (field.tag == perfetto::attributes::key) key = field.bytes;
        if (field.tag == perfetto::attributes::string_value) value = field.bytes;
      });
      if (key != kSessionKey) return;
      try {
        offset_ns_ = read_session_text(value, events_);
      } catch (const std::runtime_error& error) {
        std::string reason = error.what();
        if (reason.ends_with('.')) reason.pop_back();
        rows_.refuse("is damaged: " + reason);
      }
      rows_.time(offset_ns_);
      has_session_ = true;
    });
  }

  void read_interned(std::string_view message) {
    for_each_field(message, [&](const Field& entry) {
      std::uint64_t iid = 0;
      std::string_view text;
      for_each_field(entry.bytes, [&](const Field& field) {
        if (field.tag == perfetto::interned::iid) iid = field.number;
        if (field.tag == perfetto::interned::text) text = field.bytes;
      });
      switch (entry.tag) {
        // Names that only waits, steps and ranges have are no strings of the trace.
        case perfetto::interned::names: names_[iid] = std::string(text); break;
        case perfetto::interned::categories:
          if (const auto category = named<Category>(perfetto::kCategoryNames, text)) categories_[iid] = *category;
          break;
        case perfetto::interned::annotation_names:
          if (const auto key = named<Key>(perfetto::kKeyNames, text)) keys_[iid] = *key;
          break;
        case perfetto::interned::annotation_strings: strings_[iid] = std::string(text); break;
        default: break;
      }
      bytes_ += text.size();
      if (bytes_ > kMostPacketBytes * 4) rows_.refuse("has more names than any trace of ours");
    });
  }

  void read_track(std::string_view message) {
    std::uint64_t uuid = 0;
    std::uint64_t parent = 0;
    std::string_view name;
    std::string_view description;
    bool counter = false;
    for_each_field(message, [&](const Field& field) {
      switch (field.tag) {
        case perfetto::track::uuid: uuid = field.number; break;
        case perfetto::track::parent_uuid: parent = field.number; break;
        case perfetto::track::name: name = field.bytes; break;
        case perfetto::track::description: description = field.bytes; break;
        case perfetto::track::counter: counter = true; break;
        default: break;
      }
    });
    rows_.count();
    TrackOfFile& track = tracks_[uuid];
    if (const auto above = tracks_.find(parent); above != tracks_.end()) {
      track.process = above->second.process;
      track.thread = above->second.thread;
    }
    read_ids(description, track);
    track.counter = counter;
    if (counter) track.series = rows_.text(name);
  }

  // "process 12 thread 34"
  static void read_ids(std::string_view description, TrackOfFile& track) {
    const auto after = [&](std::string_view word, std::int64_t& value) {
      const std::size_t at = description.find(word);
      if (at == std::string_view::npos) return;
      std::from_chars(description.data() + at + word.size(), description.data() + description.size(), value);
    };
    after("process ", track.process);
    after("thread ", track.thread);
  }

  void read_event(std::string_view message, std::int64_t time_ns) {
    std::uint64_t type = 0;
    std::uint64_t uuid = 0;
    std::uint64_t name = 0;
    std::uint64_t category = 0;
    double value = 0;
    Arguments arguments;
    for_each_field(message, [&](const Field& field) {
      switch (field.tag) {
        case perfetto::event::type: type = field.number; break;
        case perfetto::event::track_uuid: uuid = field.number; break;
        case perfetto::event::name_iid: name = field.number; break;
        case perfetto::event::category_iids: category = field.number; break;
        case perfetto::event::double_counter_value: value = std::bit_cast<double>(field.number); break;
        case perfetto::event::annotations: read_annotation(field.bytes, arguments); break;
        default: break;
      }
    });
    const auto found = tracks_.find(uuid);
    if (found == tracks_.end()) rows_.refuse("has an event on a track that nothing describes");
    TrackOfFile& track = found->second;
    switch (type) {
      case perfetto::event::begin: begin(track, category, name, time_ns, arguments); break;
      case perfetto::event::end: end(track, time_ns); break;
      case perfetto::event::counter:
        rows_.count();
        if (!track.counter) rows_.refuse("has a counter's value on a track of slices");
        events_.counters.push_back({.time_ns = time_ns, .series = track.series, .value = value});
        break;
      default: break;
    }
  }

  void read_annotation(std::string_view message, Arguments& arguments) {
    std::uint64_t iid = 0;
    std::int64_t number = 0;
    std::string_view text;
    for_each_field(message, [&](const Field& field) {
      switch (field.tag) {
        case perfetto::annotation::name_iid: iid = field.number; break;
        case perfetto::annotation::int_value: number = static_cast<std::int64_t>(field.number); break;
        case perfetto::annotation::string_value: text = field.bytes; break;
        case perfetto::annotation::string_value_iid:
          if (const auto found = strings_.find(field.number); found != strings_.end()) text = found->second;
          break;
        default: break;
      }
    });
    const auto found = keys_.find(iid);
    if (found == keys_.end()) return;
    const auto place = static_cast<std::size_t>(found->second);
    arguments.numbers[place] = number;
    arguments.present[place] = true;
    if (found->second == Key::stage) arguments.stage = text;
    if (found->second == Key::grid) arguments.grid = text;
    if (found->second == Key::block) arguments.block = text;
  }

  void begin(TrackOfFile& track, std::uint64_t category_iid, std::uint64_t name_iid, std::int64_t time_ns,
             const Arguments& arguments) {
    const auto category = categories_.find(category_iid);
    if (category == categories_.end()) rows_.refuse("has a slice of a category that is none of ours");
    rows_.count();
    ++open_;
    track.open.emplace_back(category->second, add_row(category->second, track, name_iid, time_ns, arguments));
  }

  StringId name(std::uint64_t iid) {
    const auto found = names_.find(iid);
    return found == names_.end() ? 0 : rows_.text(found->second);
  }

  // The end is still to come, but for one that a viewer was not shown.
  std::size_t add_row(Category category, const TrackOfFile& track, std::uint64_t iid, std::int64_t time_ns,
                      const Arguments& arguments) {
    const std::int64_t end = arguments.has(Key::end_ns) ? arguments.get(Key::end_ns) : kOpen;
    switch (category) {
      case Category::step_span:
      case Category::layer_span:
      case Category::stage_span:
      case Category::operator_span:
      case Category::span: return add_span(category, track, name(iid), time_ns, end, arguments);
      case Category::runtime:
      case Category::driver: return add_call(category, track, name(iid), time_ns, end, arguments);
      case Category::kernel:
      case Category::memcpy:
      case Category::memset:
      case Category::graph: return add_operation(category, name(iid), time_ns, end, arguments);
      case Category::wait: return add_wait(track, time_ns, end, arguments);
      case Category::overhead:
        events_.overheads.push_back(
            {.start_ns = time_ns,
             .end_ns = end,
             .thread = track.thread,
             .kind = enumerator<OverheadKind>(arguments.get(Key::kind), 0, kOverheadNames.size() - 1)});
        return events_.overheads.size() - 1;
      default: return 0;  // Steps come with the session; ranges are made anew.
    }
  }

  template <typename Enum>
  Enum enumerator(std::int64_t value, std::size_t least, std::size_t most) const {
    if (value < static_cast<std::int64_t>(least) || value > static_cast<std::int64_t>(most)) {
      rows_.refuse("has a row of kind " + std::to_string(value) + ", which is none");
    }
    return static_cast<Enum>(value);
  }

  std::int32_t number32(const Arguments& arguments, Key key, std::int32_t otherwise = 0) const {
    return rows_.number<std::int32_t>(arguments.get(key, otherwise),
                                      perfetto::kKeyNames[static_cast<std::size_t>(key)]);
  }

  static Stage stage(const Arguments& arguments) {
    return named<Stage>(kStageNames, arguments.stage).value_or(Stage::other);
  }

  std::size_t add_span(Category category, const TrackOfFile& track, StringId text, std::int64_t time_ns,
                       std::int64_t end, const Arguments& arguments) {
    events_.spans.push_back({.start_ns = time_ns,
                             .end_ns = end,
                             .thread = track.thread,
                             .step = number32(arguments, Key::step, kNoStep),
                             .layer = number32(arguments, Key::layer, kNoLayer),
                             .name = text,
                             .kind = static_cast<SpanKind>(category),
                             .stage = stage(arguments),
                             .allocations = arguments.get(Key::allocations),
                             .allocated_bytes = arguments.get(Key::allocated_bytes),
                             .expected_bytes = arguments.get(Key::expected_bytes),
                             .expected_flops = arguments.get(Key::expected_flops)});
    return events_.spans.size() - 1;
  }

  std::size_t add_call(Category category, const TrackOfFile& track, StringId text, std::int64_t time_ns,
                       std::int64_t end, const Arguments& arguments) {
    events_.api_calls.push_back(
        {.start_ns = time_ns,
         .end_ns = end,
         .process = track.process,
         .thread = track.thread,
         .correlation = rows_.number<std::uint32_t>(arguments.get(Key::correlation), "correlation"),
         .callback_id = rows_.number<std::uint32_t>(arguments.get(Key::cbid), "cbid"),
         .name = text,
         .kind = enumerator<ApiKind>(arguments.get(Key::kind), 0, kApiKindNames.size() - 1),
         .driver = category == Category::driver,
         .result = number32(arguments, Key::result)});
    return events_.api_calls.size() - 1;
  }

  std::size_t add_operation(Category category, StringId text, std::int64_t time_ns, std::int64_t end,
                            const Arguments& arguments) {
    const auto kind = static_cast<DeviceOperationKind>(static_cast<int>(category) - static_cast<int>(Category::kernel));
    events_.operations.push_back(
        {.start_ns = time_ns,
         .end_ns = end,
         .process = arguments.get(Key::process, events_.session.process),
         .device = number32(arguments, Key::device),
         .context = number32(arguments, Key::context),
         .stream = number32(arguments, Key::stream),
         .correlation = rows_.number<std::uint32_t>(arguments.get(Key::correlation), "correlation"),
         .graph_id = static_cast<std::uint64_t>(arguments.get(Key::graph)),
         .graph_node_id = static_cast<std::uint64_t>(arguments.get(Key::graph_node)),
         .name = text,
         .kind = kind,
         .step = number32(arguments, Key::step, kNoStep),
         .layer = number32(arguments, Key::layer, kNoLayer),
         .stage = stage(arguments),
         .grid = extent(arguments.grid),
         .block = extent(arguments.block),
         .registers = number32(arguments, Key::regs),
         .static_shared_bytes = number32(arguments, Key::static_shared),
         .dynamic_shared_bytes = number32(arguments, Key::dynamic_shared),
         .bytes = arguments.get(Key::bytes),
         .copy_kind = number32(arguments, Key::copy_kind)});
    return events_.operations.size() - 1;
  }

  std::size_t add_wait(const TrackOfFile& track, std::int64_t time_ns, std::int64_t end, const Arguments& arguments) {
    events_.waits.push_back({.start_ns = time_ns,
                             .end_ns = end,
                             .process = track.process,
                             .thread = track.thread,
                             .stream = number32(arguments, Key::stream),
                             .event = rows_.number<std::uint32_t>(arguments.get(Key::event), "event"),
                             .correlation = rows_.number<std::uint32_t>(arguments.get(Key::correlation), "correlation"),
                             .kind = enumerator<WaitKind>(arguments.get(Key::kind), 1, kWaitNames.size() - 1)});
    return events_.waits.size() - 1;
  }

  // "132x1x1"
  static std::array<std::int32_t, 3> extent(std::string_view text) {
    std::array<std::int32_t, 3> sizes{};
    const char* at = text.data();
    const char* const last = text.data() + text.size();
    for (std::int32_t& size : sizes) {
      at = std::from_chars(at, last, size).ptr;
      if (at != last) ++at;
    }
    return sizes;
  }

  void end(TrackOfFile& track, std::int64_t time_ns) {
    if (track.open.empty()) rows_.refuse("ends a slice that never began");
    const auto [category, row] = track.open.back();
    track.open.pop_back();
    --open_;
    if (category <= Category::span) return close(events_.spans[row], time_ns);
    if (category <= Category::driver) return close(events_.api_calls[row], time_ns);
    if (category <= Category::graph) return close(events_.operations[row], time_ns);
    if (category == Category::wait) return close(events_.waits[row], time_ns);
    if (category == Category::overhead) return close(events_.overheads[row], time_ns);
  }

  template <typename Row>
  void close(Row& row, std::int64_t time_ns) const {
    if (row.end_ns == kOpen) row.end_ns = time_ns;
  }

  static constexpr std::int64_t kOpen = std::numeric_limits<std::int64_t>::min();

  ImportedRows rows_;
  TraceEvents& events_;
  std::ifstream file_;
  std::string packet_;
  std::uint64_t position_ = 0;
  std::uint64_t packets_ = 0;
  std::uint64_t bytes_ = 0;
  std::int64_t open_ = 0;
  std::int64_t offset_ns_ = 0;
  bool has_session_ = false;
  std::unordered_map<std::uint64_t, std::string> names_;
  std::unordered_map<std::uint64_t, Category> categories_;
  std::unordered_map<std::uint64_t, Key> keys_;
  std::unordered_map<std::uint64_t, std::string> strings_;
  std::unordered_map<std::uint64_t, TrackOfFile> tracks_;
};

}  // namespace

TraceEvents import_perfetto(const std::filesystem::path& path, const ImportLimits& limits) {
  return PerfettoReader(path, limits).read();
}

}  // namespace decodelab
