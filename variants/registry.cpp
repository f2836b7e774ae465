// The one singleton of the project: the list of variants.
#include "variants/registry.h"

#include <algorithm>
#include <cctype>
#include <stdexcept>

#include <fmt/format.h>

namespace decodelab {
namespace {

std::map<std::string, Variant>& list() {
  static std::map<std::string, Variant> variants;
  return variants;
}

bool is_kebab_case(const std::string& name) {
  return !name.empty() && name.front() != '-' && name.back() != '-' &&
         std::ranges::all_of(name, [](unsigned char letter) {
           return std::islower(letter) != 0 || std::isdigit(letter) != 0 || letter == '-';
         });
}

}  // namespace

bool register_variant(Variant variant) {
  if (!is_kebab_case(variant.name)) {
    throw std::logic_error("variant '" + variant.name + "': a name is in kebab-case");
  }
  if (!variant.apply) {
    throw std::logic_error("variant '" + variant.name + "' binds nothing: it has no apply");
  }
  const std::string name = variant.name;
  if (!list().emplace(name, std::move(variant)).second) {
    throw std::logic_error("variant '" + name + "' is registered twice");
  }
  return true;
}

const std::map<std::string, Variant>& registered_variants() { return list(); }

std::string smallest_arm(const Variant& variant, const std::string& parameters) {
  std::string arm = "causal,+" + variant.name + parameters;
  for (const std::string& needed : variant.needs) {
    arm += ",+" + needed;
  }
  return arm;
}

std::vector<std::string> slots_bound_by(const Variant& variant) {
  EnginePlan plan;
  variant.apply(plan, complete_parameters(variant, {}));
  std::vector<std::string> bound;
  for (const BoundSlot& slot : slots_of(plan)) {
    if (!slot.variant.empty()) {
      bound.push_back(slot.slot);
    }
  }
  return bound;
}

Parameters complete_parameters(const Variant& variant, const ParameterValues& given) {
  ParameterValues values;
  for (const ParameterSpec& spec : variant.parameters) {
    if (spec.default_word) {
      values[spec.name] = *spec.default_word;
    } else {
      values[spec.name] = spec.default_value;
    }
  }
  for (const auto& [name, value] : given) {
    const auto spec = std::ranges::find(variant.parameters, name, &ParameterSpec::name);
    if (spec == variant.parameters.end()) {
      std::string known;
      for (const ParameterSpec& other : variant.parameters) {
        known += (known.empty() ? "" : ", ") + other.name;
      }
      throw std::invalid_argument(fmt::format("variant '{}' has no parameter '{}'; it has {}", variant.name, name,
                                              known.empty() ? "none" : known));
    }
    const auto* number = std::get_if<std::int64_t>(&value);
    if ((number == nullptr) != spec->default_word.has_value()) {
      throw std::invalid_argument(
          fmt::format("variant '{}': {} is a {}", variant.name, name, spec->default_word ? "word" : "number"));
    }
    if (number != nullptr && (*number < spec->minimum || *number > spec->maximum)) {
      throw std::invalid_argument(fmt::format("variant '{}': {}={} is outside of {} to {}", variant.name, name, *number,
                                              spec->minimum, spec->maximum));
    }
    values[name] = value;
  }
  return Parameters(std::move(values));
}

}  // namespace decodelab
