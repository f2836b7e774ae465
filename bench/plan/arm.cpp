// Parses arms and writes them in canonical form.
#include "bench/plan/arm.h"

#include <algorithm>
#include <charconv>
#include <stdexcept>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/nearest_names.h"
#include "engine/drafts.h"
#include "variants/presets.h"

namespace decodelab {
namespace {

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (true) {
    const std::size_t end = text.find(separator);
    parts.emplace_back(text.substr(0, end));
    if (end == std::string_view::npos) {
      return parts;
    }
    text.remove_prefix(end + 1);
  }
}

/// The tail of a sentence about an unknown name.
std::string nearest(const std::string& name, const std::vector<std::string>& names) {
  const std::string guess = did_you_mean(name, names);
  return guess.empty() ? fmt::format("; the nearest are {}", fmt::join(nearest_names(name, names), ", "))
                       : "; " + guess;
}

[[noreturn]] void refuse_arm(std::string_view arm, const std::string& problem) {
  throw std::invalid_argument(fmt::format("--arm '{}': {}", arm, problem));
}

const Variant& variant_named(std::string_view arm, const std::string& name) {
  const auto& variants = registered_variants();
  const auto found = variants.find(name);
  if (found == variants.end()) {
    std::vector<std::string> names;
    for (const auto& [known, variant] : variants) {
      names.push_back(known);
    }
    refuse_arm(arm, fmt::format("there is no variant '{}'{} ('decodelab list variants' shows all)", name,
                                nearest(name, names)));
  }
  return found->second;
}

const Preset& preset_named(std::string_view arm, const std::string& name) {
  std::vector<std::string> names;
  for (const Preset& preset : presets()) {
    if (preset.name == name) {
      return preset;
    }
    names.push_back(preset.name);
  }
  if (registered_variants().contains(name)) {
    refuse_arm(arm, fmt::format("'{0}' is a variant, not a preset: write 'causal,+{0}'", name));
  }
  refuse_arm(arm,
             fmt::format("there is no preset '{}'{} ('decodelab list presets' shows all)", name, nearest(name, names)));
}

/// Parses `name=value`; the value is a word where the variant says so, and else a number.
std::pair<std::string, ParameterValues::mapped_type> parse_parameter(std::string_view arm, const Variant& variant,
                                                                     const std::string& text) {
  const std::size_t equals = text.find('=');
  const std::string name = text.substr(0, equals);
  const std::string value = equals == std::string::npos ? "" : text.substr(equals + 1);
  const auto spec = std::ranges::find(variant.parameters, name, &ParameterSpec::name);
  const bool is_word = spec != variant.parameters.end() && spec->default_word;
  if (is_word && !value.empty()) {
    return {name, value};
  }
  std::int64_t number = 0;
  const char* end = value.data() + value.size();
  const auto parsed = std::from_chars(value.data(), end, number);
  if (value.empty() || parsed.ec != std::errc() || parsed.ptr != end) {
    refuse_arm(arm, fmt::format("'{}' is no parameter: expected name={}, as in '{}:{}={}'", text,
                                is_word ? "word" : "number", variant.name,
                                is_word                      ? name
                                : variant.parameters.empty() ? "name"
                                                             : variant.parameters.front().name,
                                is_word ? "word" : "8"));
  }
  return {name, number};
}

/// Parses `name[:parameter=value]...` and checks it; parameters at their defaults are left out.
std::pair<std::string, ParameterValues> parse_variant(std::string_view arm, std::string_view text) {
  const std::vector<std::string> parts = split(text, ':');
  const Variant& variant = variant_named(arm, parts.front());
  ParameterValues given;
  for (std::size_t index = 1; index < parts.size(); ++index) {
    auto [name, value] = parse_parameter(arm, variant, parts[index]);
    if (!given.emplace(name, std::move(value)).second) {
      refuse_arm(arm, fmt::format("the parameter '{}' of '{}' is set twice", name, variant.name));
    }
  }
  try {
    complete_parameters(variant, given);
  } catch (const std::invalid_argument& error) {
    refuse_arm(arm, error.what());
  }
  for (const ParameterSpec& spec : variant.parameters) {
    const auto set = given.find(spec.name);
    const ParameterValues::mapped_type at_rest =
        spec.default_word ? ParameterValues::mapped_type(*spec.default_word) : spec.default_value;
    if (set != given.end() && set->second == at_rest) {
      given.erase(set);
    }
  }
  return {variant.name, given};
}

std::string spell(const std::string& name, const ParameterValues& parameters) {
  std::string text = name;
  for (const auto& [parameter, value] : parameters) {
    std::visit([&](const auto& set) { text += fmt::format(":{}={}", parameter, set); }, value);
  }
  return text;
}

VariantSet variants_of(const Preset& preset) {
  VariantSet variants;
  for (const std::string& text : preset.variants) {
    variants.insert(parse_variant(preset.name, text));
  }
  return variants;
}

std::string canonical(const Preset& preset, const VariantSet& before, const VariantSet& after) {
  for (const Preset& other : presets()) {
    if (variants_of(other) == after) {
      return other.name;
    }
  }
  std::string label = preset.name;
  for (const auto& [name, parameters] : after) {
    const auto held = before.find(name);
    if (held == before.end() || held->second != parameters) {
      label += ",+" + spell(name, parameters);
    }
  }
  for (const auto& [name, parameters] : before) {
    if (!after.contains(name)) {
      label += ",-" + name;
    }
  }
  return label;
}

}  // namespace

Arm read_arm(std::string_view text) {
  if (text.starts_with(kNullPrefix)) {
    Arm arm = read_arm(text.substr(kNullPrefix.size()));
    arm.label.insert(0, kNullPrefix);
    return arm;
  }
  if (text.starts_with(kSlowPrefix) && text.find(':') != std::string_view::npos) {
    const std::string_view number = text.substr(kSlowPrefix.size(), text.find(':') - kSlowPrefix.size());
    Arm arm = read_arm(text.substr(text.find(':') + 1));
    const auto parsed = std::from_chars(number.data(), number.data() + number.size(), arm.slow_ns);
    if (parsed.ec != std::errc() || parsed.ptr != number.data() + number.size() || arm.slow_ns < 1) {
      refuse_arm(text, fmt::format("'{}' is no time: expected nanoseconds, as in 'slow-25000:causal'", number));
    }
    arm.label.insert(0, fmt::format("{}{}:", kSlowPrefix, arm.slow_ns));
    return arm;
  }
  ArmRequest request;
  try {
    request = parse_arm_request(request_part(text));
  } catch (const std::invalid_argument& error) {
    refuse_arm(text, error.what());
  }
  const std::vector<std::string> words = split(variants_part(text), ',');
  const Preset& preset = preset_named(text, words.front());
  const VariantSet before = variants_of(preset);
  VariantSet after = before;
  for (std::size_t index = 1; index < words.size(); ++index) {
    const std::string_view word = words[index];
    if (word.starts_with('+')) {
      const auto [name, parameters] = parse_variant(text, word.substr(1));
      after[name] = parameters;
    } else if (word.starts_with('-')) {
      const std::string& name = variant_named(text, std::string(word.substr(1))).name;
      if (after.erase(name) == 0) {
        std::vector<std::string> held;
        for (const auto& [other, parameters] : after) {
          held.push_back(other);
        }
        refuse_arm(text, fmt::format("'{}' cannot be removed, because it is not there; the arm has {}", name,
                                     held.empty() ? "no variant" : fmt::format("{}", fmt::join(held, ", "))));
      }
    } else {
      refuse_arm(text, fmt::format("'{}' is neither added nor removed: write '+{}' or '-{}'", word, word, word));
    }
  }
  return {.label = canonical(preset, before, after) + to_string(request), .variants = after, .request = request};
}

std::string with_words(std::string_view label, std::string_view words) {
  return fmt::format("{}{}{}", variants_part(label), words, request_part(label));
}

Arm parse_arm(std::string_view text) {
  Arm arm = read_arm(text);
  try {
    bind_arm(arm, EnginePlan{});
  } catch (const std::invalid_argument& error) {
    refuse_arm(text, error.what());
  }
  return arm;
}

Arm parse_plain_arm(std::string_view text, std::string_view why_not) {
  Arm arm = parse_arm(text);
  if (arm.request.any()) {
    refuse_arm(text, fmt::format("settings behind '@' do not go here: {}", why_not));
  }
  return arm;
}

EnginePlan bind_arm(const Arm& arm, EnginePlan base) {
  for (const auto& [name, parameters] : arm.variants) {
    const Variant& variant = registered_variants().at(name);
    variant.apply(base, complete_parameters(variant, parameters));
  }
  for (const auto& [name, parameters] : arm.variants) {
    const Variant& variant = registered_variants().at(name);
    if (const std::string reason = variant.conflict ? variant.conflict(base) : ""; !reason.empty()) {
      throw std::invalid_argument(reason);
    }
  }
  return base;
}

Fidelity fidelity_of(const Arm& arm) {
  Fidelity least;
  for (const auto& [name, parameters] : arm.variants) {
    const Fidelity& fidelity = registered_variants().at(name).fidelity;
    least.logit_bound = std::max(least.logit_bound, fidelity.logit_bound);
    if (!fidelity.held_to.empty()) {
      least.held_to = fidelity.held_to;
    }
  }
  return least;
}

namespace {

/// Returns why the arm's other variants cannot run on its draft, which is there; empty where they can.
std::string reason_against_variants_of_draft(const Arm& arm, const RunsOn& where) {
  const std::optional<std::string>& draft = where.plan->proposer.value().draft;
  if (!draft || *draft == kSelfDraft) {
    return "";
  }
  const RunsOn on_draft{
      .config = draft_named(*draft, *where.drafts), .dtype = where.dtype, .device = where.device, .plan = where.plan};
  for (const auto& [name, parameters] : arm.variants) {
    const Variant& variant = registered_variants().at(name);
    if (name == where.plan->proposer.variant() || !variant.unsupported) {
      continue;
    }
    if (const std::string reason = variant.unsupported(on_draft); !reason.empty()) {
      return fmt::format("the draft decodes as the model does: {}: {}", name, reason);
    }
  }
  return "";
}

}  // namespace

std::string unsupported_reason(const Arm& arm, RunsOn where) {
  EnginePlan plan;
  try {
    plan = bind_arm(arm, EnginePlan{});
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  where.plan = &plan;
  for (const auto& [name, parameters] : arm.variants) {
    const Variant& variant = registered_variants().at(name);
    if (variant.unsupported) {
      if (const std::string reason = variant.unsupported(where); !reason.empty()) {
        return fmt::format("{}: {}", name, reason);
      }
    }
  }
  return reason_against_variants_of_draft(arm, where);
}

}  // namespace decodelab
