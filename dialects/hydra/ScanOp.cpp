// Text and verification of scans over sequences.
#include "dialects/hydra/Hydra.h"

using namespace mlir;

namespace hydra {

ParseResult ScanOp::parse(OpAsmParser &parser, OperationState &state) {
  FailureOr<size_t> results = parsedResults(parser);
  if (failed(results))
    return failure();
  Attribute axis, chunk;
  if (parser.parseKeyword("axis") || parser.parseEqual() || parseExpr(parser, axis) ||
      parser.parseKeyword("chunk") || parser.parseEqual() || parseExpr(parser, chunk))
    return failure();
  SmallVector<OpAsmParser::Argument> arguments;
  auto list = [&](StringRef word) -> FailureOr<int32_t> {
    if (failed(parser.parseOptionalKeyword(word)))
      return 0;
    SmallVector<OpAsmParser::UnresolvedOperand> operands;
    if (parser.parseAssignmentList(arguments, operands) ||
        parser.resolveOperands(operands, AnyType::get(parser.getContext()), state.operands))
      return failure();
    return static_cast<int32_t>(operands.size());
  };
  FailureOr<int32_t> sequences = list("over"), inits = failure();
  if (failed(sequences) || failed(inits = list("carry")))
    return failure();
  for (OpAsmParser::Argument &argument : arguments)
    argument.type = AnyType::get(parser.getContext());
  Region *body = state.addRegion();
  if (parseBody(parser, *body, arguments))
    return failure();
  ScanOp::ensureTerminator(*body, parser.getBuilder(), state.location);
  state.addAttribute("axis", axis);
  state.addAttribute("chunk", chunk);
  state.addAttribute(getOperandSegmentSizesAttrName(state.name),
                     parser.getBuilder().getDenseI32ArrayAttr({*sequences, *inits}));
  state.addTypes(SmallVector<Type>(*results, AnyType::get(parser.getContext())));
  return success();
}

void ScanOp::print(OpAsmPrinter &p) {
  p << " axis = ";
  printExpr(p, getAxisAttr());
  p << " chunk = ";
  printExpr(p, getChunkAttr());
  auto list = [&](StringRef word, OperandRange operands, unsigned first) {
    if (operands.empty())
      return;
    p << ' ' << word << '(';
    for (auto [i, operand] : llvm::enumerate(operands))
      p << (i ? ", " : "") << getBody().getArgument(first + i) << " = " << operand;
    p << ')';
  };
  list("over", getSequences(), 0);
  list("carry", getInits(), getSequences().size());
  p << ' ';
  p.printRegion(getBody(), /*printEntryBlockArgs=*/false, /*printBlockTerminators=*/true);
}

LogicalResult ScanOp::verify() {
  if (getSequences().empty())
    return emitOpError("walks over no sequence");
  if (getNumResults() < getInits().size())
    return emitOpError() << "carries " << getInits().size() << " values but has " << getNumResults()
                         << " results";
  return success();
}

LogicalResult ScanOp::verifyRegions() {
  Operation *yield = getBody().front().getTerminator();
  if (yield->getNumOperands() != getNumResults())
    return yield->emitOpError() << "yields " << yield->getNumOperands() << " values; expected "
                                << getNumResults();
  return success();
}

//===-- prefix_scan -------------------------------------------------------------------------===//

ParseResult PrefixScanOp::parse(OpAsmParser &parser, OperationState &state) {
  FailureOr<size_t> results = parsedResults(parser);
  if (failed(results))
    return failure();
  Attribute axis;
  SmallVector<OpAsmParser::UnresolvedOperand> sequences;
  SmallVector<OpAsmParser::Argument> arguments;
  auto any = AnyType::get(parser.getContext());
  if (parser.parseKeyword("axis") || parser.parseEqual() || parseExpr(parser, axis) ||
      parser.parseKeyword("over") ||
      parser.parseOperandList(sequences, OpAsmParser::Delimiter::Paren) ||
      parser.resolveOperands(sequences, any, state.operands) || parser.parseKeyword("combine") ||
      parser.parseArgumentList(arguments, OpAsmParser::Delimiter::Paren) ||
      parser.parseKeyword("with") ||
      parser.parseArgumentList(arguments, OpAsmParser::Delimiter::Paren))
    return failure();
  for (OpAsmParser::Argument &argument : arguments)
    argument.type = any;
  Region *body = state.addRegion();
  if (parseBody(parser, *body, arguments))
    return failure();
  PrefixScanOp::ensureTerminator(*body, parser.getBuilder(), state.location);
  state.addAttribute("axis", axis);
  state.addTypes(SmallVector<Type>(*results, any));
  return success();
}

void PrefixScanOp::print(OpAsmPrinter &p) {
  p << " axis = ";
  printExpr(p, getAxisAttr());
  p << " over(" << getSequences() << ") combine(";
  auto arguments = getBody().getArguments();
  llvm::interleaveComma(arguments.take_front(getNumOperands()), p);
  p << ") with(";
  llvm::interleaveComma(arguments.drop_front(getNumOperands()), p);
  p << ") ";
  p.printRegion(getBody(), /*printEntryBlockArgs=*/false, /*printBlockTerminators=*/true);
}

LogicalResult PrefixScanOp::verify() {
  if (getSequences().empty())
    return emitOpError("walks over no sequence");
  if (getNumResults() != getNumOperands() || getBody().getNumArguments() != 2 * getNumOperands())
    return emitOpError() << "walks over " << getNumOperands() << " sequences but combines "
                         << getBody().getNumArguments() << " values to " << getNumResults()
                         << " results; expected two values and one result for each";
  return success();
}

LogicalResult PrefixScanOp::verifyRegions() {
  Operation *yield = getBody().front().getTerminator();
  if (yield->getNumOperands() != getNumResults())
    return yield->emitOpError() << "yields " << yield->getNumOperands() << " values; expected "
                                << getNumResults();
  return success();
}

} // namespace hydra
