// Writes and reads the lines of the worker protocol.
#include "bench/measure/process/worker_protocol.h"

#include <algorithm>
#include <bit>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <numeric>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "bench/measure/warmup.h"
#include "bench/plan/sampling_json.h"
#include "bench/plan/step_scope.h"

namespace decodelab {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kQuotedReply = 120;

std::string line_of(const Json& json) { return json.dump(-1, ' ', true, Json::error_handler_t::replace); }

[[noreturn]] void refuse(std::string_view line, const std::string& why) {
  throw WorkerError(RowStatus::failed,
                    fmt::format("the worker broke the protocol: {}, in {}{}", why, line.substr(0, kQuotedReply),
                                line.size() > kQuotedReply ? " ..." : ""));
}

/// Runs `read` on the reply named `kind`.
template <typename Read>
auto read_reply(std::string_view line, std::string_view kind, Read&& read) {
  Json reply;
  try {
    reply = Json::parse(line);
  } catch (const Json::exception&) {
    refuse(line, fmt::format("expected the reply '{}' as one JSON object", kind));
  }
  const std::string got =
      reply.is_object() ? reply.value("reply", Json()).is_string() ? reply["reply"] : Json("none") : Json("none");
  if (got == "error") {
    const std::string what = reply.value("kind", Json()).is_string() ? reply["kind"] : Json("failed");
    const std::string message = reply.value("message", Json()).is_string() ? reply["message"] : Json("no reason given");
    throw WorkerError(what == "oom"           ? RowStatus::oom
                      : what == "unsupported" ? RowStatus::unsupported
                                              : RowStatus::failed,
                      message.substr(0, message.find('\n')));
  }
  if (got != kind) {
    refuse(line, fmt::format("expected the reply '{}'", kind));
  }
  try {
    return read(reply);
  } catch (const Json::exception& error) {
    refuse(line, error.what());
  }
}

Json cell_json(const CellRecord& cell) {
  return {{"phase", cell.phase}, {"batch", cell.batch},   {"length", cell.length},
          {"dtype", cell.dtype}, {"device", cell.device}, {"threads", cell.threads},
          {"scope", cell.scope}, {"fill", cell.fill},     {"steps", cell.steps}};
}

Json warmup_json() {
  return {{"minimum_ns", kWarmupMinimumNs},       {"window", kWarmupWindow},
          {"quiet_share", kWarmupQuietShare},     {"slow_step_ns", kWarmupSlowStepNs},
          {"maximum_steps", kWarmupMaximumSteps}, {"maximum_ns", kWarmupMaximumNs}};
}

/// Read what a reply says of a visit's warm-up, and of its steps.
void read_warmup(const Json& reply, VisitTimes& times) {
  times.warmup_steps = reply.at("warmup_steps");
  times.warmup_ns = reply.value("warmup_ns", std::int64_t{0});
  times.quiet = reply.at("quiet");
}

/// Returns whether a flag is one word, as those of this program are.
bool is_flag(const std::string& word) {
  constexpr std::size_t kLongestFlag = 60;
  return !word.empty() && word.size() <= kLongestFlag && std::ranges::all_of(word, [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '-' || c == '_' || c == ':' || c == '.';
  });
}

void read_steps(std::string_view line, const Json& reply, VisitTimes& times) {
  times.flags = reply.value("flags", std::vector<std::string>{});
  if (!std::ranges::all_of(times.flags, is_flag)) {
    refuse(line, "a flag is no word");
  }
  times.wall_ns = reply.at("wall_ns");
  times.samples_ns = reply.at("samples_ns").get<std::vector<std::int64_t>>();
  if (std::ranges::any_of(times.samples_ns, [](std::int64_t sample) { return sample <= 0; })) {
    refuse(line, "a step took no time");
  }
}

std::vector<std::vector<float>> read_logits(const std::filesystem::path& path, std::size_t steps,
                                            std::size_t row_values, std::string_view line) {
  static_assert(std::endian::native == std::endian::little, "the logits file is little-endian");
  std::vector<std::vector<float>> logits;
  std::ifstream file(path, std::ios::binary);
  for (std::size_t step = 0; step < steps && file; ++step) {
    logits.emplace_back(row_values);
    file.read(reinterpret_cast<char*>(logits.back().data()), static_cast<std::streamsize>(row_values * sizeof(float)));
  }
  const bool whole = file && file.peek() == std::ifstream::traits_type::eof();
  file.close();
  std::error_code ignored;
  std::filesystem::remove(path, ignored);
  if (!whole) {
    refuse(line, fmt::format("the logits file should hold {} steps of {} numbers", steps, row_values));
  }
  return logits;
}

/// Adds what marks a row to a reply that holds times.
std::string with_flags(Json reply, const std::vector<std::string>& flags) {
  if (!flags.empty()) {
    reply["flags"] = flags;
  }
  return line_of(reply);
}

}  // namespace

std::int64_t WorkerLoad::samples_of(const CellRecord& cell) const {
  return decodelab::samples_of(request, cell.phase, cell.scope);
}

std::string hello_request() {
  return line_of({{"request", "hello"}, {"protocol", kOldestProtocol}, {"newest", kNewestProtocol}});
}

std::string load_request(const WorkerLoad& load) {
  return line_of({{"request", "load"},
                  {"model", load.model},
                  {"dtype", load.dtype},
                  {"device", load.device},
                  {"threads", load.threads},
                  {"seed", load.seed},
                  {"max_tokens", load.max_tokens}});
}

std::string prepare_request(const CellRecord& cell, const WorkerLoad& load, std::int64_t room,
                            const std::vector<std::vector<std::int64_t>>& prompts, std::int64_t protocol,
                            const BatchWork* requests) {
  Json request{{"request", "prepare"},
               {"cell", cell_json(cell)},
               {"max_tokens", load.max_tokens},
               {"room", room},
               {"prompts", prompts}};
  if (protocol > kOldestProtocol) {
    request["samples"] = load.samples_of(cell);
    if (load.request.prefix) {
      request["prefix_tokens"] = load.request.prefix_tokens(cell.length);
    }
    request["sampling"] = load.sampling.plain_greedy() ? Json() : sampling_to_json(load.sampling);
    request["ignore_eos"] = true;
    for (std::size_t index = 0; requests != nullptr && index < requests->planned.size(); ++index) {
      const PlannedRequest& planned = requests->planned[index];
      request["requests"].push_back(
          {{"prompt", requests->prompts[index]}, {"new_tokens", planned.new_tokens}, {"arrival", planned.arrival}});
    }
  }
  return line_of(request);
}

std::string outputs_request(std::int64_t steps, const OutputTrace* forced, bool logits) {
  Json request{{"request", "outputs"}, {"steps", steps}, {"forced", nullptr}, {"logits", logits}};
  if (forced != nullptr) {
    request["forced"] = forced->tokens;
    request["first"] = forced->first;
  }
  return line_of(request);
}

std::string counters_request() { return line_of({{"request", "counters"}}); }

std::string visit_request(std::int64_t steps) {
  return line_of({{"request", "visit"}, {"steps", steps}, {"warmup", warmup_json()}});
}

std::string begin_request(std::int64_t steps) {
  return line_of({{"request", "begin"}, {"steps", steps}, {"warmup", warmup_json()}});
}

std::string slice_request(std::int64_t steps) { return line_of({{"request", "turn"}, {"steps", steps}}); }

std::string bye_request() { return line_of({{"request", "bye"}}); }

WorkerHello parse_hello(std::string_view line) {
  return read_reply(line, "hello", [&](const Json& reply) {
    const Json& protocol = reply.at("protocol");
    if (!protocol.is_number_integer() || protocol < kOldestProtocol || protocol > kNewestProtocol) {
      refuse(line, fmt::format("it speaks version {} and this program {} to {}", line_of(protocol), kOldestProtocol,
                               kNewestProtocol));
    }
    WorkerHello hello{.protocol = protocol,
                      .engine = reply.at("engine"),
                      .version = reply.at("version"),
                      .settings_json = line_of(reply.value("settings", Json::object())),
                      .phases = reply.at("phases"),
                      .scopes = reply.value("scopes", std::vector<std::string>{}),
                      .fills = reply.at("fills"),
                      .dtypes = reply.at("dtypes"),
                      .devices = reply.at("devices"),
                      .exact = reply.value("exact", false),
                      .forced = reply.value("forced", true),
                      .slices = reply.value("turns", false),
                      .samples = reply.value("samples", false),
                      .sampling = reply.value("sampling", std::vector<std::string>{}),
                      .prefixes = reply.value("prefixes", false)};
    if (hello.engine.empty() || hello.version.empty()) {
      refuse(line, "engine and version must not be empty");
    }
    return hello;
  });
}

WorkerLoaded parse_loaded(std::string_view line) {
  return read_reply(line, "loaded", [&](const Json& reply) {
    WorkerLoaded loaded{.settings_json = line_of(reply.value("settings", Json::object())),
                        .logit_bound = reply.value("logit_bound", 0.0)};
    if (!(loaded.logit_bound >= 0 && loaded.logit_bound < 1)) {
      refuse(line, "logit_bound must be at least 0 and below 1");
    }
    return loaded;
  });
}

void parse_prepared(std::string_view line) {
  read_reply(line, "prepared", [](const Json&) { return 0; });
}

Probe parse_counters(std::string_view line) {
  return read_reply(line, "counters", [&](const Json& reply) {
    Probe probe{.peak_bytes = std::nullopt,
                .counters = reply.value("counters", Counters{}),
                .unsteady = reply.value("unsteady", std::vector<std::string>{}),
                .engaged = std::nullopt,
                .missing = reply.value("missing", ""),
                .step_ns = reply.at("step_ns")};
    if (const Json peak = reply.value("peak_bytes", Json()); !peak.is_null()) {
      probe.peak_bytes = peak.get<std::int64_t>();
    }
    if (const Json engaged = reply.value("engaged", Json()); !engaged.is_null()) {
      probe.engaged = engaged.get<bool>();
    }
    if (probe.step_ns <= 0) {
      refuse(line, "step_ns must be above 0");
    }
    return probe;
  });
}

VisitTimes parse_visit(std::string_view line) {
  return read_reply(line, "visit", [&](const Json& reply) {
    VisitTimes times;
    read_warmup(reply, times);
    read_steps(line, reply, times);
    return times;
  });
}

VisitTimes parse_begun(std::string_view line) {
  return read_reply(line, "begun", [](const Json& reply) {
    VisitTimes times;
    read_warmup(reply, times);
    return times;
  });
}

VisitTimes parse_slice(std::string_view line) {
  return read_reply(line, "turn", [&](const Json& reply) {
    VisitTimes times;
    read_steps(line, reply, times);
    return times;
  });
}

SideWork parse_side_work(std::string_view line) {
  if (line.find("\"spent\"") == std::string_view::npos) {
    return {};
  }
  const Json reply = Json::parse(line, nullptr, false);
  const Json spent = reply.is_object() ? reply.value("spent", Json()) : Json();
  const auto part = [&](const char* name) {
    const Json value = spent.is_object() ? spent.value(name, Json()) : Json();
    return value.is_number_integer() ? std::max<std::int64_t>(value.get<std::int64_t>(), 0) : 0;
  };
  return {.loading_ns = part("loading_ns"), .packing_ns = part("packing_ns"), .filling_ns = part("filling_ns")};
}

OutputTrace parse_outputs(std::string_view line, std::int64_t rows) {
  return read_reply(line, "outputs", [&](const Json& reply) {
    OutputTrace trace{.first = reply.value("first", std::vector<std::int64_t>{}),
                      .tokens = reply.at("tokens"),
                      .logits = {},
                      .batch = rows,
                      .vocabulary = 0};
    for (const auto& row : trace.tokens) {
      if (std::ssize(row) != trace.batch) {
        refuse(line, fmt::format("expected {} tokens in each step, got {}", trace.batch, row.size()));
      }
    }
    if (const Json file = reply.value("logits_file", Json()); !file.is_null()) {
      trace.vocabulary = reply.at("vocabulary");
      if (trace.vocabulary < 1) {
        refuse(line, "vocabulary must be at least 1");
      }
      trace.logits = read_logits(file.get<std::string>(), trace.tokens.size(),
                                 static_cast<std::size_t>(trace.batch * trace.vocabulary), line);
    }
    return trace;
  });
}

WorkerRequest parse_request(std::string_view line) {
  try {
    const Json json = Json::parse(line);
    WorkerRequest request{.kind = json.at("request")};
    if (request.kind == "hello") {
      request.protocol = std::clamp(json.value("newest", kOldestProtocol), kOldestProtocol, kNewestProtocol);
    } else if (request.kind == "load") {
      request.load = {.model = json.at("model"),
                      .dtype = json.at("dtype"),
                      .device = json.at("device"),
                      .threads = json.at("threads"),
                      .seed = json.at("seed"),
                      .max_tokens = json.at("max_tokens")};
    } else if (request.kind == "prepare") {
      const Json& cell = json.at("cell");
      request.cell = {.phase = phase_from_string(cell.at("phase").get<std::string>()),
                      .batch = cell.at("batch"),
                      .length = cell.at("length"),
                      .dtype = cell.at("dtype"),
                      .device = cell.at("device"),
                      .threads = cell.at("threads"),
                      .scope = cell.at("scope"),
                      .fill = cell.at("fill"),
                      .steps = cell.at("steps")};
      request.prompts = json.value("prompts", std::vector<std::vector<std::int64_t>>{});
      for (const Json& served : json.value("requests", Json::array())) {
        request.requests.prompts.push_back(served.at("prompt"));
        request.requests.planned.push_back({.prompt_tokens = std::ssize(request.requests.prompts.back()),
                                            .new_tokens = served.at("new_tokens"),
                                            .arrival = served.at("arrival")});
      }
    } else if (request.kind == "outputs" || request.kind == "visit" || request.kind == "begin" ||
               request.kind == "turn") {
      request.steps = json.at("steps");
      request.logits = json.value("logits", true);
      if (const Json forced = json.value("forced", Json()); !forced.is_null()) {
        request.forced.emplace();
        request.forced->tokens = forced.get<std::vector<std::vector<std::int64_t>>>();
        request.forced->first = json.value("first", std::vector<std::int64_t>{});
      }
    }
    return request;
  } catch (const Json::exception& error) {
    throw std::invalid_argument(
        fmt::format("this line is no request of protocol {} ({})", kNewestProtocol, error.what()));
  }
}

std::string hello_reply(const WorkerHello& hello, std::int64_t protocol) {
  Json reply{{"reply", "hello"},
             {"protocol", protocol},
             {"engine", hello.engine},
             {"version", hello.version},
             {"settings", Json::parse(hello.settings_json)},
             {"phases", hello.phases},
             {"fills", hello.fills},
             {"dtypes", hello.dtypes},
             {"devices", hello.devices},
             {"exact", hello.exact},
             {"forced", hello.forced},
             {"turns", hello.slices}};
  if (!hello.scopes.empty()) {
    reply["scopes"] = hello.scopes;
  }
  if (protocol > kOldestProtocol) {
    reply["samples"] = hello.samples;
    reply["sampling"] = hello.sampling;
    reply["prefixes"] = hello.prefixes;
  }
  return line_of(reply);
}

std::string done_reply(std::string_view kind) { return line_of({{"reply", kind}}); }

std::string loaded_reply(double logit_bound, const std::string& settings_json) {
  return line_of({{"reply", "loaded"}, {"settings", Json::parse(settings_json)}, {"logit_bound", logit_bound}});
}

std::string outputs_reply(const OutputTrace& trace, const std::string& logits_file) {
  Json reply{{"reply", "outputs"},
             {"first", trace.first},
             {"tokens", trace.tokens},
             {"logits_file", nullptr},
             {"vocabulary", trace.vocabulary}};
  if (!logits_file.empty()) {
    reply["logits_file"] = logits_file;
  }
  return line_of(reply);
}

std::string counters_reply(const Probe& probe) {
  Json reply{{"reply", "counters"},        {"step_ns", probe.step_ns}, {"counters", probe.counters},
             {"unsteady", probe.unsteady}, {"missing", probe.missing}, {"peak_bytes", nullptr},
             {"engaged", nullptr}};
  if (probe.peak_bytes) {
    reply["peak_bytes"] = *probe.peak_bytes;
  }
  if (probe.engaged) {
    reply["engaged"] = *probe.engaged;
  }
  return line_of(reply);
}

std::string visit_reply(const VisitTimes& times) {
  return with_flags({{"reply", "visit"},
                     {"warmup_steps", times.warmup_steps},
                     {"warmup_ns", times.warmup_ns},
                     {"quiet", times.quiet},
                     {"wall_ns", times.wall_ns},
                     {"samples_ns", times.samples_ns}},
                    times.flags);
}

std::string begun_reply(const VisitTimes& times) {
  return line_of({{"reply", "begun"},
                  {"warmup_steps", times.warmup_steps},
                  {"warmup_ns", times.warmup_ns},
                  {"quiet", times.quiet}});
}

std::string slice_reply(const VisitTimes& times) {
  return with_flags({{"reply", "turn"}, {"wall_ns", times.wall_ns}, {"samples_ns", times.samples_ns}}, times.flags);
}

std::string with_side_work(std::string reply, const SideWork& side) {
  if (side == SideWork()) {
    return reply;
  }
  reply.pop_back();  // the brace that ends the object
  return reply + fmt::format(R"(,"spent":{{"loading_ns":{},"packing_ns":{},"filling_ns":{}}}}})", side.loading_ns,
                             side.packing_ns, side.filling_ns);
}

std::string error_reply(RowStatus status, std::string_view message) {
  const char* const kind = status == RowStatus::oom           ? "oom"
                           : status == RowStatus::unsupported ? "unsupported"
                                                              : "failed";
  return line_of({{"reply", "error"}, {"kind", kind}, {"message", message.substr(0, message.find('\n'))}});
}

}  // namespace decodelab
