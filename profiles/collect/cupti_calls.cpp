// Sorts functions of CUDA by their names.
#include "profiles/collect/cupti_calls.h"

#include <algorithm>
#include <array>
#include <cctype>

namespace decodelab {
namespace {

struct CallRule {
  std::string_view part;
  ApiKind kind;
};
/// The first rule whose part a name contains gives its kind.
constexpr std::array<CallRule, 12> kCallRules{{{"LaunchHostFunc", ApiKind::other},
                                               {"GraphLaunch", ApiKind::graph_launch},
                                               {"Launch", ApiKind::launch},
                                               {"Memcpy", ApiKind::copy},
                                               {"Memset", ApiKind::set},
                                               {"StreamSynchronize", ApiKind::synchronize},
                                               {"EventSynchronize", ApiKind::synchronize},
                                               {"DeviceSynchronize", ApiKind::synchronize},
                                               {"CtxSynchronize", ApiKind::synchronize},
                                               {"Alloc", ApiKind::allocate},
                                               {"Malloc", ApiKind::allocate},
                                               {"Free", ApiKind::allocate}}};

bool is_version(std::string_view suffix) {
  return suffix.size() > 1 && suffix[0] == 'v' &&
         std::ranges::all_of(suffix.substr(1), [](char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; });
}

}  // namespace

std::string plain_call_name(std::string_view callback_name) {
  while (callback_name.starts_with('_')) {
    callback_name.remove_prefix(1);
  }
  for (std::size_t bar = callback_name.rfind('_'); bar != std::string_view::npos; bar = callback_name.rfind('_')) {
    const std::string_view suffix = callback_name.substr(bar + 1);
    if (!is_version(suffix) && suffix != "ptsz" && suffix != "ptds") {
      break;
    }
    callback_name = callback_name.substr(0, bar);
  }
  return std::string(callback_name);
}

ApiKind call_kind(std::string_view plain_name) {
  const auto rule = std::ranges::find_if(
      kCallRules, [&](const CallRule& candidate) { return plain_name.find(candidate.part) != std::string_view::npos; });
  return rule == kCallRules.end() ? ApiKind::other : rule->kind;
}

}  // namespace decodelab
