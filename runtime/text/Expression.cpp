// Searching by PCRE2.
#include "runtime/text/Expression.h"

#include "runtime/support/Error.h"
#include "runtime/support/Shown.h"
#include "runtime/text/Utf8.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <array>

using namespace hydra::text;
using hydra::support::fail;
namespace support = hydra::support;

namespace {

template <auto Free> struct Deleter {
  template <typename T> void operator()(T *pointer) const { Free(pointer); }
};
using CodePointer = std::unique_ptr<pcre2_code, Deleter<pcre2_code_free>>;
using CompileContext = std::unique_ptr<pcre2_compile_context, Deleter<pcre2_compile_context_free>>;

std::string messageOf(int code) {
  std::array<PCRE2_UCHAR, 200> text = {};
  pcre2_get_error_message(code, text.data(), text.size());
  return reinterpret_cast<const char *>(text.data());
}

/// What a thread searches with.
struct Search {
  Search()
      : data(pcre2_match_data_create(1, nullptr)), context(pcre2_match_context_create(nullptr)),
        stack(pcre2_jit_stack_create(smallStack, largeStack, nullptr)) {
    if (!data || !context || !stack)
      throw std::bad_alloc();
    pcre2_jit_stack_assign(context.get(), nullptr, stack.get());
    constexpr uint32_t mostSteps = 10'000'000, mostKilobytes = 1 << 16;
    pcre2_set_match_limit(context.get(), mostSteps);
    pcre2_set_heap_limit(context.get(), mostKilobytes);
  }

  static constexpr size_t smallStack = size_t{32} << 10, largeStack = size_t{4} << 20;
  std::unique_ptr<pcre2_match_data, Deleter<pcre2_match_data_free>> data;
  std::unique_ptr<pcre2_match_context, Deleter<pcre2_match_context_free>> context;
  std::unique_ptr<pcre2_jit_stack, Deleter<pcre2_jit_stack_free>> stack;
};

} // namespace

struct Expression::Code {
  CodePointer compiled;
  std::string pattern; // as the file has it
};

Expression::Expression(std::string_view pattern)
    : code(std::make_unique<Code>(Code{nullptr, std::string(pattern)})) {
  const std::string text = translated(pattern);
  const CompileContext context(pcre2_compile_context_create(nullptr));
  if (!context)
    throw std::bad_alloc();
  pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF);
  int error = 0;
  size_t place = 0;
  code->compiled.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(),
                                     PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE |
                                         PCRE2_NO_AUTO_CAPTURE | PCRE2_NO_UTF_CHECK,
                                     &error, &place, context.get()));
  if (!code->compiled)
    fail("is the expression '{}': {}", support::shown(pattern), messageOf(error));
  // Where the machine allows no code to be made, the same is interpreted.
  pcre2_jit_compile(code->compiled.get(), PCRE2_JIT_COMPLETE);
}

Expression::~Expression() = default;
Expression::Expression(Expression &&) noexcept = default;

std::optional<Found> Expression::find(std::string_view text, size_t from) const {
  static thread_local const Search search;
  const int result =
      pcre2_match(code->compiled.get(), reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(),
                  from, PCRE2_NO_UTF_CHECK, search.data.get(), search.context.get());
  if (result == PCRE2_ERROR_NOMATCH)
    return std::nullopt;
  if (result < 0)
    fail("the expression '{}' cannot be searched for behind byte {} of the text: {}",
         support::shown(code->pattern), from, messageOf(result));
  const size_t *const places = pcre2_get_ovector_pointer(search.data.get());
  return Found{places[0], places[1]};
}

std::optional<Found> Pattern::find(std::string_view text, size_t from,
                                   std::optional<size_t> last) const {
  if (!expression) {
    const size_t begin = text.find(literal, from);
    if (begin == std::string_view::npos)
      return std::nullopt;
    return Found{begin, begin + literal.size()};
  }
  while (from <= text.size()) {
    const std::optional<Found> found = expression->find(text, from);
    // Nothing, right behind the match before, does not count.
    if (!found || found->end > found->begin || found->begin != last)
      return found;
    if (from == text.size())
      break;
    from += firstCharacter(text.substr(from)).bytes;
  }
  return std::nullopt;
}
