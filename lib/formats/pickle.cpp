// The pickle machine without its calls: a stack, marks on it, and a memo.
#include "formats/pickle.h"

#include "base/error.h"
#include "formats/tensors.h"

#include <bit>
#include <cstring>
#include <unordered_map>

namespace noether::formats {
namespace {

using Kind = PickleValue::Kind;

constexpr std::string_view kOrdered = "collections.OrderedDict";
constexpr std::size_t kLongest = std::size_t{1}
                                 << 22; // a value takes a hundred times its bytes; models need some kilobytes

class Machine {
public:
  Machine(std::string_view bytes, const std::string& name, const std::function<PickleName(std::string_view)>& known)
      : bytes_(bytes), name_(name), known_(known) {}

  Pickle run() {
    while (!done_) step();
    return std::move(pickle_);
  }

private:
  [[noreturn]] void damaged() const { throw Error("{}: damaged pickle at byte {}", name_, operation_); }

  std::string_view take(std::uint64_t size) {
    if (size > bytes_.size() - at_)
      throw Error("{}: cut short: a pickle that ends after {} bytes", name_, bytes_.size());
    at_ += size;
    return bytes_.substr(at_ - size, size);
  }
  template <class T> T number() {
    T value;
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
    return value;
  }
  std::string_view line() {
    const std::size_t end = bytes_.find('\n', at_);
    const std::string_view text = take(end == std::string_view::npos ? bytes_.size() + 1 : end - at_ + 1);
    return text.substr(0, text.size() - 1);
  }

  PickleValue& push(Kind kind) {
    pickle_.values.push_back({.kind = kind});
    stack_.push_back(&pickle_.values.back());
    return *stack_.back();
  }
  void push_text(Kind kind, std::string_view text) { push(kind).text = text; }
  void push_integer(std::int64_t value) { push(Kind::integer).integer = value; }
  void push_boolean(bool value) { push(Kind::boolean).integer = value ? 1 : 0; }

  PickleValue* top() const {
    if (stack_.size() <= floor()) damaged();
    return stack_.back();
  }
  PickleValue* top(Kind kind) const {
    PickleValue* value = top();
    if (value->kind != kind) damaged();
    return value;
  }
  PickleValue* pop() {
    PickleValue* value = top();
    stack_.pop_back();
    return value;
  }
  /// Nothing below a mark is touched before the mark is gone.
  std::size_t floor() const { return marks_.empty() ? 0 : marks_.back(); }
  std::vector<const PickleValue*> pop_count(std::size_t count) {
    if (stack_.size() < floor() + count) damaged();
    const auto first = stack_.end() - static_cast<std::ptrdiff_t>(count);
    std::vector<const PickleValue*> values(first, stack_.end());
    stack_.erase(first, stack_.end());
    return values;
  }
  std::vector<const PickleValue*> pop_marked() {
    if (marks_.empty()) damaged();
    std::vector<const PickleValue*> values = pop_count(stack_.size() - floor());
    marks_.pop_back();
    return values;
  }
  void extend(Kind kind, const std::vector<const PickleValue*>& values) {
    if (kind == Kind::dictionary && values.size() % 2 != 0) damaged();
    std::vector<const PickleValue*>& items = top(kind)->items;
    items.insert(items.end(), values.begin(), values.end());
  }
  void push_items(Kind kind, std::vector<const PickleValue*> items) {
    if (kind == Kind::dictionary && items.size() % 2 != 0) damaged();
    push(kind).items = std::move(items);
  }

  void memoize(std::uint64_t index) { memo_[index] = top(); }
  void recall(std::uint64_t index) {
    const auto found = memo_.find(index);
    if (found == memo_.end()) damaged();
    stack_.push_back(found->second);
  }

  PickleName taken_as(std::string_view global) const {
    return global == kOrdered ? PickleName::record : known_(global);
  }
  void push_global(const std::string& module, std::string_view function) {
    const std::string global = fmt::format("{}.{}", module, function);
    if (taken_as(global) == PickleName::refused)
      throw Error("{}: asks for {}, which is neither a tensor nor plain data: refused", name_, shown(global));
    push_text(Kind::global, global);
  }

  void call() {
    const PickleValue* arguments = pop();
    const PickleValue* function = pop();
    if (function->kind != Kind::global || arguments->kind != Kind::tuple) damaged();
    if (taken_as(function->text) == PickleName::value)
      push_items(Kind::call, {function, arguments});
    else if (arguments->items.empty())
      push(Kind::dictionary).record = function->text != kOrdered;
    else
      throw Error("{}: {} made from arguments, which is not supported", name_, function->text);
  }

  /// An object's state: fields of a record, and nothing that is wanted of an OrderedDict.
  void build() {
    const PickleValue* state = pop();
    PickleValue* object = top(Kind::dictionary);
    if (!object->record) return;
    if (state->kind != Kind::dictionary || state == object) damaged();
    object->items.insert(object->items.end(), state->items.begin(), state->items.end());
  }

  void push_long(std::string_view text) {
    if (text.size() > 8) throw Error("{}: a whole number of {} bytes, which is not supported", name_, text.size());
    std::uint64_t value = 0;
    std::memcpy(&value, text.data(), text.size());
    if (!text.empty() && text.size() < 8 && (static_cast<unsigned char>(text.back()) & 0x80U) != 0)
      value |= ~std::uint64_t{0} << (8 * text.size());
    push_integer(static_cast<std::int64_t>(value));
  }

  void step();

  std::string_view bytes_;
  const std::string& name_;
  const std::function<PickleName(std::string_view)>& known_;
  std::size_t at_ = 0, operation_ = 0;
  bool done_ = false;
  Pickle pickle_;
  std::vector<PickleValue*> stack_;
  std::vector<std::size_t> marks_; ///< heights of the stack
  std::unordered_map<std::uint64_t, PickleValue*> memo_;
};

void Machine::step() {
  operation_ = at_;
  const unsigned char code = number<unsigned char>();
  switch (code) {
  case 0x80: // PROTO
    if (const int protocol = number<unsigned char>(); protocol > 5)
      throw Error("{}: pickle protocol {}, expected 2 to 5", name_, protocol);
    break;
  case 0x95: // FRAME
    if (number<std::uint64_t>() > bytes_.size() - at_) damaged();
    break;
  case '.': // STOP
    pickle_.root = pop();
    done_ = true;
    break;
  case '(': // MARK
    marks_.push_back(stack_.size());
    break;
  case '0': // POP
    pop();
    break;
  case '1': // POP_MARK
    pop_marked();
    break;
  case '2': // DUP
    stack_.push_back(top());
    break;
  case 'N': // NONE
    push(Kind::none);
    break;
  case 0x88: // NEWTRUE
    push_boolean(true);
    break;
  case 0x89: // NEWFALSE
    push_boolean(false);
    break;
  case 'J': // BININT
    push_integer(number<std::int32_t>());
    break;
  case 'K': // BININT1
    push_integer(number<std::uint8_t>());
    break;
  case 'M': // BININT2
    push_integer(number<std::uint16_t>());
    break;
  case 0x8a: // LONG1
    push_long(take(number<std::uint8_t>()));
    break;
  case 'G': { // BINFLOAT, big-endian
    const auto bits = number<std::uint64_t>();
    push(Kind::real).real = std::bit_cast<double>(__builtin_bswap64(bits));
    break;
  }
  case 0x8c: // SHORT_BINUNICODE
    push_text(Kind::text, take(number<std::uint8_t>()));
    break;
  case 'X': // BINUNICODE
    push_text(Kind::text, take(number<std::uint32_t>()));
    break;
  case 0x8d: // BINUNICODE8
    push_text(Kind::text, take(number<std::uint64_t>()));
    break;
  case 'C': // SHORT_BINBYTES
    push_text(Kind::bytes, take(number<std::uint8_t>()));
    break;
  case 'B': // BINBYTES
    push_text(Kind::bytes, take(number<std::uint32_t>()));
    break;
  case ']': // EMPTY_LIST
    push(Kind::list);
    break;
  case 'a': { // APPEND
    const PickleValue* value = pop();
    extend(Kind::list, {value});
    break;
  }
  case 'e': { // APPENDS
    const auto values = pop_marked();
    extend(Kind::list, values);
    break;
  }
  case ')': // EMPTY_TUPLE
    push(Kind::tuple);
    break;
  case 't': // TUPLE
    push_items(Kind::tuple, pop_marked());
    break;
  case 0x85: // TUPLE1
  case 0x86: // TUPLE2
  case 0x87: // TUPLE3
    push_items(Kind::tuple, pop_count(code - 0x84U));
    break;
  case '}': // EMPTY_DICT
    push(Kind::dictionary);
    break;
  case 's': { // SETITEM
    const auto pair = pop_count(2);
    extend(Kind::dictionary, pair);
    break;
  }
  case 'u': { // SETITEMS
    const auto pairs = pop_marked();
    extend(Kind::dictionary, pairs);
    break;
  }
  case 'd': // DICT
    push_items(Kind::dictionary, pop_marked());
    break;
  case 'l': // LIST
    push_items(Kind::list, pop_marked());
    break;
  case 'c': { // GLOBAL
    const std::string module(line());
    push_global(module, line());
    break;
  }
  case 0x93: { // STACK_GLOBAL
    const std::string function = top(Kind::text)->text;
    pop();
    const std::string module = top(Kind::text)->text;
    pop();
    push_global(module, function);
    break;
  }
  case 'R':  // REDUCE
  case 0x81: // NEWOBJ
    call();
    break;
  case 'b': // BUILD
    build();
    break;
  case 'q': // BINPUT
    memoize(number<std::uint8_t>());
    break;
  case 'r': // LONG_BINPUT
    memoize(number<std::uint32_t>());
    break;
  case 0x94: // MEMOIZE
    memoize(memo_.size());
    break;
  case 'h': // BINGET
    recall(number<std::uint8_t>());
    break;
  case 'j': // LONG_BINGET
    recall(number<std::uint32_t>());
    break;
  case 'Q': { // BINPERSID
    const PickleValue* identity = pop();
    push_items(Kind::persistent, {identity});
    break;
  }
  default:
    throw Error("{}: pickle operation {:#04x} at byte {} is beyond plain data: refused", name_, code, operation_);
  }
}

} // namespace

Pickle parse_pickle(std::string_view bytes, const std::string& name,
                    const std::function<PickleName(std::string_view global)>& known) {
  if (bytes.size() > kLongest)
    throw Error("{}: a pickle of {} bytes, and at most {} are read", name, bytes.size(), kLongest);
  return Machine(bytes, name, known).run();
}

} // namespace noether::formats
