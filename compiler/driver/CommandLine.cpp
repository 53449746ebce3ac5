// Command lines of the compiler's tools.
#include "compiler/driver/CommandLine.h"

#include "compiler/Pipelines.h"
#include "runtime/support/StandardStreams.h"
#include "runtime/support/Suggest.h"

#include "mlir/IR/AsmState.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Support/Timing.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

#include <cmath>
#include <string>
#include <vector>

using namespace llvm;

namespace hydra {

namespace {

/// What the parser's callbacks have to reach: they get no context of their own.
struct CommandLineState {
  std::string program;
  std::string badValue; // the first value that its option refused
};

CommandLineState &state() {
  static CommandLineState instance;
  return instance;
}

/// The text between the first two quotes of `text`, which it is moved behind.
StringRef takeQuoted(StringRef &text) {
  StringRef quoted;
  std::tie(quoted, text) = text.split('\'').second.split('\'');
  return quoted;
}

/// One line from what LLVM's parser prints, which is two lines, with a hint at flags that are
/// hidden.
std::string shortened(StringRef text) {
  text.consume_front(state().program + ": ");
  if (text.starts_with("Unknown command line argument")) {
    std::vector<std::string> known;
    for (auto &[name, option] : cl::getRegisteredOptions())
      if (option->getOptionHiddenFlag() != cl::ReallyHidden)
        known.push_back("--" + name.str());
    return support::unknownFlag(takeQuoted(text).str(), known);
  }
  if (text.contains("positional argument"))
    return "more than one model is given; expected MODEL.mlir [flags]";
  return text.split('\n').first.str();
}

} // namespace

void printProblem(const Twine &message) { errs() << state().program << ": " << message << '\n'; }

bool rejectValue(const cl::Option &option, StringRef text, StringRef expected) {
  if (state().badValue.empty())
    state().badValue = ("--" + option.ArgStr + " is '" + text + "'; expected " + expected).str();
  return true;
}

bool MagnitudeParser::parse(cl::Option &option, StringRef, StringRef text, double &value) {
  if (!text.getAsDouble(value) && std::isfinite(value) && value >= 0.0)
    return false;
  return rejectValue(option, text, "a number from 0");
}

bool parseCommandLine(int argc, const char *const *argv, StringRef overview,
                      ArrayRef<const cl::OptionCategory *> categories) {
  support::reserveStandardStreams();
  state().program = sys::path::filename(argv[0]).str();
  mlir::DialectRegistry unused;
  registerEverything(unused); // --mlir-print-ir-after takes the names of passes
  mlir::registerMLIRContextCLOptions();
  mlir::registerAsmPrinterCLOptions();
  mlir::registerPassManagerCLOptions();
  mlir::registerDefaultTimingManagerCLOptions();
  static cl::OptionCategory ofMLIR("Passes (MLIR)");
  for (auto &[name, option] : cl::getRegisteredOptions()) {
    if (name.starts_with("mlir-"))
      option->addCategory(ofMLIR);
    else if (name != "help" && none_of(option->Categories, [&](const cl::OptionCategory *c) {
               return is_contained(categories, c);
             }))
      option->setHiddenFlag(cl::ReallyHidden);
  }
  std::string text;
  raw_string_ostream out(text);
  if (cl::ParseCommandLineOptions(argc, argv, overview, &out))
    return true;
  if (!state().badValue.empty())
    printProblem(state().badValue);
  else if (!text.empty()) // empty: an option has said it
    printProblem(shortened(text));
  return false;
}

} // namespace hydra
