// hydrac: compiles a model to a plan.
#include "compiler/driver/CommandLine.h"
#include "runtime/support/ProblemOf.h"
#include "tools/hydrac/Compile.h"
#include "tools/hydrac/Reports.h"

using namespace hydra;

static constexpr llvm::StringLiteral kOverview =
    "Compiles a model to a plan for hydra-run.\n\n"
    "  hydrac models/cs336.mlir --preset=tiny --batch=2 --seq=32 -o plan.fb\n"
    "  hydrac models/llama.mlir --preset=tiny --batch=2 --seq=32 --mode=grad -o grad.fb\n"
    "  hydrac models/cs336.mlir --preset=xl --batch=4 --seq=512 --memory-report -o xl.fb\n";

int main(int argc, char **argv) {
  static HydracOptions options;
  if (!parseCommandLine(argc, argv, kOverview, {&options.model.category}))
    return 1;
  try {
    if (options.listPasses) {
      printPasses();
      return 0;
    }
    return failed(compile(options));
  } catch (const std::exception &error) {
    printProblem(support::problemOf(error));
  }
  return 1;
}
