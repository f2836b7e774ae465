// Perfetto's packets: descriptors of tracks first, then every event in the order of time.
#include <algorithm>
#include <functional>
#include <map>
#include <queue>
#include <string>
#include <utility>
#include <vector>

#include <protozero/pbf_writer.hpp>

#include "profiles/write/annotations.h"
#include "profiles/write/formats.h"
#include "profiles/write/perfetto_schema.h"
#include "profiles/write/rows.h"
#include "profiles/write/session_text.h"
#include "profiles/write/tracks.h"

namespace decodelab {
namespace {

using perfetto::Category;
using perfetto::EventWriter;
using perfetto::Key;
using protozero::pbf_writer;

constexpr std::uint32_t kSequence = 1;
constexpr std::size_t kBufferBytes = std::size_t{1} << 20;
// The first iid of names that are not in TraceStrings: those of waits, overheads, steps and ranges.
constexpr std::uint64_t kFirstOwnName = std::uint64_t{1} << 32;

class PerfettoWriter {
 public:
  PerfettoWriter(const Trace& trace, const TraceQuality& quality, const ByteSink& sink)
      : trace_(trace),
        events_(trace.events()),
        quality_(quality),
        sink_(sink),
        tracks_(make_tracks(trace)),
        bounds_(bounds_of(events_)),
        offset_ns_(bounds_.start_ns < 0 ? -bounds_.start_ns : 0),
        named_(events_.strings.size()),
        has_flow_(events_.operations.size()) {
    // After sorting, the arrows of one call are neighbours.
    flows_ = trace.flows();
    std::stable_sort(flows_.begin(), flows_.end(), [](const Flow& a, const Flow& b) { return a.api_row < b.api_row; });
    for (const Flow& flow : flows_) {
      has_flow_.at(static_cast<std::size_t>(flow.operation_row)) = true;
    }
  }

  void write() {
    write_clock();
    write_attributes();
    for (const Track& track : tracks_.tracks) {
      write_track(track);
    }
    write_counter_tracks();
    write_quality();
    write_events();
    if (!buffer_.empty()) {
      sink_(buffer_);
    }
  }

 private:
  template <typename Fill>
  void packet(std::uint32_t flags, Fill fill) {
    {
      pbf_writer file(buffer_);
      pbf_writer packet(file, perfetto::trace::packet);
      packet.add_uint32(perfetto::packet::sequence_id, kSequence);
      if (flags != 0) {
        packet.add_uint32(perfetto::packet::sequence_flags, flags);
      }
      fill(packet);
    }
    if (buffer_.size() >= kBufferBytes) {
      sink_(buffer_);
      buffer_.clear();
    }
  }

  static void add_interned(pbf_writer& interned, std::uint32_t field, std::uint64_t iid, std::string_view text) {
    pbf_writer entry(interned, field);
    entry.add_uint64(perfetto::interned::iid, iid);
    entry.add_string(perfetto::interned::text, text.data(), text.size());
  }

  // The first packet: clears what a reader remembers, and brings the names that are always needed.
  void write_clock() {
    packet(perfetto::packet::kIncrementalStateCleared, [&](pbf_writer& packet) {
      packet.add_bool(perfetto::packet::first_on_sequence, true);
      {
        pbf_writer snapshot(packet, perfetto::packet::clock_snapshot);
        const auto add_clock = [&](std::uint32_t id, std::int64_t time_ns) {
          pbf_writer clock(snapshot, perfetto::clock::clocks);
          clock.add_uint32(perfetto::clock::id, id);
          clock.add_uint64(perfetto::clock::timestamp, static_cast<std::uint64_t>(time_ns));
        };
        add_clock(perfetto::clock::kMonotonic, at(bounds_.start_ns));
        const std::int64_t unix_ns = bounds_.start_ns + events_.session.unix_offset_ns;
        if (events_.session.unix_offset_ns > 0 && unix_ns > 0) {
          add_clock(perfetto::clock::kRealtime, unix_ns);
        }
        snapshot.add_uint32(perfetto::clock::primary, perfetto::clock::kMonotonic);
      }
      {
        pbf_writer defaults(packet, perfetto::packet::defaults);
        defaults.add_uint32(perfetto::packet::kDefaultsClock, perfetto::clock::kMonotonic);
      }
      pbf_writer interned(packet, perfetto::packet::interned_data);
      const auto add_all = [&](std::uint32_t field, const auto& names) {
        for (std::size_t i = 0; i < names.size(); ++i) {
          add_interned(interned, field, i + 1, names[i]);
        }
      };
      add_all(perfetto::interned::categories, perfetto::kCategoryNames);
      add_all(perfetto::interned::annotation_names, perfetto::kKeyNames);
      add_all(perfetto::interned::annotation_strings, kStageNames);
    });
  }

  void write_attributes() {
    packet(0, [&](pbf_writer& packet) {
      pbf_writer attributes(packet, perfetto::packet::trace_attributes);
      pbf_writer attribute(attributes, perfetto::attributes::attribute);
      attribute.add_string(perfetto::attributes::key, kSessionKey);
      attribute.add_string(perfetto::attributes::string_value, session_text(trace_, quality_, offset_ns_));
    });
  }

  void write_track(const Track& track) {
    namespace field = perfetto::track;
    packet(0, [&](pbf_writer& packet) {
      pbf_writer descriptor(packet, perfetto::packet::track_descriptor);
      descriptor.add_uint64(field::uuid, track.uuid);
      if (track.kind == TrackKind::process) {
        pbf_writer process(descriptor, field::process);
        process.add_int32(field::process_pid, static_cast<std::int32_t>(track.process));
        process.add_string(field::process_name, track.name);
      } else if (track.kind == TrackKind::thread) {
        pbf_writer thread(descriptor, field::thread);
        thread.add_int32(field::thread_pid, static_cast<std::int32_t>(track.process));
        thread.add_int64(field::thread_tid, track.thread);
        thread.add_string(field::thread_name, track.name);
      } else {
        descriptor.add_string(field::name, track.name);
      }
      // A thread belongs to its process by its ids.
      if (track.parent != 0 && track.kind != TrackKind::thread) {
        descriptor.add_uint64(field::parent_uuid, track.parent);
      }
      descriptor.add_enum(field::child_ordering, field::kExplicitOrder);
      if (track.rank != 0) {
        descriptor.add_int32(field::sibling_order_rank, track.rank);
      }
      if (!track.description.empty()) {
        descriptor.add_string(field::description, track.description);
      }
      descriptor.add_enum(field::sibling_merge_behavior, field::kMergeNone);
    });
  }

  void write_counter_tracks() {
    namespace field = perfetto::track;
    std::uint64_t next = tracks_.tracks.size();
    for (const CounterPoint& point : events_.counters) {
      const auto [place, is_new] = counter_tracks_.try_emplace(point.series, next + 1);
      if (!is_new) {
        continue;
      }
      ++next;
      packet(0, [&](pbf_writer& packet) {
        const std::string& name = trace_.text(point.series);
        pbf_writer descriptor(packet, perfetto::packet::track_descriptor);
        descriptor.add_uint64(field::uuid, place->second);
        descriptor.add_string(field::name, name);
        descriptor.add_uint64(field::parent_uuid, tracks_.main_process);
        descriptor.add_enum(field::sibling_merge_behavior, field::kMergeNone);
        pbf_writer counter(descriptor, field::counter);
        // The unit is the last word of the series: held_bytes.
        const std::size_t word = name.rfind('_');
        if (word != std::string::npos) {
          counter.add_string(field::counter_unit_name, name.substr(word + 1));
        }
      });
    }
  }

  void write_quality() {
    event(bounds_.start_ns, perfetto::event::instant, tracks_.main_process, [&](EventWriter& event) {
      event.fields().add_uint64(perfetto::event::name_iid,
                                own_name(std::string("quality: ") + to_string(quality_.verdict)));
      category(event, Category::quality);
      const TraceSession& session = events_.session;
      event.text(Key::verdict, to_string(quality_.verdict));
      if (!quality_.reason.empty()) {
        event.text(Key::reason, quality_.reason);
      }
      event.text(Key::source, session.source);
      if (!session.model.empty()) {
        event.text(Key::model, session.model);
      }
      if (!session.arm.empty()) {
        event.text(Key::arm, session.arm);
      }
      if (!session.cell.empty()) {
        event.text(Key::cell, session.cell);
      }
      for (const TraceCheck& check : quality_.checks) {
        if (check.status == CheckStatus::failed || check.status == CheckStatus::warned) {
          event.text(Key::check, check.id + " " + to_string(check.status) + ": " + check.evidence);
        }
      }
    });
  }

  // The next edge of one track, for a heap over all tracks: the edges of each track are in their order already.
  struct Cursor {
    std::int64_t time_ns = 0;
    std::size_t track = 0;
    std::size_t next = 0;
    bool operator>(const Cursor& other) const {
      return time_ns != other.time_ns ? time_ns > other.time_ns : track > other.track;
    }
  };

  void write_events() {
    const std::size_t counters = tracks_.tracks.size();
    std::vector<std::size_t> points(events_.counters.size());
    for (std::size_t i = 0; i < points.size(); ++i) {
      points[i] = i;
    }
    const auto time_of = [&](std::size_t point) { return events_.counters[point].time_ns; };
    std::stable_sort(points.begin(), points.end(),
                     [&](std::size_t a, std::size_t b) { return time_of(a) < time_of(b); });
    std::priority_queue<Cursor, std::vector<Cursor>, std::greater<>> cursors;
    for (std::size_t i = 0; i < counters; ++i) {
      if (!tracks_.tracks[i].edges.empty()) {
        cursors.push({tracks_.tracks[i].edges.front().time_ns, i, 0});
      }
    }
    if (!points.empty()) {
      cursors.push({time_of(points.front()), counters, 0});
    }
    while (!cursors.empty()) {
      Cursor cursor = cursors.top();
      cursors.pop();
      // Goes on with this track, without the heap, as long as no other track is earlier.
      const std::int64_t until = cursors.empty() ? kLatestTime : cursors.top().time_ns;
      const std::size_t size = cursor.track == counters ? points.size() : tracks_.tracks[cursor.track].edges.size();
      do {
        if (cursor.track == counters) {
          write_counter(events_.counters[points[cursor.next]]);
        } else {
          write_edge(tracks_.tracks[cursor.track], tracks_.tracks[cursor.track].edges[cursor.next]);
        }
        if (++cursor.next == size) {
          break;
        }
        cursor.time_ns = cursor.track == counters ? time_of(points[cursor.next])
                                                  : tracks_.tracks[cursor.track].edges[cursor.next].time_ns;
      } while (cursor.time_ns <= until);
      if (cursor.next < size) {
        cursors.push(cursor);
      }
    }
  }

  std::int64_t at(std::int64_t time_ns) const { return time_ns + offset_ns_; }

  template <typename Fill>
  void event(std::int64_t time_ns, std::uint32_t type, std::uint64_t track, Fill fill) {
    event_.clear();
    interned_.clear();
    {
      pbf_writer fields(event_);
      fields.add_uint32(perfetto::event::type, type);
      fields.add_uint64(perfetto::event::track_uuid, track);
      EventWriter writer(fields);
      fill(writer);
    }
    packet(perfetto::packet::kNeedsIncrementalState, [&](pbf_writer& packet) {
      packet.add_uint64(perfetto::packet::timestamp, static_cast<std::uint64_t>(at(time_ns)));
      if (!interned_.empty()) {
        packet.add_message(perfetto::packet::interned_data, interned_);
      }
      packet.add_message(perfetto::packet::track_event, event_);
    });
  }

  void write_counter(const CounterPoint& point) {
    event(point.time_ns, perfetto::event::counter, counter_tracks_.at(point.series),
          [&](EventWriter& event) { event.fields().add_double(perfetto::event::double_counter_value, point.value); });
  }

  void write_edge(const Track& track, const Edge& edge) {
    event(edge.time_ns, edge.begin ? perfetto::event::begin : perfetto::event::end, track.uuid,
          [&](EventWriter& event) {
            if (edge.begin) {
              write_row(event, edge.item);
            }
          });
  }

  void write_row(EventWriter& event, std::uint64_t item) {
    const std::size_t row = row_of(item);
    switch (table_of(item)) {
      case RowTable::span: write_span(event, events_.spans[row]); break;
      case RowTable::api_call: write_call(event, events_.api_calls[row], row); break;
      case RowTable::operation: write_operation(event, events_.operations[row], row); break;
      case RowTable::wait: write_wait(event, events_.waits[row]); break;
      case RowTable::overhead: write_overhead(event, events_.overheads[row]); break;
      case RowTable::step: write_step(event, events_.steps[row]); break;
      case RowTable::range:
        event.fields().add_uint64(perfetto::event::name_iid, own_name(tracks_.ranges[row].name));
        category(event, Category::range);
        break;
    }
  }

  static void category(EventWriter& event, Category category) {
    // Repeated numbers are packed.
    const char iid = static_cast<char>(static_cast<int>(category) + 1);
    event.fields().add_uint64(perfetto::event::category_iids, static_cast<std::uint64_t>(iid));
  }

  void name(EventWriter& event, StringId id) {
    if (!named_[id]) {
      named_[id] = true;
      pbf_writer interned(interned_);
      add_interned(interned, perfetto::interned::names, std::uint64_t{id} + 1, trace_.text(id));
    }
    event.fields().add_uint64(perfetto::event::name_iid, std::uint64_t{id} + 1);
  }

  std::uint64_t own_name(const std::string& text) {
    const auto [place, is_new] = own_names_.try_emplace(text, kFirstOwnName + own_names_.size());
    if (is_new) {
      pbf_writer interned(interned_);
      add_interned(interned, perfetto::interned::names, place->second, text);
    }
    return place->second;
  }

  // Writes the row's own end where shown_end() hides it.
  static void own_end(EventWriter& event, std::int64_t start_ns, std::int64_t end_ns) {
    if (end_ns < start_ns || end_ns == 0) {
      event.number(Key::end_ns, end_ns);
    }
  }

  static void place(EventWriter& event, std::int32_t step, std::int32_t layer, Stage stage) {
    event.number_unless(Key::step, step, kNoStep);
    event.number_unless(Key::layer, layer, kNoLayer);
    if (stage != Stage::other) {
      event.interned(Key::stage, static_cast<std::uint64_t>(stage) + 1);
    }
  }

  void write_span(EventWriter& event, const HostSpan& row) {
    name(event, row.name);
    category(event, static_cast<Category>(row.kind));
    place(event, row.step, row.layer, row.stage);
    event.number_unless(Key::allocations, row.allocations, 0);
    event.number_unless(Key::allocated_bytes, row.allocated_bytes, 0);
    event.number_unless(Key::expected_bytes, row.expected_bytes, 0);
    event.number_unless(Key::expected_flops, row.expected_flops, 0);
    own_end(event, row.start_ns, row.end_ns);
  }

  void write_call(EventWriter& event, const ApiCall& row, std::size_t place_of_row) {
    name(event, row.name);
    category(event, row.driver ? Category::driver : Category::runtime);
    event.number(Key::correlation, row.correlation);
    event.number(Key::kind, static_cast<std::int64_t>(row.kind));
    event.number_unless(Key::cbid, row.callback_id, 0);
    event.number_unless(Key::result, row.result, 0);
    own_end(event, row.start_ns, row.end_ns);
    const auto first = std::lower_bound(flows_.begin(), flows_.end(), static_cast<std::int64_t>(place_of_row),
                                        [](const Flow& flow, std::int64_t api_row) { return flow.api_row < api_row; });
    for (auto flow = first; flow != flows_.end() && flow->api_row == static_cast<std::int64_t>(place_of_row); ++flow) {
      event.fields().add_fixed64(perfetto::event::flow_ids, flow_id(flow->operation_row));
    }
  }

  // Two traces that are opened together must not share arrows.
  std::uint64_t flow_id(std::int64_t operation_row) const {
    std::uint32_t session = 2166136261u;  // FNV-1a
    for (const char c : events_.session.uuid) {
      session = (session ^ static_cast<unsigned char>(c)) * 16777619u;
    }
    return std::uint64_t{session} << 32 | static_cast<std::uint64_t>(operation_row + 1);
  }

  void write_operation(EventWriter& event, const DeviceOperation& row, std::size_t place_of_row) {
    name(event, row.name);
    category(event, static_cast<Category>(static_cast<int>(Category::kernel) + static_cast<int>(row.kind)));
    event.number(Key::correlation, row.correlation);
    event.number(Key::device, row.device);
    event.number(Key::stream, row.stream);
    event.number_unless(Key::context, row.context, 0);
    event.number_unless(Key::process, row.process, events_.session.process);
    event.number_unless(Key::graph, static_cast<std::int64_t>(row.graph_id), 0);
    event.number_unless(Key::graph_node, static_cast<std::int64_t>(row.graph_node_id), 0);
    place(event, row.step, row.layer, row.stage);
    event.extent(Key::grid, row.grid);
    event.extent(Key::block, row.block);
    event.number_unless(Key::regs, row.registers, 0);
    event.number_unless(Key::static_shared, row.static_shared_bytes, 0);
    event.number_unless(Key::dynamic_shared, row.dynamic_shared_bytes, 0);
    event.number_unless(Key::bytes, row.bytes, 0);
    event.number_unless(Key::copy_kind, row.copy_kind, 0);
    own_end(event, row.start_ns, row.end_ns);
    if (has_flow_[place_of_row]) {
      event.fields().add_fixed64(perfetto::event::terminating_flow_ids,
                                 flow_id(static_cast<std::int64_t>(place_of_row)));
    }
  }

  void write_wait(EventWriter& event, const Wait& row) {
    event.fields().add_uint64(perfetto::event::name_iid, own_name(name_of(kWaitNames, row.kind)));
    category(event, Category::wait);
    event.number(Key::correlation, row.correlation);
    event.number(Key::stream, row.stream);
    event.number(Key::kind, static_cast<std::int64_t>(row.kind));
    event.number_unless(Key::event, row.event, 0);
    own_end(event, row.start_ns, row.end_ns);
  }

  void write_overhead(EventWriter& event, const Overhead& row) {
    event.fields().add_uint64(perfetto::event::name_iid, own_name(name_of(kOverheadNames, row.kind)));
    category(event, Category::overhead);
    event.number(Key::kind, static_cast<std::int64_t>(row.kind));
    own_end(event, row.start_ns, row.end_ns);
  }

  void write_step(EventWriter& event, const Step& row) {
    event.fields().add_uint64(perfetto::event::name_iid, own_name("step " + std::to_string(row.index)));
    category(event, Category::step);
    event.number(Key::step, row.index);
    event.number(Key::batch, row.batch);
    event.number(Key::keys, row.keys);
    event.number_unless(Key::launches, row.launches, -1);
    if (!row.excluded_reason.empty()) {
      event.text(Key::reason, row.excluded_reason);
    }
  }

  const Trace& trace_;
  const TraceEvents& events_;
  const TraceQuality& quality_;
  const ByteSink& sink_;
  Tracks tracks_;
  TraceBounds bounds_;
  std::int64_t offset_ns_;
  std::vector<Flow> flows_;
  std::vector<bool> named_;
  std::vector<bool> has_flow_;
  std::map<std::string, std::uint64_t> own_names_;
  std::map<StringId, std::uint64_t> counter_tracks_;
  std::string buffer_;
  std::string event_;
  std::string interned_;
};

}  // namespace

void write_perfetto(const Trace& trace, const TraceQuality& quality, const ByteSink& sink) {
  PerfettoWriter(trace, quality, sink).write();
}

}  // namespace decodelab
