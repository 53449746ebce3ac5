// A pattern is a text or an expression.
#include "runtime/text/Patterns.h"

using namespace hydra::text;
namespace support = hydra::support;

Pattern hydra::text::makePattern(const Value &description) {
  Fields fields(description);
  const std::optional<Value> literal = fields.find("String"), expression = fields.find("Regex");
  fields.finish();
  if (literal.has_value() == expression.has_value())
    description.fail("must be a String or a Regex");
  if (literal) {
    if (literal->text().empty())
      literal->fail("is empty");
    return Pattern(std::string(literal->text()));
  }
  try {
    return Pattern(Expression(expression->text()));
  } catch (const support::Error &error) {
    expression->fail("{}", error.what());
  }
}
