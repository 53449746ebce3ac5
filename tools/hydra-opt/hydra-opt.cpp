// hydra-opt: runs any pass or pipeline over any .mlir file, as mlir-opt does.
#include "compiler/Pipelines.h"
#include "compiler/driver/PassInstruments.h"

#include "mlir/Tools/mlir-opt/MlirOptMain.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  hydra::registerEverything(registry);
  return mlir::asMainReturnCode(
      mlir::MlirOptMain(argc, argv, "Hydra's passes over .mlir files", registry));
}
