// Outputs and updates of a program, apart from its return.
#include "passes/differentiate/ProgramOutputs.h"

using namespace mlir;

namespace hydra {

ProgramOutputs ProgramOutputs::of(ReturnOp end) {
  ProgramOutputs outputs;
  const size_t named =
      end.getOutputNames().size() - (end.getGradients() ? end.getGradients()->size() : 0);
  outputs.names.assign(end.getOutputNames().begin(), end.getOutputNames().begin() + named);
  llvm::append_range(outputs.values, end.getOutputs().take_front(named));
  llvm::append_range(outputs.updated, end.getUpdated());
  llvm::append_range(outputs.updates, end.getUpdates());
  return outputs;
}

void ProgramOutputs::give(OpBuilder &b, StringRef name, Value value) {
  names.push_back(b.getStringAttr(name));
  values.push_back(value);
}

void ProgramOutputs::set(Operation *variable, Value value) {
  updated.push_back(FlatSymbolRefAttr::get(SymbolTable::getSymbolName(variable)));
  updates.push_back(value);
}

void ProgramOutputs::returnFrom(ReturnOp end) const {
  Builder b(end.getContext());
  SmallVector<Value> all = values;
  llvm::append_range(all, updates);
  end.getValuesMutable().assign(all);
  end.setOutputNamesAttr(b.getArrayAttr(names));
  end.setUpdatedAttr(b.getArrayAttr(updated));
  end.removeGradientsAttr();
}

} // namespace hydra
