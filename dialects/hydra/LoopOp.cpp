// Loops over chunks: an entry and how often it runs.
#include "dialects/hydra/Build.h"
#include "dialects/hydra/NumberFormats.h"

using namespace mlir;

namespace hydra {

EntryOp LoopOp::getEntry() {
  return (*this)->getParentOfType<ModelOp>().lookupSymbol<EntryOp>(getBodyAttr());
}

void LoopOp::build(OpBuilder &, OperationState &state, EntryOp body, ValueRange inputs) {
  state.addOperands(inputs);
  state.addAttribute("body", FlatSymbolRefAttr::get(body.getSymNameAttr()));
  for (unsigned i = 0; i < body.getReturn().getOutputs().size(); ++i)
    state.addTypes(body.wholeResultType(i));
}

LogicalResult LoopOp::verifySymbolUses(SymbolTableCollection &) {
  auto model = (*this)->getParentOfType<ModelOp>();
  EntryOp entry = model ? model.lookupSymbol<EntryOp>(getBodyAttr()) : EntryOp();
  if (!entry || entry.isProgram())
    return emitOpError() << "runs @" << getBody() << ", which is no body of a loop";
  // So that no body runs itself, through however many others.
  auto around = (*this)->getParentOfType<EntryOp>();
  if (!around || !entry->isBeforeInBlock(around))
    return emitOpError() << "runs @" << getBody() << ", which does not stand in front of it";
  if (entry.getBody().getNumArguments() != getInputs().size() ||
      entry.getReturn().getOutputs().size() != getNumResults())
    return emitOpError() << "has " << getInputs().size() << " operands and " << getNumResults()
                         << " results, but @" << getBody() << " "
                         << entry.getBody().getNumArguments() << " and "
                         << entry.getReturn().getOutputs().size();
  for (auto [input, argument] : llvm::zip(getInputs(), entry.getBody().getArguments()))
    if (input.getType() != entry.wholeType(argument))
      return emitOpError() << "is given " << input.getType() << "; expected "
                           << entry.wholeType(argument);
  for (OpResult result : (*this)->getResults())
    if (result.getType() != entry.wholeResultType(result.getResultNumber()))
      return emitOpError() << "yields " << result.getType() << "; expected "
                           << entry.wholeResultType(result.getResultNumber());
  return success();
}

//===-- Cost --------------------------------------------------------------------------------===//

/// What all iterations of a body cost together.
static int64_t sumOver(LoopOp loop, int64_t (CostOpInterface::*of)()) {
  int64_t sum = 0;
  for (Operation &op : loop.getEntry().getBody().front())
    if (auto cost = dyn_cast<CostOpInterface>(op))
      sum += (cost.*of)();
  return productOf({sum, loop.getScan().getCount()});
}

int64_t LoopOp::flops() { return sumOver(*this, &CostOpInterface::flops); }
int64_t LoopOp::bytes() { return sumOver(*this, &CostOpInterface::bytes); }
OpClass LoopOp::costClass() { return OpClass::scan; }

//===-- Precision ---------------------------------------------------------------------------===//

// Operands are rounded where the body asks for bf16; results are what the body makes them.
Precision LoopOp::precisionClass() { return Precision::Matmul; }
bool LoopOp::takesRounded(unsigned operand) {
  return isNarrowFloat(build::typeOf(getEntry().getBody().getArgument(operand)).getElementType());
}
bool LoopOp::yieldIn(Type format) { return isSumFormat(format); }

} // namespace hydra
