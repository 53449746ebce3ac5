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
  SmallVector<OpAsmParser::UnresolvedOperand> operands;
  if (parseBindings(parser, "over", arguments, operands))
    return failure();
  const auto sequences = static_cast<int32_t>(operands.size());
  if (parseBindings(parser, "carry", arguments, operands) ||
      parser.resolveOperands(operands, AnyType::get(parser.getContext()), state.operands))
    return failure();
  const int32_t inits = static_cast<int32_t>(operands.size()) - sequences;
  for (OpAsmParser::Argument &argument : arguments)
    argument.type = AnyType::get(parser.getContext());
  Region *body = state.addRegion();
  if (parseBody(parser, *body, arguments))
    return failure();
  ScanOp::ensureTerminator(*body, parser.getBuilder(), state.location);
  state.addAttribute("axis", axis);
  state.addAttribute("chunk", chunk);
  state.addAttribute(getOperandSegmentSizesAttrName(state.name),
                     parser.getBuilder().getDenseI32ArrayAttr({sequences, inits}));
  state.addTypes(SmallVector<Type>(*results, AnyType::get(parser.getContext())));
  return success();
}

void ScanOp::print(OpAsmPrinter &p) {
  p << " axis = ";
  printExpr(p, getAxisAttr());
  p << " chunk = ";
  printExpr(p, getChunkAttr());
  ValueRange arguments = getBody().getArguments();
  printBindings(p, "over", arguments.take_front(getSequences().size()), getSequences());
  printBindings(p, "carry", arguments.drop_front(getSequences().size()), getInits());
  p << ' ';
  p.printRegion(getBody(), /*printEntryBlockArgs=*/false, /*printBlockTerminators=*/true);
}

LogicalResult ScanOp::verify() {
  if (getSequences().empty())
    return emitOpError("scans no sequence");
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

//===-- scan_begin, scan_end -----------------------------------------------------------------===//

template <typename Mark> static LogicalResult verifyMark(Mark mark) {
  if (mark.getValues().getTypes() != mark.getResults().getTypes())
    return mark.emitOpError("has results of other types than its operands");
  if (mark.getSequences() < 0 ||
      mark.getSequences() > static_cast<int64_t>(mark.getValues().size()))
    return mark.emitOpError() << "has " << mark.getValues().size() << " operands, of which "
                              << mark.getSequences() << " would be sequences";
  return success();
}
LogicalResult ScanBeginOp::verify() { return verifyMark(*this); }
LogicalResult ScanEndOp::verify() { return verifyMark(*this); }

//===-- prefix_scan -------------------------------------------------------------------------===//

ParseResult PrefixScanOp::parse(OpAsmParser &parser, OperationState &state) {
  FailureOr<size_t> results = parsedResults(parser);
  if (failed(results))
    return failure();
  Attribute axis;
  SmallVector<OpAsmParser::UnresolvedOperand> sequences;
  SmallVector<OpAsmParser::Argument> here, arguments; // of the body: those before, then those here
  auto any = AnyType::get(parser.getContext());
  if (parser.parseKeyword("axis") || parser.parseEqual() || parseExpr(parser, axis) ||
      parseBindings(parser, "over", here, sequences) ||
      parser.resolveOperands(sequences, any, state.operands) || parser.parseKeyword("combine") ||
      parser.parseArgumentList(arguments, OpAsmParser::Delimiter::Paren))
    return failure();
  llvm::append_range(arguments, here);
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
  ValueRange arguments = getBody().getArguments();
  printBindings(p, "over", arguments.drop_front(getNumOperands()), getSequences());
  p << " combine(";
  llvm::interleaveComma(arguments.take_front(getNumOperands()), p);
  p << ") ";
  p.printRegion(getBody(), /*printEntryBlockArgs=*/false, /*printBlockTerminators=*/true);
}

LogicalResult PrefixScanOp::verify() {
  if (getSequences().empty())
    return emitOpError("scans no sequence");
  if (getNumResults() != getNumOperands() || getBody().getNumArguments() != 2 * getNumOperands())
    return emitOpError() << "scans " << getNumOperands() << " sequences but combines "
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
