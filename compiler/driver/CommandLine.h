// Command lines of the compiler's tools: LLVM's parser, but one line per mistake, and value types
// that say what they expect.
#pragma once

#include "llvm/Support/CommandLine.h"

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <string>

namespace hydra {

/// Registers MLIR's own flags (--mlir-print-ir-after-all, --mlir-timing, …), hides every flag of
/// LLVM's libraries that is not in one of `categories`, and parses. False after one line on stderr
/// that names the first mistake: `hydra-opt: unknown flag '--presett'; did you mean '--preset'?`.
/// `--help` ends the program. What the flags say stays as it is from then on: libraries that parse
/// flags of their own, as the linker of kernels does, reset all that they know of.
bool parseCommandLine(int argc, const char *const *argv, llvm::StringRef overview,
                      llvm::ArrayRef<const llvm::cl::OptionCategory *> categories);

/// Prints `<program>: <message>` as one line on stderr. Only after parseCommandLine was called.
void printProblem(const llvm::Twine &message);

/// Prints to standard output. Throws support::Error when that takes no more.
void printOutput(llvm::StringRef text);

/// Says that an option cannot be `text`; returns true, as the `parse` of an option does then.
bool rejectValue(llvm::cl::Option &option, llvm::StringRef text, llvm::StringRef expected);

/// Throws support::Error for a flag of a file that is given with an empty name, which would else be
/// as if it was left out.
void checkFileNames(std::initializer_list<const llvm::cl::opt<std::string> *> flags);

// An option takes the `parse` of its parser class, which hides that of the base.
// NOLINTBEGIN(bugprone-derived-method-shadowing-base-method)

/// The value of a flag: an integer of at least `Least`, from 0 on, and at most `Most`.
template <int64_t Least, int64_t Most> struct IntegerParser : llvm::cl::parser<long long> {
  using parser::parser;
  bool parse(llvm::cl::Option &option, llvm::StringRef, llvm::StringRef text, long long &value) {
    const bool number = !text.getAsInteger(10, value);
    if (number && value > Most)
      return rejectValue(option, text, "at most " + std::to_string(Most));
    if (number && value >= Least)
      return false;
    return rejectValue(option, text,
                       Least == 0   ? "an integer from 0"
                       : Least == 1 ? "a positive integer"
                                    : "an integer from " + std::to_string(Least) + " on");
  }
};
template <int64_t Least, int64_t Most = std::numeric_limits<int64_t>::max()>
using IntegerOption = llvm::cl::opt<int64_t, false, IntegerParser<Least, Most>>;
/// The same for a flag whose value is a variable elsewhere: `cl::location`.
template <int64_t Least, int64_t Most = std::numeric_limits<int64_t>::max()>
using BoundInteger = llvm::cl::opt<int64_t, true, IntegerParser<Least, Most>>;

/// Numbers of steps, which doubles count exactly.
inline constexpr int64_t kMostSteps = int64_t{1} << 52;

/// The value of a flag: one of those that `cl::values` lists.
template <typename Value> struct ChoiceParser : llvm::cl::parser<Value> {
  using llvm::cl::parser<Value>::parser;
  bool parse(llvm::cl::Option &option, llvm::StringRef, llvm::StringRef text, Value &value) {
    std::string known;
    for (unsigned i = 0, count = this->getNumOptions(); i < count; ++i) {
      if (this->getOption(i) == text) {
        value = this->Values[i].V.getValue();
        return false;
      }
      known += (i == 0 ? "" : i + 1 < count ? ", " : " or ") + this->getOption(i).str();
    }
    return rejectValue(option, text, known);
  }
};
template <typename Value> using ChoiceOption = llvm::cl::opt<Value, false, ChoiceParser<Value>>;
template <typename Value> using BoundChoice = llvm::cl::opt<Value, true, ChoiceParser<Value>>;

/// A flag that is given or not; scripts may write `=true` or `=false`.
struct SwitchParser : llvm::cl::parser<bool> {
  using parser::parser;
  bool parse(llvm::cl::Option &option, llvm::StringRef, llvm::StringRef text, bool &value) {
    value = text.empty() || text == "true" || text == "1";
    return !value && text != "false" && text != "0" && rejectValue(option, text, "true or false");
  }
};
using SwitchOption = llvm::cl::opt<bool, false, SwitchParser>;
using BoundSwitch = llvm::cl::opt<bool, true, SwitchParser>;

/// The value of a flag: an unsigned 64-bit number.
struct SeedParser : llvm::cl::parser<unsigned long long> {
  using parser::parser;
  bool parse(llvm::cl::Option &option, llvm::StringRef, llvm::StringRef text,
             unsigned long long &value) {
    return text.getAsInteger(10, value) && rejectValue(option, text, "an integer from 0 to 2^64-1");
  }
};
using SeedOption = llvm::cl::opt<unsigned long long, false, SeedParser>;

/// The value of a flag: a number of at least 0 that f32 holds.
struct MagnitudeParser : llvm::cl::parser<double> {
  using parser::parser;
  bool parse(llvm::cl::Option &option, llvm::StringRef name, llvm::StringRef text, double &value);
};
using MagnitudeOption = llvm::cl::opt<double, false, MagnitudeParser>;

// NOLINTEND(bugprone-derived-method-shadowing-base-method)

} // namespace hydra
