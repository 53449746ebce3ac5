// Printing and verification of arithmetic on values.
#include "dialects/hydra/Arithmetic.h"
#include "dialects/hydra/ArithmeticWords.h"
#include "dialects/hydra/ExprParser.h"

using namespace mlir;

namespace hydra {

//===-- Printing ----------------------------------------------------------------------------===//

namespace {

class ArithmeticPrinter {
public:
  ArithmeticPrinter(OpAsmPrinter &p, Region &region) : p(p), region(region) {}

  /// With parentheses around what binds less than `outer`.
  void print(Value v, int outer) {
    Operation *op = v.getDefiningOp();
    if (!op || !isInside(op)) {
      p << v;
    } else if (ConstantOp constant = plainNumber(op)) {
      printExpr(p, constant.getValueAttr(), outer);
    } else if (auto use = dyn_cast<UseOp>(op)) {
      p.printSymbolName(use.getVariable());
    } else if (auto call = dyn_cast<CallOp>(op)) {
      p.printSymbolName(call.getCallee());
      p << '(';
      printCallArguments(p, call, [&](Value a) { print(a, 0); });
    } else if (auto field = dyn_cast<FieldOp>(op); field && hasPlainText(field)) {
      print(field.getBundle(), kStrongest);
      p << '.' << field.getName();
    } else if (auto when = dyn_cast<WhenOp>(op)) {
      p << "when(";
      printExpr(p, when.getCondition());
      for (Region *branch : when.getRegions()) {
        p << ", ";
        print(branch->front().getTerminator()->getOperand(0), 0);
      }
      p << ')';
    } else if (auto bundle = dyn_cast<BundleOp>(op)) {
      p << "bundle(";
      for (auto [i, name, value] :
           llvm::enumerate(bundle.getNames().getAsValueRange<StringAttr>(), bundle.getFields())) {
        p << (i ? ", " : "") << name << " = ";
        print(value, 0);
      }
      p << ')';
    } else if (const Operator *o = operatorOf(op)) {
      printOperator(*o, op, outer);
    } else {
      printFunction(op);
    }
  }

private:
  bool isInside(Operation *op) { return region.isAncestor(op->getParentRegion()); }

  void printOperator(const Operator &o, Operation *op, int outer) {
    const int own = strength(o.head, o.operands);
    p << (own < outer ? "(" : "");
    if (o.operands == 1) {
      p << o.head;
      print(op->getOperand(0), own);
    } else {
      print(op->getOperand(0), isComparison(own) ? own + 1 : own);
      p << ' ' << o.head << ' ';
      print(op->getOperand(1), own + 1);
    }
    p << (own < outer ? ")" : "");
  }

  void printFunction(Operation *op) {
    bool first = true;
    auto comma = [&] { p << (std::exchange(first, false) ? "" : ", "); };
    p << op->getName().stripDialect() << '(';
    for (Value operand : op->getOperands()) {
      comma();
      print(operand, 0);
    }
    ArrayRef<StringAttr> names = op->getRegisteredInfo()->getAttributeNames();
    const bool keeps = op->hasTrait<Reduction>() && op->getAttr("keep");
    ArrayAttr list; // without its name
    if (op->getNumOperands() == 1 && (keeps || names.size() == 1))
      list = op->getAttrOfType<ArrayAttr>(keeps ? StringRef("axes") : names[0].getValue());
    if (list) {
      comma();
      if (keeps && list.size() == 1)
        printExpr(p, list[0]);
      else
        printExprList(p, list);
    }
    for (StringAttr name : names)
      if (Attribute value = op->getAttr(name); value && !list) {
        comma();
        printAttribute(p, name, value);
      }
    p << ')';
  }

  /// Whether `%x.sum` reads as this field: not of values with numbers, `%1` or `%x#1`.
  bool hasPlainText(FieldOp field) {
    if (auto inner = field.getBundle().getDefiningOp<FieldOp>(); inner && isInside(inner))
      return hasPlainText(inner);
    std::string text;
    llvm::raw_string_ostream stream(text);
    p.printOperand(field.getBundle(), stream);
    return !isdigit(static_cast<unsigned char>(text[1])) && !StringRef(text).contains('#');
  }

  OpAsmPrinter &p;
  Region &region;
};

} // namespace

void printArithmetic(OpAsmPrinter &p, LetOp let) {
  Region &body = let.getBody();
  llvm::interleaveComma(body.front().getTerminator()->getOperands(), p,
                        [&](Value v) { ArithmeticPrinter(p, body).print(v, 0); });
}

//===-- Verification ------------------------------------------------------------------------===//

namespace {

/// Operators and functions of each operation as they would be written: of what is used twice,
/// twice.
using Written = DenseMap<Operation *, unsigned>;

} // namespace

static unsigned writtenFor(ValueRange values, const Written &written) {
  unsigned sum = 0;
  for (Value v : values)
    sum = std::min(sum + written.lookup(v.getDefiningOp()), kMostOperators + 1);
  return sum;
}

/// Whether arithmetic has words for an operation.
static bool isWritable(Operation &op) {
  if (op.getNumResults() != 1 || !op.getDiscardableAttrDictionary().empty())
    return false;
  if (auto when = dyn_cast<WhenOp>(op))
    return !when.getElseRegion().empty();
  return op.getNumRegions() == 0 && (isFunction(op.getName()) || isa<UseOp, CallOp, BundleOp>(op));
}

static LogicalResult verifyOperations(Block &block, Written &written) {
  for (Operation &op : block.without_terminator()) {
    if (!isWritable(op))
      return op.emitOpError("has no place in arithmetic");
    if (auto field = dyn_cast<FieldOp>(op))
      if (Operation *bundle = field.getBundle().getDefiningOp();
          bundle && op.getParentOfType<LetOp>()->isAncestor(bundle) && !isa<FieldOp>(bundle))
        return op.emitOpError("takes a field of what has no name");
    unsigned sum = writtenFor(op.getOperands(), written);
    for (Region &region : op.getRegions()) {
      if (failed(verifyOperations(region.front(), written)))
        return failure();
      sum += writtenFor(region.front().getTerminator()->getOperands(), written);
    }
    const bool isName = plainNumber(&op) || isa<UseOp>(op);
    written[&op] = std::min(sum + !isName, kMostOperators + 1);
  }
  return success();
}

LogicalResult verifyArithmetic(LetOp let) {
  Written written;
  Block &body = let.getBody().front();
  if (failed(verifyOperations(body, written)))
    return failure();
  for (Value v : body.getTerminator()->getOperands())
    if (writtenFor(v, written) > kMostOperators)
      return let.emitOpError() << "has more than " << kMostOperators << " operators";
  return success();
}

} // namespace hydra
