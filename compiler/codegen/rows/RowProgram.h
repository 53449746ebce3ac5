// A group of row-wise operations as a small graph of numbers: what code generators start from.
//
// Operations emit themselves through RowEmitter into a RowRecorder; the RowProgram that comes out
// has equal nodes merged and dead nodes dropped, in an order in which inputs come first. It knows
// nothing of strides, threads or instructions.
#pragma once

#include "dialects/hydra/RowEmitter.h"
#include "runtime/support/DType.h"

#include "llvm/ADT/StringMap.h"

#include <optional>
#include <string>
#include <vector>

namespace hydra {

/// Element types of values. F32 to I8 are numbers, computed as f32 (those of fewer bits are rounded
/// ones; of I8 they are whole and lie as integers), I16, I32 and I1 integers and truth values.
enum class RowType : uint8_t { F32, BF16, F16, E4M3, E5M2, I8, I16, I32, I1 };

/// nullopt: no generated code works on such elements.
std::optional<RowType> rowTypeOf(mlir::Type element);
/// Bytes in memory; truth values take one.
unsigned storageBytes(RowType type);
inline bool isFloat(RowType type) { return type <= RowType::I8; }
/// Whether values are rounded to fewer bits than they are computed in.
inline bool isNarrow(RowType type) { return isFloat(type) && type != RowType::F32; }
inline bool isEightBit(RowType type) { return type == RowType::E4M3 || type == RowType::E5M2; }
/// The row of the table of number formats.
support::DType formatOf(RowType type);

inline bool variesOverRows(RowForm f) { return f == RowForm::Tile || f == RowForm::Row; }
inline bool variesOverColumns(RowForm f) { return f == RowForm::Tile || f == RowForm::Column; }
inline RowForm rowForm(bool rows, bool columns) {
  return rows ? (columns ? RowForm::Tile : RowForm::Row)
              : (columns ? RowForm::Column : RowForm::Scalar);
}

/// One number of the graph, as RowEmitter's method of the same name describes it.
struct RowNode {
  enum class Kind : uint8_t {
    Input,    ///< input `code` of the group
    Constant, ///< `value`
    Index,    ///< coordinate along dimension `code`
    Unary,    ///< RowUnary `code`
    Binary,   ///< RowBinary `code`
    Compare,  ///< Predicate `code`
    Select,
    Cast,
    Reduce,  ///< RowReduction `code`
    SumRows, ///< only as a result; its form says over what: Column over tiles, Scalar over row
             ///< values
    Gather,  ///< row inputs[0] of the table that is input `code`
    Rotate,  ///< of input `code` by `rotation`, at position inputs[0] if there is one
  };
  Kind kind;
  RowForm form;
  RowType type;
  unsigned code = 0;
  double value = 0.0;
  Rotation rotation = {};
  llvm::SmallVector<unsigned, 3> inputs = {}; ///< nodes
};

/// A tensor that the group reads. Without form: only rows of it are gathered, or it is rotated.
struct RowInput {
  llvm::SmallVector<int64_t> shape;
  RowType type = RowType::F32;
  std::optional<RowForm> form;
};

/// A tensor that the group yields. The form of its node may be less than its own (a scalar that
/// fills a tile). A node SumRows makes partial sums in F32 of what will be that result.
struct RowResult {
  RowForm form = RowForm::Tile;
  RowType type = RowType::F32; ///< as stored
  unsigned node = 0;
};

struct RowProgram {
  RowDomain domain;
  std::vector<RowInput> inputs;
  std::vector<RowNode> nodes;
  std::vector<RowResult> results;

  bool isSummed(const RowResult &result) const {
    return nodes[result.node].kind == RowNode::Kind::SumRows;
  }
  /// How many nodes reduce rows.
  int64_t reductions() const {
    return llvm::count_if(nodes,
                          [](const RowNode &node) { return node.kind == RowNode::Kind::Reduce; });
  }
  /// Text that is equal only for programs that do the same.
  std::string key() const;
};

/// Records what operations emit.
class RowRecorder final : public RowEmitter {
public:
  RowRecorder(mlir::MLIRContext *context, RowDomain domain, std::vector<RowInput> inputs)
      : context(context), program{std::move(domain), std::move(inputs), {}, {}} {}

  /// The plain value of an input; it must have a form.
  RowValue input(unsigned number);
  /// The program that yields these values as `results` (whose nodes are set here).
  RowProgram finish(llvm::ArrayRef<RowValue> values, std::vector<RowResult> results);

  const RowDomain &domain() const override { return program.domain; }
  RowForm form(RowValue v) const override { return program.nodes[v.id].form; }
  mlir::Type elementType(RowValue v) const override;
  RowValue constant(double value, mlir::Type element) override;
  RowValue index(unsigned dim) override;
  RowValue unary(RowUnary f, RowValue x) override;
  RowValue binary(RowBinary f, RowValue a, RowValue b) override;
  RowValue compare(Predicate p, RowValue a, RowValue b) override;
  RowValue select(RowValue condition, RowValue a, RowValue b) override;
  RowValue cast(RowValue x, mlir::Type to) override;
  RowValue reduce(RowReduction r, RowValue tile) override;
  RowValue sumRows(RowValue v, RowForm of) override;
  RowValue gather(unsigned operand, RowValue row) override;
  RowValue rotate(unsigned operand, const Rotation &rotation,
                  std::optional<RowValue> position = std::nullopt) override;

private:
  RowValue add(RowNode node);
  RowValue castTo(RowValue x, RowType to);
  /// What holds every result of `f` exactly: the operands' own format where nothing rounds.
  RowType typeOf(RowBinary f, RowValue a, RowValue b) const;
  /// The form of something computed from these values.
  RowForm joined(llvm::ArrayRef<RowValue> values) const;
  RowType type(RowValue v) const { return program.nodes[v.id].type; }

  mlir::MLIRContext *context;
  RowProgram program;
  llvm::StringMap<unsigned> known; ///< nodes by their text
};

} // namespace hydra
