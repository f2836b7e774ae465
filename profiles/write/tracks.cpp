// Groups rows by thread and stream, lays each group into lanes that nest, and names the tracks.
#include "profiles/write/tracks.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "profiles/write/rows.h"

namespace decodelab {
namespace {

using ThreadKey = std::pair<std::int64_t, std::int64_t>;  // process, thread
using StreamKey =
    std::tuple<std::int64_t, std::int32_t, std::int32_t, std::uint16_t>;  // process, context, stream, lane
using Slices = std::vector<Slice>;

struct ThreadRows {
  Slices calls;  // Spans and API calls, which nest in one another.
  Slices waits;
  Slices overheads;
};

struct DeviceRows {
  std::vector<const DeviceOperation*> operations;
  std::map<StreamKey, Slices> streams;
};

class TrackMaker {
 public:
  explicit TrackMaker(const Trace& trace)
      : trace_(trace),
        events_(trace.events()),
        last_ns_(std::max(bounds_of(events_).end_ns, events_.session.window_end_ns)) {}

  Tracks make() {
    collect_host_rows();
    add_processes();
    for (auto& [key, rows] : threads_) {
      add_thread(key, rows);
    }
    add_devices();
    return std::move(made_);
  }

 private:
  template <typename Row>
  Slice slice(const Row& row, RowTable table, std::size_t place, bool may_be_open = false) const {
    const std::int64_t end =
        row.end_ns == 0 && !may_be_open ? row.start_ns : shown_end(row.start_ns, row.end_ns, last_ns_);
    return {.start_ns = row.start_ns, .end_ns = end, .item = item_of(table, place)};
  }

  void collect_host_rows() {
    const std::int64_t process = events_.session.process;
    threads_[{process, events_.session.main_thread}];
    for (std::size_t i = 0; i < events_.spans.size(); ++i) {
      const HostSpan& span = events_.spans[i];
      rows_of({events_.session.process_of(span.process), span.thread})
          .calls.push_back(slice(span, RowTable::span, i, true));
    }
    for (std::size_t i = 0; i < events_.api_calls.size(); ++i) {
      const ApiCall& call = events_.api_calls[i];
      rows_of({call.process, call.thread}).calls.push_back(slice(call, RowTable::api_call, i));
    }
    for (std::size_t i = 0; i < events_.waits.size(); ++i) {
      const Wait& wait = events_.waits[i];
      rows_of({wait.process, wait.thread}).waits.push_back(slice(wait, RowTable::wait, i));
    }
    for (std::size_t i = 0; i < events_.overheads.size(); ++i) {
      rows_of({process, events_.overheads[i].thread})
          .overheads.push_back(slice(events_.overheads[i], RowTable::overhead, i));
    }
  }

  // Rows of one thread come in runs.
  ThreadRows& rows_of(const ThreadKey& key) {
    if (last_rows_ == nullptr || key != last_key_) {
      last_rows_ = &threads_[key];
      last_key_ = key;
    }
    return *last_rows_;
  }

  Track& add(Track track) {
    track.uuid = made_.tracks.size() + 1;
    return made_.tracks.emplace_back(std::move(track));
  }

  void add_lanes(const Track& first, Slices& slices, const Track& next) {
    if (!std::is_sorted(slices.begin(), slices.end(), in_lane_order)) {
      std::stable_sort(slices.begin(), slices.end(), in_lane_order);
    }
    auto lanes = lay_out(slices);
    slices = {};
    // A track with nothing on it is added too, since it is the parent of others.
    Track& root = add(first);
    if (!lanes.empty()) {
      root.edges = std::move(lanes.front());
    }
    const std::uint64_t root_uuid = root.uuid;
    for (std::size_t lane = 1; lane < lanes.size(); ++lane) {
      Track track = next;
      track.parent = next.parent == 0 ? root_uuid : next.parent;
      track.name = next.name + std::to_string(lane + 1);
      track.rank = static_cast<std::int32_t>(next.rank + lane);
      track.edges = std::move(lanes[lane]);
      add(std::move(track));
    }
  }

  void add_processes() {
    std::set<std::int64_t> processes;
    for (const auto& [key, rows] : threads_) {
      processes.insert(key.first);
    }
    for (const std::int64_t process : processes) {
      const bool main = process == events_.session.process;
      Track track{.kind = is_id(process) ? TrackKind::process : TrackKind::plain, .process = process};
      track.name = main && events_.session.source == "decodelab" ? "decodelab" : "process " + std::to_string(process);
      if (main && !events_.session.arm.empty()) {
        track.name += " " + events_.session.arm;
      }
      track.description = "process " + std::to_string(process);
      process_uuids_[process] = add(std::move(track)).uuid;
    }
    made_.main_process = process_uuids_.at(events_.session.process);
    if (events_.steps.empty()) {
      return;
    }
    Slices steps;
    for (std::size_t i = 0; i < events_.steps.size(); ++i) {
      steps.push_back(slice(events_.steps[i], RowTable::step, i));
    }
    Track track{.parent = made_.main_process, .process = events_.session.process, .name = "steps", .rank = 1};
    Track next = track;
    next.name = "steps ";
    add_lanes(track, steps, next);
  }

  std::string name_of_thread(std::int64_t process, std::int64_t thread) const {
    const std::int64_t known = process == events_.session.process ? 0 : process;
    for (const NamedThread& named : events_.session.threads) {
      if (named.process == known && named.thread == thread) {
        return named.name;
      }
    }
    return "thread " + std::to_string(thread);
  }

  // Perfetto keeps process and thread 0 for the idle loop, and knows 32 bits.
  static bool is_id(std::int64_t id) { return id > 0 && id <= std::numeric_limits<std::int32_t>::max(); }

  void add_thread(const ThreadKey& key, ThreadRows& rows) {
    const auto [process, thread] = key;
    const bool main = process == events_.session.process && thread == events_.session.main_thread;
    Track track{.parent = process_uuids_.at(process), .process = process, .thread = thread};
    track.kind = is_id(process) && is_id(thread) ? TrackKind::thread : TrackKind::plain;
    track.name = main ? "main" : name_of_thread(process, thread);
    track.description = "process " + std::to_string(process) + " thread " + std::to_string(thread);
    track.rank = main ? 2 : 3;
    const std::uint64_t uuid = made_.tracks.size() + 1;
    Track child = track;
    child.kind = TrackKind::plain;
    child.parent = uuid;
    Track overlap = child;
    overlap.name = "overlap ";
    overlap.rank = 10;
    add_lanes(track, rows.calls, overlap);
    const auto add_child = [&](const char* name, Slices& slices, std::int32_t rank) {
      if (slices.empty()) {
        return;
      }
      Track first = child;
      first.name = name;
      first.rank = rank;
      Track next = first;
      next.name += " ";
      add_lanes(first, slices, next);
    };
    add_child("waits", rows.waits, 300);
    add_child("overhead", rows.overheads, 600);
  }

  void add_devices() {
    std::map<std::int32_t, DeviceRows> devices;
    for (std::size_t i = 0; i < events_.operations.size(); ++i) {
      const DeviceOperation& row = events_.operations[i];
      DeviceRows& rows = devices[row.device];
      rows.operations.push_back(&row);
      rows.streams[{row.process, row.context, row.stream, row.lane}].push_back(slice(row, RowTable::operation, i));
    }
    if (events_.session.device != "cpu") {  // For a CPU, devices only hold the bandwidth, which is no track.
      for (const TraceDevice& device : events_.session.devices) {
        devices[device.index];
      }
    }
    for (auto& [device, rows] : devices) {
      add_device(device, rows);
    }
  }

  void add_device(std::int32_t device, DeviceRows& rows) {
    auto& streams = rows.streams;
    Track gpu{.name = "GPU " + std::to_string(device), .rank = device};
    for (const TraceDevice& known : events_.session.devices) {
      if (known.index == device) {
        gpu.description = known.name;
      }
    }
    const std::uint64_t parent = add(std::move(gpu)).uuid;
    std::set<std::int64_t> processes;
    std::set<std::int32_t> contexts;
    for (const auto& [key, slices] : streams) {
      processes.insert(std::get<0>(key));
      contexts.insert(std::get<1>(key));
    }
    std::int32_t rank = 0;
    for (auto& [key, slices] : streams) {
      const auto& [process, context, stream, lane] = key;
      Track track{.parent = parent, .process = process, .name = "stream " + std::to_string(stream), .rank = rank};
      if (contexts.size() > 1) {
        track.name += " context " + std::to_string(context);
      }
      if (processes.size() > 1) {
        track.name += " process " + std::to_string(process);
      }
      if (lane > 0) {
        track.name += " lane " + std::to_string(lane + 1);
      }
      Track next = track;
      next.name += " overlap ";
      add_lanes(track, slices, next);
      rank += static_cast<std::int32_t>(kMostLanes);
    }
    add_ranges(rows.operations, parent, rank);
  }

  void add_ranges(const std::vector<const DeviceOperation*>& operations, std::uint64_t parent, std::int32_t rank) {
    const std::size_t first = made_.ranges.size();
    // Makes a range of each run of operations of one step, of one layer in it and of one stage in that. Outer ranges
    // come first, which orders ranges with the same bounds.
    add_runs(
        operations, [](const DeviceOperation& row) { return std::tuple(row.step); },
        [](const DeviceOperation& row) { return row.step == kNoStep ? "" : "step " + std::to_string(row.step); });
    add_runs(
        operations, [](const DeviceOperation& row) { return std::tuple(row.step, row.layer); },
        [](const DeviceOperation& row) { return row.layer == kNoLayer ? "" : "layer " + std::to_string(row.layer); });
    add_runs(
        operations, [](const DeviceOperation& row) { return std::tuple(row.step, row.layer, row.stage); },
        [](const DeviceOperation& row) {
          return std::string(row.stage == Stage::other ? "" : name_of(kStageNames, row.stage));
        });
    Slices slices;
    for (std::size_t i = first; i < made_.ranges.size(); ++i) {
      slices.push_back(slice(made_.ranges[i], RowTable::range, i));
    }
    if (slices.empty()) {
      return;
    }
    Track track{.parent = parent, .name = "ranges (layer/stage)", .rank = rank};
    Track next = track;
    next.name += " ";
    add_lanes(track, slices, next);
  }

  template <typename KeyOf, typename NameOf>
  void add_runs(const std::vector<const DeviceOperation*>& operations, KeyOf key_of, NameOf name_of_run) {
    const DeviceOperation* begin = nullptr;
    std::int64_t end_ns = 0;
    const auto finish = [&] {
      if (begin == nullptr) {
        return;
      }
      if (std::string name = name_of_run(*begin); !name.empty()) {
        made_.ranges.push_back({.start_ns = begin->start_ns, .end_ns = end_ns, .name = std::move(name)});
      }
    };
    for (const DeviceOperation* operation : operations) {
      const DeviceOperation& row = *operation;
      if (begin == nullptr || key_of(row) != key_of(*begin)) {
        finish();
        begin = &row;
        end_ns = row.start_ns;
      }
      end_ns = std::max(end_ns, row.end_ns);
    }
    finish();
  }

  const Trace& trace_;
  const TraceEvents& events_;
  std::int64_t last_ns_;
  std::map<ThreadKey, ThreadRows> threads_;
  ThreadKey last_key_;
  ThreadRows* last_rows_ = nullptr;
  std::map<std::int64_t, std::uint64_t> process_uuids_;
  Tracks made_;
};

}  // namespace

Tracks make_tracks(const Trace& trace) { return TrackMaker(trace).make(); }

}  // namespace decodelab
