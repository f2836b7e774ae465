// Turns a TOML file into arguments (CLI11 2.1 reads one for the program as a whole only, not for a subcommand).
#include "bench/commands/config_file.h"

#include <algorithm>
#include <optional>
#include <sstream>
#include <stdexcept>

#include <fmt/format.h>

#include "base/files.h"
#include "base/nearest_names.h"

namespace decodelab {
namespace {

constexpr const char* kFlag = "--config";

std::optional<std::string> config_path(const std::vector<std::string>& arguments) {
  const std::string with_equals = std::string(kFlag) + "=";
  for (std::size_t index = 0; index < arguments.size(); ++index) {
    if (arguments[index] == kFlag && index + 1 < arguments.size()) {
      return arguments[index + 1];
    }
    if (arguments[index].starts_with(with_equals)) {
      return arguments[index].substr(with_equals.size());
    }
  }
  return std::nullopt;
}

bool is_given(const CLI::Option& option, const std::vector<std::string>& arguments) {
  return std::ranges::any_of(arguments, [&](const std::string& argument) {
    return argument.starts_with('-') && option.check_name(argument.substr(0, argument.find('=')));
  });
}

const CLI::Option& option_named(const CLI::App& command, const std::string& path, const std::string& name) {
  if (const CLI::Option* option = command.get_option_no_throw("--" + name); option != nullptr && name != "config") {
    return *option;
  }
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options()) {
    names.insert(names.end(), option->get_lnames().begin(), option->get_lnames().end());
  }
  const std::string guess = did_you_mean(name, names);
  throw std::invalid_argument(fmt::format("{} '{}': '{}' is no flag of '{}'{}{}", kFlag, path, name, command.get_name(),
                                          guess.empty() ? "" : "; ", guess));
}

std::vector<CLI::ConfigItem> items_of(const std::string& path) {
  std::istringstream text(read_file(kFlag, path));
  try {
    return CLI::ConfigTOML().from_config(text);
  } catch (const CLI::Error& error) {
    throw std::invalid_argument(fmt::format("{} '{}': {}", kFlag, path, error.what()));
  }
}

}  // namespace

void add_config_option(CLI::App& command) {
  command.add_option(kFlag, "A TOML file of these flags, as in batch = \"1,8\"; the command line goes before it");
}

std::vector<std::string> with_config_file(const CLI::App& app, std::vector<std::string> arguments) {
  const auto path = config_path(arguments);
  const auto commands = app.get_subcommands(
      [&](const CLI::App* each) { return !arguments.empty() && each->get_name() == arguments.front(); });
  if (!path || commands.empty() || commands.front()->get_option_no_throw(kFlag) == nullptr) {
    return arguments;
  }
  const CLI::App& command = *commands.front();
  std::vector<std::string> added;
  for (const CLI::ConfigItem& item : items_of(*path)) {
    if (!item.parents.empty()) {
      throw std::invalid_argument(fmt::format("{} '{}': flags stand in no section, and '{}' stands in [{}]", kFlag,
                                              *path, item.name, item.parents.front()));
    }
    const CLI::Option& option = option_named(command, *path, item.name);
    if (is_given(option, arguments)) {
      continue;
    }
    const bool flag = option.get_items_expected_max() == 0;
    for (const std::string& value : item.inputs) {
      added.push_back(fmt::format("--{}={}", item.name, flag && value.empty() ? "true" : value));
    }
  }
  arguments.insert(arguments.end(), added.begin(), added.end());
  return arguments;
}

}  // namespace decodelab
