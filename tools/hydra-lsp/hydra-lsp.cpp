// hydra-lsp: what an editor shows of a model while it is written, by the language server protocol.
#include "runtime/support/ProblemOf.h"
#include "runtime/support/StandardStreams.h"
#include "tools/common/ParseArguments.h"
#include "tools/hydra-lsp/Server.h"

#include "llvm/Config/llvm-config.h"
#include "llvm/Support/raw_ostream.h"

#include <csignal>
#include <cstdio>
#include <unistd.h>

using namespace hydra;

int main(int argc, char **argv) {
  support::reserveStandardStreams();
  lsp::Configuration configuration;
  CLI::App app("Serves editors: problems of a model as it is typed, types and costs of its lines.");
  app.add_option("--preset", configuration.preset,
                 "the preset that models are shown with (default: the first one of each)");
  app.add_option("--set", configuration.settings,
                 "values of symbols, over the preset's: NAME=VALUE,... (default: none)")
      ->delimiter(',');
  const CLI::Range fromOne(int64_t{1}, int64_t{1} << 40);
  app.add_option("--batch", configuration.batch,
                 "sequences at a time: the entry dimension B (default: 1)")
      ->check(fromOne);
  app.add_option("--seq", configuration.seq,
                 "tokens in a sequence: the entry dimension S (default: 32)")
      ->check(fromOne);
  bool stdio = true;
  app.add_flag("--stdio", stdio, "standard input and output, the only way there is");
  app.set_version_flag("--version", "hydra-lsp 0.1, LLVM " LLVM_VERSION_STRING);
  app.footer("An editor starts it and talks to it on standard input and output. Settings of the "
             "editor, and a\n"
             "comment in a model, say otherwise than the flags:\n\n"
             "  // hydra-lsp: --preset=tiny --batch=2 --seq=8\n\n"
             "docs/editor.md has the lines for VS Code and Neovim.");
  if (const auto status = parseArguments(app, argc, argv, "hydra-lsp"))
    return *status;
  std::signal(SIGPIPE, SIG_IGN); // processes that are gone are noticed where they are read
  try {
    return lsp::Server(STDIN_FILENO, llvm::outs(), std::move(configuration)).run() ? 0 : 1;
  } catch (const std::exception &error) {
    std::fprintf(stderr, "hydra-lsp: %s\n", support::problemOf(error));
  }
  return 1;
}
