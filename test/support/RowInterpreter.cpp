// What groups emit through RowEmitter, evaluated in float64.
#include "test/support/RowInterpreter.h"

#include "test/support/WordArithmetic.h"

#include <cmath>
#include <limits>

using namespace mlir;

namespace hydra::test {

namespace {

bool overRows(RowForm f) { return f == RowForm::Tile || f == RowForm::Row; }
bool overColumns(RowForm f) { return f == RowForm::Tile || f == RowForm::Column; }
RowForm makeForm(bool rows, bool columns) {
  return rows ? (columns ? RowForm::Tile : RowForm::Row)
              : (columns ? RowForm::Column : RowForm::Scalar);
}

/// Keeps every value for all rows and columns of its form.
class RowInterpreter final : public RowEmitter {
public:
  RowInterpreter(MLIRContext *context, RowDomain group, std::vector<const RefTensor *> inputs)
      : f32(Float32Type::get(context)), i32(IntegerType::get(context, 32)),
        i1(IntegerType::get(context, 1)), group(std::move(group)), inputs(std::move(inputs)) {}

  RowValue load(unsigned input, RowForm form, Type element) {
    return add({form, element, inputs[input]->data});
  }
  /// The value in all places of a form.
  std::vector<double> store(RowValue v, RowForm form) {
    return fill(form, [&](int64_t r, int64_t c) { return at(v, r, c); });
  }

  const RowDomain &domain() const override { return group; }
  RowForm form(RowValue v) const override { return values[v.id].form; }
  Type elementType(RowValue v) const override { return values[v.id].element; }
  RowValue constant(double value, Type element) override {
    return add({RowForm::Scalar, element, {value}});
  }
  RowValue index(unsigned dim) override {
    bool row = dim < group.rowShape.size();
    ArrayRef<int64_t> shape = row ? group.rowShape : group.innerShape;
    unsigned axis = row ? dim : dim - group.rowShape.size();
    int64_t below = 1;
    for (int64_t d : shape.drop_front(axis + 1))
      below *= d;
    RowForm form = makeForm(row, !row);
    return add({form, i32, fill(form, [&](int64_t r, int64_t c) {
                  return static_cast<double>((row ? r : c) / below % shape[axis]);
                })});
  }

  RowValue unary(RowUnary f, RowValue x) override {
    return map({x}, f32, [=](ArrayRef<double> v) {
      switch (f) {
      case RowUnary::Neg:
        return -v[0];
      case RowUnary::Exp:
        return std::exp(v[0]);
      case RowUnary::Log:
        return std::log(v[0]);
      case RowUnary::Sqrt:
        return std::sqrt(v[0]);
      case RowUnary::Rsqrt:
        return 1.0 / std::sqrt(v[0]);
      case RowUnary::Tanh:
        return std::tanh(v[0]);
      case RowUnary::Erf:
        return std::erf(v[0]);
      case RowUnary::Sin:
        return std::sin(v[0]);
      case RowUnary::Cos:
        return std::cos(v[0]);
      case RowUnary::Sigmoid:
        return v[0] >= 0 ? 1.0 / (1.0 + std::exp(-v[0])) : std::exp(v[0]) / (1.0 + std::exp(v[0]));
      case RowUnary::PowerOfTwo:
        return v[0] == 0.0 || !std::isfinite(v[0]) ? v[0] : std::ldexp(1.0, std::ilogb(v[0]));
      }
      return 0.0;
    });
  }
  RowValue binary(RowBinary f, RowValue a, RowValue b) override {
    if (!isa<FloatType>(elementType(a)))
      return map({a, b}, i32, [=](ArrayRef<double> v) { return ofWords(f, v[0], v[1]); });
    return map({a, b}, f32, [=](ArrayRef<double> v) {
      switch (f) {
      case RowBinary::Add:
        return v[0] + v[1];
      case RowBinary::Sub:
        return v[0] - v[1];
      case RowBinary::Mul:
        return v[0] * v[1];
      case RowBinary::Div:
        return v[0] / v[1];
      case RowBinary::Max:
        return v[0] < v[1] || v[1] != v[1] ? v[1] : v[0];
      case RowBinary::Min:
        return v[1] < v[0] || v[1] != v[1] ? v[1] : v[0];
      case RowBinary::MulHigh:
      case RowBinary::Xor:
        break;
      }
      return 0.0;
    });
  }
  RowValue compare(Predicate p, RowValue a, RowValue b) override {
    return map({a, b}, i1, [=](ArrayRef<double> v) -> double {
      switch (p) {
      case Predicate::eq:
        return v[0] == v[1];
      case Predicate::ne:
        return v[0] != v[1];
      case Predicate::lt:
        return v[0] < v[1];
      case Predicate::le:
        return v[0] <= v[1];
      case Predicate::gt:
        return v[0] > v[1];
      case Predicate::ge:
        return v[0] >= v[1];
      }
      return 0.0;
    });
  }
  RowValue select(RowValue condition, RowValue a, RowValue b) override {
    return map({condition, a, b}, elementType(a),
               [](ArrayRef<double> v) { return v[0] != 0.0 ? v[1] : v[2]; });
  }
  RowValue cast(RowValue x, Type to) override {
    bool truncate = to.isInteger(32);
    return map({x}, to, [=](ArrayRef<double> v) { return truncate ? std::trunc(v[0]) : v[0]; });
  }

  RowValue reduce(RowReduction r, RowValue x) override {
    return add({RowForm::Row, f32, fill(RowForm::Row, [&](int64_t row, int64_t) {
                  double all =
                      r == RowReduction::Sum ? 0.0 : -std::numeric_limits<double>::infinity();
                  for (int64_t c = 0; c < group.columns(); ++c)
                    all =
                        r == RowReduction::Sum ? all + at(x, row, c) : std::max(all, at(x, row, c));
                  return all;
                })});
  }
  RowValue sumRows(RowValue x, RowForm of) override {
    RowForm form = makeForm(false, overColumns(of));
    return add({form, f32, fill(form, [&](int64_t, int64_t column) {
                  double all = 0.0;
                  for (int64_t r = 0; r < group.rows(); ++r)
                    all += at(x, r, column);
                  return all;
                })});
  }

  RowValue gather(unsigned operand, RowValue row) override {
    return add({RowForm::Tile, f32, fill(RowForm::Tile, [&](int64_t r, int64_t c) {
                  int64_t line = static_cast<int64_t>(at(row, r, 0));
                  return inputs[operand]->data[line * group.columns() + c];
                })});
  }
  RowValue rotate(unsigned operand, const Rotation &rotation,
                  std::optional<RowValue> position) override {
    const RefTensor &x = *inputs[operand];
    int64_t width = x.cols(), half = width / 2, columns = group.columns();
    int64_t period = rotation.period ? rotation.period
                     : position      ? std::numeric_limits<int64_t>::max()
                                     : rotation.length;
    return add({RowForm::Tile, f32, fill(RowForm::Tile, [&](int64_t r, int64_t c) {
                  int64_t i = c % width, head = c - i, pair = rotation.halfSplit ? i % half : i / 2;
                  bool second = rotation.halfSplit ? i >= half : i % 2;
                  int64_t partner = rotation.halfSplit ? (second ? i - half : i + half) : i ^ 1;
                  int64_t row =
                      position ? static_cast<int64_t>(at(*position, r, 0)) : r % rotation.length;
                  double angle = row % period * std::pow(rotation.base, -2.0 * pair / width) *
                                 (rotation.inverse ? -1.0 : 1.0);
                  double own = x.data[r * columns + c];
                  double other = x.data[r * columns + head + partner];
                  return own * std::cos(angle) + (second ? 1.0 : -1.0) * other * std::sin(angle);
                })});
  }

private:
  struct Value {
    RowForm form;
    Type element;
    std::vector<double> data; ///< row-major over what the form varies with
  };

  RowValue add(Value v) {
    values.push_back(std::move(v));
    return {static_cast<unsigned>(values.size() - 1)};
  }

  double at(RowValue v, int64_t row, int64_t column) const {
    const Value &value = values[v.id];
    int64_t width = overColumns(value.form) ? group.columns() : 1;
    return value
        .data[(overRows(value.form) ? row * width : 0) + (overColumns(value.form) ? column : 0)];
  }

  template <typename F> std::vector<double> fill(RowForm form, F f) const {
    std::vector<double> data;
    for (int64_t r = 0; r < (overRows(form) ? group.rows() : 1); ++r)
      for (int64_t c = 0; c < (overColumns(form) ? group.columns() : 1); ++c)
        data.push_back(f(r, c));
    return data;
  }

  template <typename F> RowValue map(ArrayRef<RowValue> operands, Type element, F f) {
    bool rows = false, columns = false;
    for (RowValue v : operands) {
      rows |= overRows(form(v));
      columns |= overColumns(form(v));
    }
    RowForm joined = makeForm(rows, columns);
    return add({joined, element, fill(joined, [&](int64_t r, int64_t c) {
                  SmallVector<double> v;
                  for (RowValue operand : operands)
                    v.push_back(at(operand, r, c));
                  return f(v);
                })});
  }

  Type f32, i32, i1;
  RowDomain group;
  std::vector<const RefTensor *> inputs;
  std::vector<Value> values;
};

RankedTensorType typeOf(mlir::Value v) { return llvm::cast<RankedTensorType>(v.getType()); }

SmallVector<RefTensor> evaluateEmission(FusedOp group, std::vector<const RefTensor *> inputs) {
  RowInterpreter rows(group.getContext(), group.getDomain(), inputs);
  SmallVector<RowValue> loaded(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i)
    if (!group.isOuterOnly(i))
      loaded[i] =
          rows.load(i, group.getInputForm(i), typeOf(group.getInputs()[i]).getElementType());
  SmallVector<RefTensor> results;
  for (auto [i, value] : llvm::enumerate(group.emit(rows, loaded))) {
    RefTensor &tensor = results.emplace_back(typeOf(group.getResult(i)).getShape());
    tensor.data = rows.store(value, group.getResultForm(i));
  }
  return results;
}

} // namespace

TensorMap interpretEmission(EntryOp program, const TensorMap &values) {
  llvm::DenseMap<mlir::Value, std::unique_ptr<RefTensor>> tensors;
  auto give = [&](mlir::Value v, RefTensor tensor) {
    tensors[v] = std::make_unique<RefTensor>(std::move(tensor));
  };
  for (auto [argument, name] : llvm::zip(program.getBody().getArguments(),
                                         program.getArgNames().getAsValueRange<StringAttr>()))
    give(argument, values.lookup(name));
  for (Operation &op : program.getBody().front().without_terminator()) {
    if (auto use = llvm::dyn_cast<UseOp>(op)) {
      give(use.getValue(), values.lookup(use.getVariable()));
      continue;
    }
    std::vector<const RefTensor *> operands;
    for (mlir::Value v : op.getOperands())
      operands.push_back(tensors[v].get());
    SmallVector<RefTensor> results;
    if (auto group = llvm::dyn_cast<FusedOp>(op)) {
      results = evaluateEmission(group, operands);
    } else {
      for (mlir::Value v : op.getResults())
        results.emplace_back(typeOf(v).getShape());
      if (failed(llvm::cast<ReferenceOpInterface>(op).evaluate(operands, results)))
        return {};
    }
    for (auto [value, result] : llvm::zip(op.getResults(), results))
      give(value, std::move(result));
  }
  ReturnOp end = program.getReturn();
  TensorMap outputs;
  for (auto [name, value] :
       llvm::zip(end.getOutputNames().getAsValueRange<StringAttr>(), end.getOutputs()))
    outputs[name] = *tensors[value];
  for (auto [symbol, value] :
       llvm::zip(end.getUpdated().getAsRange<FlatSymbolRefAttr>(), end.getUpdates()))
    outputs[symbol.getValue()] = *tensors[value];
  return outputs;
}

} // namespace hydra::test
