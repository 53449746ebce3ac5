// Command lines of the compiler's tools: LLVM's parser, but one line per mistake, and value types
// that say what they expect.
#pragma once

#include "llvm/Support/CommandLine.h"

#include <cstdint>

namespace hydra {

/// Registers MLIR's own flags (--mlir-print-ir-after-all, --mlir-timing, …), hides every flag of
/// LLVM's libraries that is not in one of `categories`, and parses. False after one line on stderr
/// that names the first mistake: `hydra-opt: unknown flag '--presett'; did you mean '--preset'?`.
/// `--help` ends the program.
bool parseCommandLine(int argc, const char *const *argv, llvm::StringRef overview,
                      llvm::ArrayRef<const llvm::cl::OptionCategory *> categories);

/// Prints `<program>: <message>` as one line on stderr. Only after parseCommandLine was called.
void printProblem(const llvm::Twine &message);

/// Notes that an option cannot be `text`; returns true, as the `parse` of an option does then.
bool rejectValue(const llvm::cl::Option &option, llvm::StringRef text, llvm::StringRef expected);

// An option takes the `parse` of its parser class, which hides that of the base.
// NOLINTBEGIN(bugprone-derived-method-shadowing-base-method)

/// The value of a flag: an integer of at least `Least`, 0 or 1.
template <int64_t Least> struct IntegerParser : llvm::cl::parser<long long> {
  using parser::parser;
  bool parse(llvm::cl::Option &option, llvm::StringRef, llvm::StringRef text, long long &value) {
    if (!text.getAsInteger(10, value) && value >= Least)
      return false;
    return rejectValue(option, text, Least == 0 ? "an integer from 0" : "a positive integer");
  }
};
template <int64_t Least>
using IntegerOption = llvm::cl::opt<long long, false, IntegerParser<Least>>;

/// The value of a flag: an unsigned 64-bit number.
struct SeedParser : llvm::cl::parser<unsigned long long> {
  using parser::parser;
  bool parse(llvm::cl::Option &option, llvm::StringRef, llvm::StringRef text,
             unsigned long long &value) {
    return text.getAsInteger(10, value) && rejectValue(option, text, "an integer from 0 to 2^64-1");
  }
};
using SeedOption = llvm::cl::opt<unsigned long long, false, SeedParser>;

/// The value of a flag: a finite number of at least 0.
struct MagnitudeParser : llvm::cl::parser<double> {
  using parser::parser;
  bool parse(llvm::cl::Option &option, llvm::StringRef name, llvm::StringRef text, double &value);
};
using MagnitudeOption = llvm::cl::opt<double, false, MagnitudeParser>;

// NOLINTEND(bugprone-derived-method-shadowing-base-method)

} // namespace hydra
