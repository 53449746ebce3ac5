// What watches every pass: location checks and dumps of each stage.
#include "compiler/driver/PassInstruments.h"

#include "passes/Statistics.h"
#include "runtime/support/AtomicFile.h"
#include "runtime/support/Error.h"
#include "runtime/support/NamedFiles.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Support/CommandLine.h"
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
      support::checkOutputs({{"the model", source}}, {{"a dump of --dump-passes", name}});
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

/// Below the head that MLIR prints, in the form of its own lines.
struct StatisticsReport : PassInstrumentation {
  ~StatisticsReport() override {
    for (auto &[pass, text] : reports)
      llvm::errs() << text;
  }

  void runAfterPass(Pass *pass, Operation *) override {
    std::string text;
    llvm::raw_string_ostream out(text);
    forEachStatistic(pass, [&](const PassStatistic &statistic) {
      if (text.empty())
        out << pass->getArgument() << '\n';
      out << "  (S) " << statistic.value() << ' ' << statistic.name << " - "
          << statistic.description << '\n';
    });
    reports[pass] = std::move(text);
  }

  llvm::MapVector<Pass *, std::string> reports;
};

} // namespace

std::unique_ptr<PassInstrumentation> createStatisticsReport() {
  return std::make_unique<StatisticsReport>();
}
bool statisticsAsked() {
  const llvm::cl::Option *flag = llvm::cl::getRegisteredOptions().lookup("mlir-pass-statistics");
  return flag && flag->getNumOccurrences() > 0;
}

std::unique_ptr<PassInstrumentation> createLocationCheck() {
  return std::make_unique<LocationCheck>();
}
std::unique_ptr<PassInstrumentation> createPassDump(std::string directory, std::string source) {
  return std::make_unique<PassDump>(std::move(directory), std::move(source));
}

} // namespace hydra
