// Byte-pair encoding of one word: how vocabulary and merges are read and checked.
#include <array>
#include <stdexcept>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "base/text.h"
#include "engine/checkpoint/bpe.h"
#include "engine/checkpoint/byte_alphabet.h"

namespace decodelab {
namespace {

using nlohmann::json;

[[noreturn]] void refuse(const std::string& file_name, const std::string& expected, const std::string& got) {
  throw std::invalid_argument(fmt::format("{}: model: expected {}, got {}", file_name, expected, got));
}

constexpr std::array<std::string_view, 10> kModelKeys{"type",
                                                      "dropout",
                                                      "unk_token",
                                                      "continuing_subword_prefix",
                                                      "end_of_word_suffix",
                                                      "fuse_unk",
                                                      "byte_fallback",
                                                      "ignore_merges",
                                                      "vocab",
                                                      "merges"};

// Whether a key is absent, null, or means nothing.
bool idle(const json& model, const char* key) {
  const auto value = model.find(key);
  return value == model.end() || value->is_null() || *value == json("") || *value == json(false) ||
         (value->is_number() && *value == json(0));
}

// Keys of other kinds of BPE must be idle.
void check_kind(const json& model, Spelling spelling, const std::string& file_name) {
  const auto type = model.find("type");
  const bool named = type != model.end() && type->is_string();
  if ((named && *type != json("BPE")) || (!named && !model.contains("merges"))) {
    refuse(file_name, "BPE",
           fmt::format("{}; this tokenizer cannot be read, give token ids with --prompt-ids",
                       type == model.end() ? "no type" : shown(*type)));
  }
  for (const char* key : {"dropout", "continuing_subword_prefix", "end_of_word_suffix"}) {
    if (!idle(model, key)) {
      refuse(file_name, fmt::format("a BPE without '{}'", key), shown(model[key]));
    }
  }
  if (spelling == Spelling::bytes && !idle(model, "byte_fallback")) {
    refuse(file_name, "a byte-level BPE without 'byte_fallback'", shown(model["byte_fallback"]));
  }
}

// The two tokens of a merge: "a b" or ["a", "b"].
std::pair<std::string, std::string> merge_of(const json& merge, const std::string& file_name) {
  if (merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string()) {
    return {merge[0].get<std::string>(), merge[1].get<std::string>()};
  }
  if (merge.is_string()) {
    const auto& text = merge.get_ref<const std::string&>();
    const std::size_t space = text.find(' ');
    if (space != std::string::npos && text.find(' ', space + 1) == std::string::npos) {
      return {text.substr(0, space), text.substr(space + 1)};
    }
  }
  refuse(file_name, "merges as \"a b\" or [\"a\", \"b\"]", shown(merge));
}

}  // namespace

Bpe::Bpe(const json& model, Spelling spelling, const std::string& file_name) : spelling_(spelling) {
  if (!model.is_object()) {
    refuse(file_name, "an object", shown(model));
  }
  check_kind(model, spelling, file_name);
  check_keys(model, kModelKeys, file_name + ": model");
  const auto vocabulary = model.find("vocab");
  const auto merges = model.find("merges");
  if (vocabulary == model.end() || !vocabulary->is_object() || merges == model.end() || !merges->is_array()) {
    refuse(file_name, "'vocab' as an object and 'merges' as a list", "something else");
  }
  const auto ignore = model.find("ignore_merges");
  if (ignore != model.end() && !ignore->is_boolean()) {
    refuse(file_name, "'ignore_merges' as true or false", shown(*ignore));
  }
  ignore_merges_ = ignore != model.end() && ignore->get<bool>();
  read_vocabulary(*vocabulary, file_name);
  read_merges(*merges, file_name);
  if (spelling == Spelling::characters) {
    read_unknown(model, file_name);
  }
}

void Bpe::read_unknown(const json& model, const std::string& file_name) {
  if (!idle(model, "byte_fallback")) {
    byte_tokens_.emplace(*this);
  }
  fuse_unknown_ = !idle(model, "fuse_unk");
  if (idle(model, "unk_token")) {
    return;
  }
  const json& token = model["unk_token"];
  unknown_ = token.is_string() ? id_of(token.get<std::string>()) : -1;
  if (unknown_ < 0) {
    refuse(file_name, "'unk_token' as a token of the vocabulary", shown(token));
  }
}

void Bpe::read_vocabulary(const json& vocabulary, const std::string& file_name) {
  ids_.reserve(vocabulary.size());
  bytes_of_.reserve(vocabulary.size());
  id_of_byte_.fill(-1);
  for (const auto& [token, value] : vocabulary.items()) {
    if (!value.is_number_unsigned() || value.get<std::uint64_t>() > kMaxId) {
      refuse(file_name, fmt::format("an id from 0 to {} for the token {}", kMaxId, in_quotes(token)), shown(value));
    }
    const auto id = value.get<std::int64_t>();
    // A token with other characters (a special one, say) stands for itself and comes out of no merge.
    const auto bytes = spelling_ == Spelling::bytes ? from_byte_alphabet(token) : std::nullopt;
    if (bytes.has_value() && bytes->size() == 1) {
      id_of_byte_[static_cast<unsigned char>(bytes->front())] = id;
    }
    if (!bytes_of_.emplace(id, bytes.value_or(token)).second) {
      refuse(file_name, "every id once", fmt::format("{} twice, the second time for {}", id, in_quotes(token)));
    }
    ids_.emplace(token, id);
  }
}

void Bpe::read_merges(const json& merges, const std::string& file_name) {
  merges_.reserve(merges.size());
  std::int64_t rank = 0;
  for (const json& merge : merges) {
    if (merge.is_string() && merge.get_ref<const std::string&>().starts_with("#version")) {
      continue;  // The first line of a merges.txt, which old converters kept.
    }
    const auto [left, right] = merge_of(merge, file_name);
    for (const std::string& token : {left, right, left + right}) {
      if (id_of(token) < 0) {
        refuse(file_name, fmt::format("tokens of the vocabulary in the merge {}", shown(merge)),
               fmt::format("{}, which is not in it", in_quotes(token)));
      }
    }
    merges_.insert_or_assign({id_of(left), id_of(right)}, Merge{.rank = rank++, .result = id_of(left + right)});
  }
}

}  // namespace decodelab
