// What watches every pass: location checks and dumps of each stage.
#include "compiler/driver/PassInstruments.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace hydra {

namespace {

/// Whether a location leads to a place in a file; tags around it do not count.
bool isKnown(Location loc) {
  bool known = false;
  loc->walk([&](Location l) {
    known |= isa<FileLineColLoc, NameLoc>(l);
    return known ? WalkResult::interrupt() : WalkResult::advance();
  });
  return known;
}

struct LocationCheck : PassInstrumentation {
  void runAfterPass(Pass *pass, Operation *root) override {
    Operation *last = root;
    root->walk<WalkOrder::PreOrder>([&](Operation *op) {
      if (op == root || isKnown(op->getLoc())) {
        last = op;
        return WalkResult::advance();
      }
      last->emitError() << "pass " << pass->getArgument() << " lost the location of "
                        << op->getName() << " after this operation";
      return WalkResult::interrupt();
    });
  }
};

struct PassDump : PassInstrumentation {
  explicit PassDump(std::string directory) : directory(std::move(directory)) {}

  void runAfterPass(Pass *pass, Operation *root) override {
    if (broken || !isa<ModuleOp>(root))
      return;
    std::string name =
        llvm::formatv("{0}/{1,0+2}-{2}.mlir", directory, number++, pass->getArgument()).str();
    std::error_code error = llvm::sys::fs::create_directories(directory);
    if (!error) {
      llvm::raw_fd_ostream file(name, error);
      if (!error) {
        root->print(file, OpPrintingFlags().enableDebugInfo(false));
        file.close();
        error = file.error();
        file.clear_error();
      }
    }
    if (!error)
      return;
    broken = true;
    emitError(root->getLoc()) << "cannot write " << name << ": " << error.message();
  }

  std::string directory;
  unsigned number = 1;
  bool broken = false;
};

} // namespace

std::unique_ptr<PassInstrumentation> createLocationCheck() {
  return std::make_unique<LocationCheck>();
}
std::unique_ptr<PassInstrumentation> createPassDump(std::string directory) {
  return std::make_unique<PassDump>(std::move(directory));
}

} // namespace hydra
