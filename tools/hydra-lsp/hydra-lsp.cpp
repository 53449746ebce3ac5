// hydra-lsp: what an editor shows of a model while it is written, by the language server protocol.
#include "compiler/driver/CommandLine.h"
#include "runtime/support/StandardStreams.h"
#include "tools/hydra-lsp/Server.h"

#include <csignal>
#include <unistd.h>

using namespace hydra;
namespace cl = llvm::cl;

namespace {

constexpr llvm::StringLiteral kOverview =
    "Serves editors: problems of a model as it is typed, types and costs of its lines.\n\n"
    "An editor starts it and talks to it on standard input and output. The flags say which preset "
    "models are\n"
    "shown with; settings of the editor, and a comment in a model, say otherwise:\n\n"
    "  // hydra-lsp: --preset=tiny --batch=2 --seq=8\n";

struct Options {
  cl::OptionCategory category{"Models"};
  cl::opt<std::string> preset{"preset", cl::value_desc("NAME"), cl::cat(category),
                              cl::desc("a preset of the model (default: its first one)")};
  cl::list<std::string> set{
      "set", cl::value_desc("NAME=VALUE,..."), cl::cat(category), cl::CommaSeparated,
      cl::desc("values of symbols, over the preset's; repeatable (default: none)")};
  IntegerOption<1> batch{"batch", cl::value_desc("B"), cl::cat(category), cl::init(1),
                         cl::desc("sequences at a time: the entry dimension B (default: 1)")};
  IntegerOption<1> seq{"seq", cl::value_desc("S"), cl::cat(category), cl::init(32),
                       cl::desc("tokens in a sequence: the entry dimension S (default: 32)")};
  cl::opt<bool> stdio{"stdio", cl::cat(category), cl::ReallyHidden,
                      cl::desc("what some editors say of the only way there is")};
};

} // namespace

int main(int argc, char **argv) {
  support::reserveStandardStreams();
  static Options options;
  if (!parseCommandLine(argc, argv, kOverview, {&options.category}))
    return 1;
  std::signal(SIGPIPE, SIG_IGN);
  lsp::Configuration configuration;
  configuration.preset = options.preset;
  configuration.settings.assign(options.set.begin(), options.set.end());
  configuration.batch = options.batch;
  configuration.seq = options.seq;
  try {
    return lsp::Server(STDIN_FILENO, llvm::outs(), std::move(configuration)).run() ? 0 : 1;
  } catch (const std::bad_alloc &) {
    printProblem("there is not enough memory for these documents");
  } catch (const std::exception &error) {
    printProblem(error.what());
  }
  return 1;
}
