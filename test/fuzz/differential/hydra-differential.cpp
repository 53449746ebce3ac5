// hydra-differential: programs compiled and run in every way, held against the oracle.
#include "test/fuzz/differential/Commands.h"

#include "tools/common/ParseArguments.h"

#include <cstdio>

using namespace hydra;
using namespace hydra::test;

namespace {

constexpr const char *kOverview =
    "Compiles and runs programs in many ways and compares every result with the oracle.\n\n"
    "  hydra-differential run --kind=all --seeds=0..1000 --keep=findings\n"
    "  hydra-differential check findings/scan-17.mlir\n"
    "  hydra-differential check model.mlir --batch=2 --seq=8 --setting='--mode=grad -O0'\n"
    "  hydra-differential reduce findings/scan-17.mlir --setting='--mode=grad -O0'\n\n"
    "Exit status 1 when anything was wrong, refused by the executor, crashed or hung.";

} // namespace

int main(int argc, char **argv) {
  CLI::App app(kOverview);
  app.require_subcommand(1);
  const std::unique_ptr<Command> commands[] = {makeRunCommand(app), makeCheckCommand(app),
                                               makeReduceCommand(app)};
  if (const std::optional<int> status = parseArguments(app, argc, argv, "hydra-differential"))
    return *status;
  try {
    for (const std::unique_ptr<Command> &command : commands)
      if (command->chosen())
        return command->main();
  } catch (const std::exception &error) {
    std::fprintf(stderr, "hydra-differential: %s\n", error.what());
  }
  return 1;
}
