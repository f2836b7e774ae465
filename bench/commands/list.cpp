// `decodelab list`: what can be named on a command line.
#include <functional>
#include <memory>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "bench/commands/commands.h"
#include "engine/checkpoint/synthetic.h"
#include "engine/plan.h"
#include "engine/runtime.h"
#include "variants/presets.h"
#include "variants/registry.h"

namespace decodelab {
namespace {

void list_variants() {
  for (const auto& [name, variant] : registered_variants()) {
    fmt::print("  {}\n      {}\n      slots: {}\n", name, variant.summary, fmt::join(slots_bound_by(variant), ", "));
    for (const ParameterSpec& parameter : variant.parameters) {
      if (parameter.default_word) {
        fmt::print("      :{}=word  {}{}\n", parameter.name, parameter.help,
                   parameter.default_word->empty() ? "" : fmt::format(" (default {})", *parameter.default_word));
      } else {
        fmt::print("      :{}=n  {} (default {})\n", parameter.name, parameter.help, parameter.default_value);
      }
    }
    if (!variant.fidelity.exact()) {
      fmt::print("      lossy: a logit may be off by {} of the largest\n", variant.fidelity.logit_bound);
    }
    fmt::print("      source: {}\n", variant.source);
  }
}

void list_presets() {
  for (const Preset& preset : presets()) {
    fmt::print("  {:<10} {}\n", preset.name, preset.summary);
    if (!preset.variants.empty()) {
      fmt::print("  {:<10} = causal,+{}\n", "", fmt::join(preset.variants, ",+"));
    }
  }
}

void list_models() {
  for (const std::string& name : synthetic_names()) {
    const ModelConfig config = *synthetic_config(name);
    fmt::print("  {:<24} {:>7.1f} M parameters, {} layers, {} wide, {} heads, vocabulary {}, {} positions\n", name,
               static_cast<double>(parameter_count(config)) / 1e6, config.layers, config.hidden_size, config.heads,
               config.vocabulary_size, config.positions);
  }
  fmt::print("  smollm2                  SmolLM2-135M-Instruct; 'decodelab fetch smollm2' downloads it (93 MB)\n");
  fmt::print("  DIRECTORY                a Hugging Face checkpoint: config.json and safetensors\n");
}

void list_slots() {
  for (const BoundSlot& slot : slots_of(EnginePlan{})) {
    std::vector<std::string> bound_by;
    for (const auto& [name, variant] : registered_variants()) {
      for (const std::string& other : slots_bound_by(variant)) {
        if (other == slot.slot) {
          bound_by.push_back(name);
        }
      }
    }
    fmt::print("  {:<18} {}\n", slot.slot,
               bound_by.empty() ? "the reference only" : fmt::format("{}", fmt::join(bound_by, ", ")));
  }
}

void list_devices() {
  for (const std::string& device : present_devices()) {
    fmt::print("  {}\n", device);
  }
}

const std::vector<std::pair<std::string, std::function<void()>>> kLists{{"variants", list_variants},
                                                                        {"presets", list_presets},
                                                                        {"models", list_models},
                                                                        {"slots", list_slots},
                                                                        {"devices", list_devices}};

}  // namespace

void add_list_command(CLI::App& app, ExitCode& exit_code) {
  auto wanted = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand("list", "Show variants, presets, models, slots and devices.");
  std::vector<std::string> names;
  for (const auto& [name, print] : kLists) {
    names.push_back(name);
  }
  command->add_option("what", *wanted, "One of them; all where nothing is said")->check(CLI::IsMember(names));
  command->footer("Example:\n  decodelab list variants");
  command->callback([wanted, &exit_code] {
    for (const auto& [name, print] : kLists) {
      if (wanted->empty() || *wanted == name) {
        fmt::print("{}:\n", name);
        print();
      }
    }
    exit_code = ExitCode::ok;
  });
}

}  // namespace decodelab
