// What every tool does around passes: reads the model, runs passes over it with the usual
// instruments, and reports problems as one line.
#pragma once

#include "compiler/driver/Diagnostics.h"
#include "compiler/driver/ModelOptions.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Support/Timing.h"

namespace hydra {

/// One model of one run. Functions that can fail have then said why on stderr.
class Driver {
public:
  enum class Care {
    Full,
    Trial, ///< prints nothing, dumps nothing and checks nothing between passes; what is made is
           ///< only looked at
  };

  /// `options` must be parsed and outlive the driver. `timed`: print where the time went, as
  /// `--mlir-timing` does.
  explicit Driver(const ModelOptions &options, bool timed = false, Care care = Care::Full);

  /// Reads and verifies the file; succeeds only if it holds exactly one model.
  llvm::LogicalResult load();

  /// The dumps of `--dump-passes` go to a folder of that name in the one that it names.
  void dumpBelow(llvm::StringRef folder) { dumpFolder = folder.str(); }

  /// Runs the passes that `build` adds, with a check of locations after each, the dumps of
  /// `--dump-passes` and all flags of MLIR. To be called once.
  llvm::LogicalResult run(llvm::function_ref<void(mlir::OpPassManager &)> build);

  /// Fails once any error has been reported, whatever those who reported it returned. To be asked
  /// before anything is written.
  llvm::LogicalResult verdict() const { return llvm::success(diagnostics.errors() == 0); }

  mlir::ModuleOp module() { return *source; }
  ModelOp model();

  /// A line of the report of `--mlir-timing`.
  mlir::TimingScope time(llvm::StringRef what) { return total.nest(what); }

private:
  llvm::LogicalResult addInstruments(mlir::PassManager &passes, mlir::TimingScope &scope);

  const ModelOptions &options;
  const Care care;
  std::string dumpFolder; ///< empty: the one that the flag names
  mlir::DefaultTimingManager timing;
  mlir::TimingScope total;
  mlir::MLIRContext context;
  LineDiagnostics diagnostics;
  mlir::OwningOpRef<mlir::ModuleOp> source;
};

} // namespace hydra
