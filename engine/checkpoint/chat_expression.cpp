// Reads an expression and computes it on the way; what does not decide its value is only read.
#include "engine/checkpoint/chat_expression.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdint>
#include <stdexcept>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/text.h"

namespace decodelab {
namespace {

constexpr int kMaxNesting = 100;

bool is_space(char letter) { return std::isspace(static_cast<unsigned char>(letter)) != 0; }
bool begins_name(char letter) { return std::isalpha(static_cast<unsigned char>(letter)) != 0 || letter == '_'; }
bool continues_name(char letter) { return std::isalnum(static_cast<unsigned char>(letter)) != 0 || letter == '_'; }

/// One expression; each function reads the part that it is named after. Where `live_` is false nothing is computed.
class ChatExpression {
 public:
  ChatExpression(std::string_view text, const ChatNames& names) : text_(text), names_(names) {}

  ChatValue value() {
    ChatValue result = conditional();
    skip_spaces();
    if (at_ < text_.size()) {
      refuse("an operator or the end");
    }
    return result;
  }

 private:
  [[noreturn]] void refuse(std::string_view expected) const {
    throw std::invalid_argument(
        fmt::format("expected {}, got {}", expected, at_ < text_.size() ? in_quotes(text_.substr(at_)) : "the end"));
  }

  void skip_spaces() {
    while (at_ < text_.size() && is_space(text_[at_])) {
      ++at_;
    }
  }

  bool take(std::string_view symbol) {
    skip_spaces();
    if (!text_.substr(at_).starts_with(symbol)) {
      return false;
    }
    at_ += symbol.size();
    return true;
  }

  /// Takes a word that is not the beginning of a longer one.
  bool take_word(std::string_view word) {
    skip_spaces();
    const std::string_view rest = text_.substr(at_);
    if (!rest.starts_with(word) || (rest.size() > word.size() && continues_name(rest[word.size()]))) {
      return false;
    }
    at_ += word.size();
    return true;
  }

  void require(std::string_view symbol) {
    if (!take(symbol)) {
      refuse(fmt::format("'{}'", symbol));
    }
  }

  std::string name() {
    skip_spaces();
    if (at_ >= text_.size() || !begins_name(text_[at_])) {
      refuse("a name");
    }
    const std::size_t first = at_;
    while (at_ < text_.size() && continues_name(text_[at_])) {
      ++at_;
    }
    return std::string(text_.substr(first, at_ - first));
  }

  template <typename Read>
  ChatValue read_if(bool live, Read read) {
    const bool outer = std::exchange(live_, live);
    ChatValue result = read();
    live_ = outer;
    return result;
  }

  /// Computes where this part is live.
  template <typename Compute>
  ChatValue where_live(Compute compute) const {
    return live_ ? ChatValue(compute()) : undefined_chat_value();
  }

  ChatValue conditional() {
    if (++nesting_ > kMaxNesting) {
      refuse(fmt::format("at most {} nested parts", kMaxNesting));
    }
    // The condition stands behind what it decides about, which is read twice.
    const std::size_t start = at_;
    ChatValue result = read_if(false, [&] { return disjunction(); });
    const bool has_condition = take_word("if");
    const bool chosen = !has_condition || is_true(disjunction());
    const std::size_t end = at_;
    if (live_ && chosen) {
      at_ = start;
      result = disjunction();
      at_ = end;
    }
    if (has_condition) {
      if (!take_word("else")) {
        refuse("'else'");
      }
      ChatValue other = read_if(live_ && !chosen, [&] { return conditional(); });
      result = chosen ? std::move(result) : std::move(other);
    }
    --nesting_;
    return result;
  }

  ChatValue disjunction() {
    ChatValue left = conjunction();
    while (take_word("or")) {
      const bool decided = is_true(left);
      ChatValue right = read_if(live_ && !decided, [&] { return conjunction(); });
      left = decided ? std::move(left) : std::move(right);
    }
    return left;
  }

  ChatValue conjunction() {
    ChatValue left = negation();
    while (take_word("and")) {
      const bool decided = !is_true(left);
      ChatValue right = read_if(live_ && !decided, [&] { return negation(); });
      left = decided ? std::move(left) : std::move(right);
    }
    return left;
  }

  ChatValue negation() {
    std::size_t count = 0;
    while (take_word("not")) {
      ++count;
    }
    ChatValue value = comparison();
    return count == 0 ? value : ChatValue(is_true(value) == (count % 2 == 0));
  }

  ChatValue comparison() {
    ChatValue left = sum();
    while (true) {
      const std::size_t before = at_;
      const bool negated_in = take_word("not");
      if (take_word("in")) {
        const ChatValue whole = sum();
        left = where_live([&] { return chat_contains(whole, left) != negated_in; });
        continue;
      }
      if (negated_in) {
        at_ = before;
        return left;
      }
      if (take_word("is")) {
        const bool negated = take_word("not");
        const std::string test = name();
        left = where_live([&] { return chat_test(left, test) != negated; });
      } else if (take("==")) {
        left = equal_chat_values(left, sum());
      } else if (take("!=")) {
        left = !equal_chat_values(left, sum());
      } else if (const std::string_view operation = one_of({"<=", ">=", "<", ">"}); !operation.empty()) {
        const ChatValue right = sum();
        left = where_live([&] { return chat_operation(operation, left, right); });
      } else {
        return left;
      }
    }
  }

  /// Takes the first of the symbols that comes next; returns an empty one where none does.
  std::string_view one_of(std::initializer_list<std::string_view> symbols) {
    const auto* const found = std::ranges::find_if(symbols, [&](std::string_view symbol) { return take(symbol); });
    return found == symbols.end() ? std::string_view() : *found;
  }

  ChatValue sum() {
    ChatValue left = product();
    while (true) {
      const std::string_view operation = one_of({"+", "-", "~"});
      if (operation.empty()) {
        return left;
      }
      const ChatValue right = product();
      left = where_live([&] {
        return operation == "~" ? ChatValue(chat_text(left) + chat_text(right))
                                : chat_operation(operation, left, right);
      });
    }
  }

  ChatValue product() {
    ChatValue left = negative();
    while (true) {
      const std::string_view operation = one_of({"*", "%"});
      if (operation.empty()) {
        return left;
      }
      const ChatValue right = negative();
      left = where_live([&] { return chat_operation(operation, left, right); });
    }
  }

  ChatValue negative() {
    if (!take("-")) {
      return postfix();
    }
    const ChatValue value = postfix();
    return where_live([&] { return chat_operation("-", 0, value); });
  }

  ChatValue postfix() {
    ChatValue value = primary();
    while (true) {
      if (take(".")) {
        const std::string attribute = name();
        if (take("(")) {
          const std::vector<ChatValue> given = arguments();
          value = where_live([&] { return chat_method(value, attribute, given); });
        } else {
          value = where_live([&] { return chat_member(value, attribute); });
        }
      } else if (take("[")) {
        value = subscript(value);
      } else if (take("|")) {
        const std::string filter = name();
        const std::vector<ChatValue> given = take("(") ? arguments() : std::vector<ChatValue>();
        value = where_live([&] { return chat_filter(value, filter, given); });
      } else {
        return value;
      }
    }
  }

  ChatValue subscript(const ChatValue& value) {
    ChatValue first = undefined_chat_value();
    if (!take(":")) {
      first = conditional();
      if (take("]")) {
        return where_live([&] { return chat_member(value, first); });
      }
      require(":");
    }
    ChatValue last = undefined_chat_value();
    if (!take("]")) {
      last = conditional();
      require("]");
    }
    return where_live([&] { return chat_slice(value, first, last); });
  }

  std::vector<ChatValue> arguments() { return values_before(")"); }

  std::vector<ChatValue> values_before(std::string_view end) {
    std::vector<ChatValue> values;
    while (!take(end)) {
      values.push_back(conditional());
      if (!take(",")) {
        require(end);
        break;
      }
    }
    return values;
  }

  ChatValue primary() {
    skip_spaces();
    const char letter = at_ < text_.size() ? text_[at_] : ' ';
    if (letter == '\'' || letter == '"') {
      return text_literal();
    }
    if (std::isdigit(static_cast<unsigned char>(letter)) != 0) {
      return number();
    }
    if (take("(")) {
      ChatValue value = conditional();
      require(")");
      return value;
    }
    if (take("[")) {
      return values_before("]");
    }
    return named(name());
  }

  ChatValue named(const std::string& word) {
    if (word == "true" || word == "True" || word == "false" || word == "False") {
      return word == "true" || word == "True";
    }
    if (word == "none" || word == "None") {
      return nullptr;
    }
    if (take("(")) {
      const std::vector<ChatValue> given = arguments();
      if (live_ && word == "raise_exception" && given.size() == 1) {
        throw std::invalid_argument("the template refuses this conversation: " + chat_text(given.front()));
      }
      if (live_) {
        throw std::invalid_argument(fmt::format("expected a function that is known, got {}", in_quotes(word)));
      }
      return undefined_chat_value();
    }
    const auto found = names_.find(word);
    return found == names_.end() || !live_ ? undefined_chat_value() : found->second;
  }

  ChatValue number() {
    std::int64_t value = 0;
    const auto parsed = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
    if (parsed.ec != std::errc()) {
      refuse("an integer below 2^63");
    }
    at_ = static_cast<std::size_t>(parsed.ptr - text_.data());
    return value;
  }

  ChatValue text_literal() {
    const char quote = text_[at_++];
    std::string value;
    while (at_ < text_.size() && text_[at_] != quote) {
      if (text_[at_] == '\\' && at_ + 1 < text_.size()) {
        constexpr std::string_view kEscapes = "ntr";
        constexpr std::string_view kMeanings = "\n\t\r";
        const std::size_t escape = kEscapes.find(text_[++at_]);
        value += escape == std::string_view::npos ? text_[at_] : kMeanings[escape];
      } else {
        value += text_[at_];
      }
      ++at_;
    }
    if (at_ >= text_.size()) {
      refuse(fmt::format("a closing {}", quote));
    }
    ++at_;
    return value;
  }

  std::string_view text_;
  const ChatNames& names_;
  std::size_t at_ = 0;
  int nesting_ = 0;
  bool live_ = true;
};

}  // namespace

ChatValue evaluate_chat_expression(std::string_view expression, const ChatNames& names) {
  try {
    return ChatExpression(expression, names).value();
  } catch (const std::invalid_argument& error) {
    throw std::invalid_argument(fmt::format("'{}': {}", expression, error.what()));
  }
}

}  // namespace decodelab
