// Runs the statements of a chat template.
#include "engine/checkpoint/chat_template.h"

#include <algorithm>
#include <stdexcept>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "base/json_text.h"
#include "base/text.h"
#include "engine/checkpoint/chat_expression.h"

namespace decodelab {
namespace {

constexpr std::uintmax_t kMaxTemplateFile = 1'000'000;
constexpr std::uintmax_t kMaxTokenizerConfig = 100'000'000;
constexpr std::size_t kMaxPromptBytes = 10'000'000;
constexpr std::size_t kMaxStatements = 1'000'000;
constexpr int kMaxBlocks = 100;
constexpr std::string_view kBlanks = " \t";

/// A piece of a template: text as it is, an expression that is printed, or a statement.
struct TemplatePiece {
  enum class Kind { text, printed, statement };
  Kind kind;
  std::string text;
};

/// Takes the first word off.
std::string_view take_first_word(std::string_view& text) {
  const std::size_t end = text.find_first_of(" \t\n\r");
  const std::string_view word = text.substr(0, end);
  text = end == std::string_view::npos ? std::string_view() : trimmed(text.substr(end));
  return word;
}

/// Removes the blanks between the last newline and the end of a text that a block follows.
void drop_indentation(std::string& text) {
  const std::size_t last = text.find_last_not_of(kBlanks);
  if (last == std::string::npos || text[last] == '\n') {
    text.erase(last == std::string::npos ? 0 : last + 1);
  }
}

void drop_spaces_at_end(std::string& text) { text.resize(trimmed("." + text).size() - 1); }

/// Returns where `end` begins, not counting what stands in quotes.
std::size_t find_end(std::string_view text, std::size_t from, std::string_view end, bool has_quotes) {
  char quote = 0;
  for (std::size_t at = from; at + end.size() <= text.size(); ++at) {
    const char letter = text[at];
    if (quote != 0) {
      at += letter == '\\' ? 1 : 0;
      quote = letter == quote ? '\0' : quote;
    } else if (text.substr(at).starts_with(end)) {
      return at;
    } else if (has_quotes && (letter == '\'' || letter == '"')) {
      quote = letter;
    }
  }
  throw std::invalid_argument(fmt::format("expected '{}' behind {}", end,
                                          in_quotes(text.substr(from, std::min<std::size_t>(text.size() - from, 40)))));
}

std::vector<TemplatePiece> pieces_of(std::string_view text) {
  using Kind = TemplatePiece::Kind;
  std::vector<TemplatePiece> pieces;
  bool drop_newline = false;
  bool drop_spaces = false;
  std::size_t at = 0;
  while (at < text.size()) {
    std::size_t open = text.find('{', at);
    while (open != std::string_view::npos &&
           (open + 1 == text.size() || std::string_view("{%#").find(text[open + 1]) == std::string_view::npos)) {
      open = text.find('{', open + 1);
    }
    std::string plain(text.substr(at, open == std::string_view::npos ? open : open - at));
    if (drop_spaces) {
      plain = plain.substr(std::min(plain.size(), plain.find_first_not_of(" \t\n\r")));
    } else if (drop_newline && plain.starts_with('\n')) {
      plain.erase(0, 1);
    }
    if (open == std::string_view::npos) {
      pieces.push_back({.kind = Kind::text, .text = std::move(plain)});
      break;
    }
    const char sort = text[open + 1];
    std::size_t begin = open + 2;
    if (begin < text.size() && text[begin] == '-') {
      drop_spaces_at_end(plain);
      ++begin;
    } else if (sort != '{') {
      drop_indentation(plain);
    }
    pieces.push_back({.kind = Kind::text, .text = std::move(plain)});
    const std::string_view closing = sort == '{' ? "}}" : sort == '%' ? "%}" : "#}";
    const std::size_t end = find_end(text, begin, closing, sort != '#');
    drop_spaces = end > begin && text[end - 1] == '-';
    drop_newline = sort != '{';
    if (sort != '#') {
      const std::string_view inside = text.substr(begin, end - begin - (drop_spaces ? 1 : 0));
      pieces.push_back({.kind = sort == '{' ? Kind::printed : Kind::statement, .text = std::string(trimmed(inside))});
    }
    at = end + closing.size();
  }
  return pieces;
}

/// Runs through the pieces, each block by a function that returns the piece behind its end.
class TemplateRun {
 public:
  TemplateRun(std::vector<TemplatePiece> pieces, ChatNames names)
      : pieces_(std::move(pieces)), names_(std::move(names)) {}

  std::string prompt() {
    const std::size_t end = block(0, true);
    if (end < pieces_.size()) {
      throw std::invalid_argument(fmt::format("expected no '{}' outside of a block", pieces_[end].text));
    }
    return std::move(out_);
  }

 private:
  /// Runs, or passes by, the pieces up to the statement that ends the block, which it returns.
  std::size_t block(std::size_t at, bool live) {
    if (++nesting_ > kMaxBlocks) {
      throw std::invalid_argument(fmt::format("expected at most {} blocks in each other", kMaxBlocks));
    }
    while (at < pieces_.size()) {
      const TemplatePiece& piece = pieces_[at];
      if (piece.kind == TemplatePiece::Kind::statement) {
        std::string_view rest = piece.text;
        const std::string_view word = take_first_word(rest);
        if (word == "else" || word == "elif" || word == "endif" || word == "endfor") {
          break;
        }
        at = statement(at, word, rest, live);
        continue;
      }
      if (live) {
        print(piece.kind == TemplatePiece::Kind::text ? piece.text : printed(piece.text));
      }
      ++at;
    }
    --nesting_;
    return at;
  }

  std::string printed(const std::string& expression) const {
    const ChatValue value = evaluate_chat_expression(expression, names_);
    // Python would print a list or a mapping in a form of its own.
    if (value.is_structured()) {
      throw std::invalid_argument(fmt::format("'{}': expected a text or a number to print", expression));
    }
    return chat_text(value);
  }

  void print(const std::string& text) {
    if (text.size() > kMaxPromptBytes - out_.size()) {
      throw std::invalid_argument(fmt::format("expected a prompt of at most {} bytes", kMaxPromptBytes));
    }
    out_ += text;
  }

  std::size_t statement(std::size_t at, std::string_view word, std::string_view rest, bool live) {
    if (++statements_ > kMaxStatements) {
      throw std::invalid_argument(fmt::format("expected at most {} statements to run", kMaxStatements));
    }
    if (word == "if") {
      return branches(at, live);
    }
    if (word == "for") {
      return loop(at, rest, live);
    }
    if (word == "set") {
      if (live) {
        assign(rest);
      }
      return at + 1;
    }
    // Marks for training what the assistant said.
    if (word == "generation" || word == "endgeneration" || !live) {
      return at + 1;
    }
    throw std::invalid_argument(fmt::format("expected if, for or set, got {}", in_quotes(pieces_[at].text)));
  }

  std::size_t branches(std::size_t at, bool live) {
    bool wanted = live;
    while (at < pieces_.size()) {
      std::string_view rest = pieces_[at].text;
      const std::string_view word = take_first_word(rest);
      if (word == "endif") {
        return at + 1;
      }
      if (word == "endfor") {
        break;
      }
      const bool taken = wanted && (word == "else" || is_true(evaluate_chat_expression(rest, names_)));
      wanted = wanted && !taken;
      at = block(at + 1, taken);
    }
    throw std::invalid_argument("expected an endif for every if");
  }

  std::size_t loop(std::size_t at, std::string_view rest, bool live) {
    const std::string variable(take_first_word(rest));
    const ChatValue values =
        live && take_first_word(rest) == "in" ? evaluate_chat_expression(rest, names_) : ChatValue();
    if (live && !values.is_array()) {
      throw std::invalid_argument(fmt::format("expected 'for NAME in LIST', got {}", in_quotes(pieces_[at].text)));
    }
    // Names that are set inside are gone behind the loop, as in Jinja.
    const ChatNames outer = names_;
    std::size_t end = values.empty() ? block(at + 1, false) : at;
    for (std::size_t i = 0; i < values.size(); ++i) {
      names_ = outer;
      names_[variable] = values[i];
      names_["loop"] = {{"index", i + 1}, {"index0", i}, {"first", i == 0}, {"last", i + 1 == values.size()}};
      end = block(at + 1, true);
    }
    names_ = outer;
    if (end >= pieces_.size() || pieces_[end].text != "endfor") {
      throw std::invalid_argument("expected an endfor, and no else, for every for");
    }
    return end + 1;
  }

  void assign(std::string_view rest) {
    const std::size_t equals = rest.find('=');
    const std::string_view name = trimmed(rest.substr(0, equals));
    if (equals == std::string_view::npos || name.empty() || name.find_first_of(".[, ") != std::string_view::npos) {
      throw std::invalid_argument(fmt::format("expected 'set NAME = VALUE', got {}", in_quotes(rest)));
    }
    names_.insert_or_assign(std::string(name), evaluate_chat_expression(rest.substr(equals + 1), names_));
  }

  std::vector<TemplatePiece> pieces_;
  ChatNames names_;
  std::string out_;
  std::size_t statements_ = 0;
  int nesting_ = 0;
};

/// Special tokens stand as a text, or as an object with `content`.
std::string token_text(const nlohmann::json& config, const char* key) {
  const nlohmann::json token = config.value(key, nlohmann::json());
  if (token.is_object()) {
    return token.value("content", "");
  }
  return token.is_string() ? token.get<std::string>() : "";
}

/// The template stands as a text, or as a list of named ones.
std::string template_text(const nlohmann::json& config) {
  const nlohmann::json stored = config.value("chat_template", nlohmann::json());
  if (stored.is_array()) {
    for (const nlohmann::json& entry : stored) {
      if (entry.is_object() && entry.value("name", "") == "default") {
        return entry.value("template", "");
      }
    }
  }
  return stored.is_string() ? stored.get<std::string>() : "";
}

}  // namespace

std::string ChatTemplate::render(std::span<const ChatMessage> messages) const {
  if (text.empty()) {
    throw std::invalid_argument(
        fmt::format("{}: expected a chat template, got none; give the whole prompt as text or ids", file_name));
  }
  ChatValue turns = ChatValue::array();
  for (const ChatMessage& message : messages) {
    turns.push_back({{"role", message.role}, {"content", message.content}});
  }
  try {
    return TemplateRun(pieces_of(text), {{"messages", std::move(turns)},
                                         {"add_generation_prompt", true},
                                         {"bos_token", bos_token},
                                         {"eos_token", eos_token}})
        .prompt();
  } catch (const std::invalid_argument& error) {
    throw std::invalid_argument(
        fmt::format("{}: chat template: {}; give the whole prompt as text or ids", file_name, error.what()));
  }
}

ChatTemplate load_chat_template(const std::filesystem::path& directory) {
  const std::filesystem::path jinja = directory / "chat_template.jinja";
  const std::filesystem::path config_file = directory / "tokenizer_config.json";
  ChatTemplate result{.text = {}, .bos_token = {}, .eos_token = {}, .file_name = config_file.string()};
  if (std::filesystem::exists(config_file)) {
    const nlohmann::json config =
        parse_json_object(read_text_file(config_file, kMaxTokenizerConfig), config_file.string());
    try {
      result.text = template_text(config);
      result.bos_token = token_text(config, "bos_token");
      result.eos_token = token_text(config, "eos_token");
    } catch (const nlohmann::json::type_error&) {
      throw std::invalid_argument(fmt::format(
          "{}: expected texts for chat_template, bos_token and eos_token, got others", config_file.string()));
    }
  }
  if (std::filesystem::exists(jinja)) {
    result.text = read_text_file(jinja, kMaxTemplateFile);
    result.file_name = jinja.string();
  }
  return result;
}

}  // namespace decodelab
