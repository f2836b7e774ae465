// Writes the session of a trace as JSON and reads it back; reading says what is wrong instead of trusting the text.
#include "profiles/write/session_text.h"

#include <stdexcept>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "profiles/write/rows.h"

namespace decodelab {
namespace {

using nlohmann::json;

constexpr int kTextVersion = 1;

// One place that lists the members of each struct, for writing and for reading.
struct Writer {
  json& object;
  template <typename T>
  void operator()(const char* key, const T& value) {
    object[key] = value;
  }
};

struct Reader {
  const json& object;
  template <typename T>
  void operator()(const char* key, T& value) {
    const auto found = object.find(key);
    if (found == object.end()) {
      return;
    }
    if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
      if (!found->is_number_integer()) {
        throw std::runtime_error(std::string(key) + " is no whole number");
      }
      const bool fits = found->is_number_unsigned() ? std::in_range<T>(found->get<std::uint64_t>())
                                                    : std::in_range<T>(found->get<std::int64_t>());
      if (!fits) {
        throw std::runtime_error(std::string(key) + " is out of its range");
      }
      value = found->get<T>();
    } else {
      found->get_to(value);
    }
  }
};

template <typename Visitor, typename T>
void members(Visitor visit, T& value) {
  using Row = std::remove_const_t<T>;
  if constexpr (std::is_same_v<Row, TraceSession>) {
    visit("uuid", value.uuid), visit("host", value.host), visit("process", value.process);
    visit("main_thread", value.main_thread), visit("clock", value.clock);
    visit("window_start_ns", value.window_start_ns), visit("window_end_ns", value.window_end_ns);
    visit("unix_offset_ns", value.unix_offset_ns), visit("source", value.source), visit("model", value.model);
    visit("arm", value.arm), visit("cell", value.cell), visit("device", value.device);
    visit("launches_counted", value.launches_counted), visit("graph_granularity", value.graph_granularity);
    visit("dropped_records", value.dropped_records), visit("zero_times", value.zero_times);
    visit("unknown_records", value.unknown_records), visit("out_of_window", value.out_of_window);
    visit("foreign", value.foreign), visit("capture_start_ns", value.capture_start_ns);
    visit("capture_end_ns", value.capture_end_ns), visit("negative_times", value.negative_times);
    visit("launched_before", value.launched_before), visit("outlasting", value.outlasting);
    visit("open_ranges", value.open_ranges), visit("steps_from", value.steps_from);
    visit("steps_by_time", value.steps_by_time);
  } else if constexpr (std::is_same_v<Row, TraceDevice>) {
    visit("index", value.index), visit("name", value.name), visit("memory_bytes", value.memory_bytes);
    visit("multiprocessors", value.multiprocessors), visit("compute_major", value.compute_major);
    visit("compute_minor", value.compute_minor), visit("nominal_bytes_per_second", value.nominal_bytes_per_second);
    visit("measured_bytes_per_second", value.measured_bytes_per_second);
  } else if constexpr (std::is_same_v<Row, CollectorState>) {
    visit("name", value.name), visit("on", value.on), visit("reason", value.reason);
  } else if constexpr (std::is_same_v<Row, NamedThread>) {
    visit("process", value.process), visit("thread", value.thread), visit("name", value.name);
  } else if constexpr (std::is_same_v<Row, ClockBracket>) {
    visit("before_ns", value.before_ns), visit("device_ns", value.device_ns), visit("after_ns", value.after_ns);
  } else if constexpr (std::is_same_v<Row, Perturbation>) {
    visit("ratio", value.ratio), visit("low", value.low), visit("high", value.high), visit("pairs", value.pairs);
  } else if constexpr (std::is_same_v<Row, Step>) {
    visit("index", value.index), visit("start_ns", value.start_ns), visit("end_ns", value.end_ns);
    visit("batch", value.batch), visit("keys", value.keys), visit("launches", value.launches);
    visit("graph_launches", value.graph_launches), visit("timer_ns", value.timer_ns);
    visit("excluded_reason", value.excluded_reason);
  } else {
    static_assert(std::is_same_v<Row, GraphNode>);
    visit("graph_id", value.graph_id), visit("node_id", value.node_id);
    visit("original_node_id", value.original_node_id), visit("layer", value.layer);
  }
}

template <typename T>
json to_object(const T& value) {
  json object = json::object();
  members(Writer{object}, value);
  return object;
}

template <typename T>
json to_array(const std::vector<T>& rows) {
  json array = json::array();
  for (const T& row : rows) {
    array.push_back(to_object(row));
  }
  return array;
}

template <typename T>
void read_array(const json& object, const char* key, std::vector<T>& rows) {
  const auto found = object.find(key);
  if (found == object.end()) {
    return;
  }
  if (!found->is_array()) {
    throw std::runtime_error(std::string(key) + " is no array");
  }
  for (const json& row : *found) {
    if (!row.is_object()) {
      throw std::runtime_error(std::string(key) + " has a row that is no object");
    }
    members(Reader{row}, rows.emplace_back());
  }
}

json quality_object(const TraceQuality& quality) {
  json checks = json::array();
  for (const TraceCheck& check : quality.checks) {
    checks.push_back({{"id", check.id},
                      {"title", check.title},
                      {"status", to_string(check.status)},
                      {"value", check.value},
                      {"limit", check.limit},
                      {"evidence", check.evidence}});
  }
  return {{"verdict", to_string(quality.verdict)}, {"reason", quality.reason}, {"checks", std::move(checks)}};
}

void read_object(const json& object, TraceEvents& events) {
  if (!object.is_object() || object.value("version", 0) != kTextVersion) {
    throw std::runtime_error("its version is not " + std::to_string(kTextVersion));
  }
  const json& own = object.at("session");
  TraceSession session;
  members(Reader{own}, session);
  int tier = static_cast<int>(TraceTier::untraced);
  Reader{own}("tier", tier);
  if (tier < 0 || tier > static_cast<int>(TraceTier::causes)) {
    throw std::runtime_error("tier is none of 0, 1 and 2");
  }
  session.tier = static_cast<TraceTier>(tier);
  if (const auto found = own.find("versions"); found != own.end()) {
    found->get_to(session.versions);
  }
  read_array(own, "devices", session.devices);
  read_array(own, "threads", session.threads);
  read_array(own, "collectors", session.collectors);
  read_array(own, "clocks", session.clocks);
  if (const auto found = own.find("perturbation"); found != own.end() && found->is_object()) {
    members(Reader{*found}, session.perturbation);
  }
  events.session = std::move(session);
  events.steps.clear();
  read_array(object, "steps", events.steps);
  events.nodes.clear();
  read_array(object, "nodes", events.nodes);
  if (const auto found = object.find("node_stages"); found != object.end() && found->is_array()) {
    for (std::size_t i = 0; i < events.nodes.size() && i < found->size(); ++i) {
      events.nodes[i].stage = named<Stage>(kStageNames, (*found)[i].get<std::string>()).value_or(Stage::other);
    }
  }
}

}  // namespace

std::string session_text(const Trace& trace, const TraceQuality& quality, std::int64_t time_offset_ns) {
  const TraceEvents& events = trace.events();
  json session = to_object(events.session);
  session["tier"] = static_cast<int>(events.session.tier);
  session["versions"] = events.session.versions;
  session["devices"] = to_array(events.session.devices);
  session["threads"] = to_array(events.session.threads);
  session["collectors"] = to_array(events.session.collectors);
  session["clocks"] = to_array(events.session.clocks);
  session["perturbation"] = to_object(events.session.perturbation);
  json stages = json::array();
  for (const GraphNode& node : events.nodes) {
    stages.push_back(name_of(kStageNames, node.stage));
  }
  const json text = {{"version", kTextVersion},          {"session", std::move(session)},
                     {"steps", to_array(events.steps)},  {"nodes", to_array(events.nodes)},
                     {"node_stages", std::move(stages)}, {"quality", quality_object(quality)},
                     {"time_offset_ns", time_offset_ns}};
  return text.dump(-1, ' ', false, json::error_handler_t::replace);
}

void read_session_text(std::string_view text, TraceEvents& events) {
  const std::string complaint = "The trace's account of itself cannot be read: ";
  try {
    read_object(parse_json(text), events);
  } catch (const json::exception& error) {
    throw std::runtime_error(complaint + error.what() + ".");
  } catch (const std::runtime_error& error) {
    throw std::runtime_error(complaint + error.what() + ".");
  }
}

}  // namespace decodelab
