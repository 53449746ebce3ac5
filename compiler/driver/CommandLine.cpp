// Command lines of the compiler's tools.
#include "compiler/driver/CommandLine.h"

#include "compiler/Pipelines.h"
#include "compiler/driver/Diagnostics.h"
#include "runtime/support/Error.h"
#include "runtime/support/ProblemOf.h"
#include "runtime/support/StandardStreams.h"
#include "runtime/support/Suggest.h"

#include "mlir/IR/AsmState.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Support/Timing.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

#include <sys/uio.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <mutex>
#include <string>
#include <utility>
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

/// The first flag that is not known and begins with the letter of one that takes a value
/// (`--output` beside `-o`), or "". LLVM would take its letters for a group of flags, and complain
/// of `-o`.
StringRef unknownGroup(ArrayRef<const char *> arguments) {
  const auto &known = cl::getRegisteredOptions();
  bool isValue = false; // of the flag before
  for (const StringRef argument : arguments) {
    if (std::exchange(isValue, false) || !argument.starts_with("-"))
      continue;
    if (argument == "--")
      break;
    const StringRef name = argument.ltrim('-').split('=').first;
    const auto flag = known.find(name), letter = known.find(name.take_front());
    if (flag != known.end())
      isValue =
          !argument.contains('=') && flag->second->getValueExpectedFlag() == cl::ValueRequired;
    else if (letter != known.end() && letter->second->getFormattingFlag() != cl::Prefix &&
             letter->second->getValueExpectedFlag() == cl::ValueRequired)
      return argument.split('=').first;
  }
  return "";
}

/// One line about a flag that is not known, with a hint at those that are not hidden.
std::string unknown(StringRef flag) {
  std::vector<std::string> known;
  for (auto &[name, option] : cl::getRegisteredOptions())
    if (option->getOptionHiddenFlag() != cl::ReallyHidden)
      known.push_back("--" + name.str());
  return support::unknownFlag(flag.str(), known);
}

/// One line about an argument without a flag behind the only one that a tool takes.
std::string tooMany() {
  const auto &taken = cl::SubCommand::getTopLevel().PositionalOpts;
  const std::string what = taken.empty() ? "" : taken.front()->HelpStr.str();
  return fmt::format("more than one {} is given; expected {} [flags]", what, what);
}

/// One line from what LLVM's parser prints, which is two lines.
std::string shortened(StringRef text) {
  text.consume_front(state().program + ": ");
  if (text.starts_with("Unknown command line argument"))
    return unknown(takeQuoted(text));
  if (text.contains("positional argument"))
    return tooMany();
  return text.split('\n').first.str();
}

/// What LLVM cannot go on from: no memory, no thread, no room for what --help prints. Allocates
/// nothing, and of threads that meet here only the first one speaks.
void endWithProblem(void *, const char *why, bool) {
  static std::mutex first;
  first.lock();
  auto piece = [](StringRef text) { return iovec{const_cast<char *>(text.data()), text.size()}; };
  const iovec line[] = {piece(state().program), piece(": "),
                        piece(StringRef(why).take_until([](char c) { return c == '\n'; })),
                        piece("\n")};
  (void)!::writev(STDERR_FILENO, line, std::size(line));
  std::_Exit(1);
}

void endWithoutMemory(void *, const char *, bool) {
  endWithProblem(nullptr, support::kNoMemory, false);
}

/// No library can change what the flags of a category say.
void forget(const cl::OptionCategory &category) {
  SmallVector<cl::Option *> own;
  auto add = [&](cl::Option *option) {
    if (is_contained(option->Categories, &category))
      own.push_back(option);
  };
  for (auto &[name, option] : cl::getRegisteredOptions())
    add(option);
  for_each(cl::SubCommand::getTopLevel().PositionalOpts, add);
  for (cl::Option *option : own)
    option->removeArgument();
}

} // namespace

void printProblem(const Twine &message) {
  errs() << state().program << ": " << asLine(message.str()) << '\n';
}

void printOutput(StringRef text) {
  outs() << text;
  outs().flush();
  const std::error_code error = outs().error();
  outs().clear_error(); // else the end of the program would report it once more
  if (error)
    support::fail("cannot write to standard output: {}", error.message());
}

bool rejectValue(cl::Option &option, StringRef text, StringRef expected) {
  if (state().program.empty()) // a tool whose flags another parser reads
    return option.error("'" + text + "' is not " + expected);
  if (state().badValue.empty())
    state().badValue = ((option.ArgStr.size() > 1 ? "--" : "-") + option.ArgStr + " is '" + text +
                        "'; expected " + expected)
                           .str();
  return true;
}

void checkFileNames(std::initializer_list<const cl::opt<std::string> *> flags) {
  for (const cl::opt<std::string> *flag : flags)
    if (flag->getNumOccurrences() > 0 && flag->empty())
      support::fail("--{} is ''; expected the name of a file", flag->ArgStr.str());
}

bool MagnitudeParser::parse(cl::Option &option, StringRef, StringRef text, double &value) {
  value = 0.0;
  if (!text.getAsDouble(value) && std::isfinite(static_cast<float>(value)) && value >= 0.0)
    return false;
  const bool large = value > 0.0 && std::isfinite(value);
  return rejectValue(option, text, large ? "a number that f32 holds" : "a number from 0");
}

bool parseCommandLine(int argc, const char *const *argv, StringRef overview,
                      ArrayRef<const cl::OptionCategory *> categories) {
  support::reserveStandardStreams();
  support::ignoreFileSizeSignal();
  state().program = sys::path::filename(argv[0]).str();
  // What --help prints is written when the program ends, by whoever destroys the stream; it must
  // not outlive the other two.
  errs();
  outs();
  install_fatal_error_handler(endWithProblem);
  install_bad_alloc_error_handler(endWithoutMemory);
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
  if (const StringRef flag = unknownGroup(ArrayRef(argv + 1, argc > 0 ? argc - 1 : 0));
      !flag.empty()) {
    printProblem(unknown(flag));
    return false;
  }
  std::string text;
  raw_string_ostream out(text);
  if (cl::ParseCommandLineOptions(argc, argv, overview, &out)) {
    for (const cl::OptionCategory *category : categories)
      forget(*category);
    return true;
  }
  if (!state().badValue.empty())
    printProblem(state().badValue);
  else if (!text.empty()) // empty: an option has said it
    printProblem(shortened(text));
  return false;
}

} // namespace hydra
