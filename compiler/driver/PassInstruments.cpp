// What watches every pass: location checks and dumps of each stage.
#include "compiler/driver/PassInstruments.h"

#include "compiler/driver/NamedFiles.h"
#include "runtime/support/AtomicFile.h"
#include "runtime/support/Error.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"

#include <span>

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
  PassDump(std::string directory, std::string source)
      : directory(std::move(directory)), source(std::move(source)) {}

  void runAfterPass(Pass *pass, Operation *root) override {
    if (broken || !isa<ModuleOp>(root))
      return;
    std::string name =
        llvm::formatv("{0}/{1,0+2}-{2}.mlir", directory, number++, pass->getArgument()).str();
    try {
      if (std::error_code error = llvm::sys::fs::create_directories(directory))
        support::fail("cannot make the folder {}: {}", directory, error.message());
      checkOutputs({{"the model", source}}, {{"a dump of --dump-passes", name}});
      std::string text;
      llvm::raw_string_ostream out(text);
      root->print(out, OpPrintingFlags().enableDebugInfo(false));
      support::AtomicFile file(name);
      file.write(std::as_bytes(std::span(text.data(), text.size())));
      file.commit();
    } catch (const support::Error &error) {
      broken = true;
      emitError(root->getLoc()) << error.what();
    }
  }

  std::string directory, source;
  unsigned number = 1;
  bool broken = false;
};

} // namespace

std::unique_ptr<PassInstrumentation> createLocationCheck() {
  return std::make_unique<LocationCheck>();
}
std::unique_ptr<PassInstrumentation> createPassDump(std::string directory, std::string source) {
  return std::make_unique<PassDump>(std::move(directory), std::move(source));
}

} // namespace hydra
