// How tensors lie in the domain of a group of row-wise operations.
#include "dialects/hydra/RowForms.h"
#include "dialects/hydra/Hydra.h"

using namespace mlir;

namespace hydra {

static bool variesOverRows(RowForm f) { return f == RowForm::Tile || f == RowForm::Row; }
static bool variesOverColumns(RowForm f) { return f == RowForm::Tile || f == RowForm::Column; }

static RowForm makeForm(bool rows, bool columns) {
  return rows ? (columns ? RowForm::Tile : RowForm::Row)
              : (columns ? RowForm::Column : RowForm::Scalar);
}

static SmallVector<int64_t> joined(ArrayRef<int64_t> a, ArrayRef<int64_t> b) {
  SmallVector<int64_t> shape(a);
  shape.append(b.begin(), b.end());
  return shape;
}

/// Row values, told apart from column values by a 1 for each inner dimension.
static SmallVector<int64_t> markedRows(const RowDomain &domain) {
  return joined(domain.rowShape, SmallVector<int64_t>(domain.innerShape.size(), 1));
}

std::optional<RowForm> formOfShape(const RowDomain &domain, ArrayRef<int64_t> shape) {
  if (shape == ArrayRef(joined(domain.rowShape, domain.innerShape)))
    return RowForm::Tile;
  if (shape.empty())
    return RowForm::Scalar;
  if (shape == ArrayRef(domain.innerShape))
    return RowForm::Column;
  if (shape == ArrayRef(domain.rowShape) || shape == ArrayRef(markedRows(domain)))
    return RowForm::Row;
  return std::nullopt;
}

SmallVector<int64_t> shapeOfForm(const RowDomain &domain, RowForm form) {
  switch (form) {
  case RowForm::Tile:
    return joined(domain.rowShape, domain.innerShape);
  case RowForm::Row:
    return domain.rowShape == domain.innerShape ? markedRows(domain) : domain.rowShape;
  case RowForm::Column:
    return domain.innerShape;
  case RowForm::Scalar:
    return {};
  }
  llvm_unreachable("four forms");
}

bool sameForm(const RowDomain &domain, RowForm a, RowForm b) {
  return (domain.rows() == 1 || variesOverRows(a) == variesOverRows(b)) &&
         (domain.columns() == 1 || variesOverColumns(a) == variesOverColumns(b));
}

/// How many leading dimensions hold exactly `rows` elements; nullopt if none do.
static std::optional<size_t> rowPrefix(ArrayRef<int64_t> shape, int64_t rows) {
  int64_t n = 1;
  for (size_t i = 0; i <= shape.size(); ++i) {
    if (n == rows)
      return i;
    if (i < shape.size())
      n *= shape[i];
  }
  return std::nullopt;
}

bool fitsForm(const RowDomain &domain, RowForm form, ArrayRef<int64_t> shape) {
  int64_t want = (variesOverRows(form) ? domain.rows() : 1) *
                 (variesOverColumns(form) ? domain.columns() : 1);
  return RefTensor::elements(shape) == want &&
         (form != RowForm::Tile || rowPrefix(shape, domain.rows()));
}

/// Whether dimensions are kept (`true`), all repeated (`false`), or a mixture (nullopt).
static std::optional<bool> keeps(ArrayRef<int64_t> from, ArrayRef<int64_t> to) {
  if (from == to)
    return true;
  if (llvm::all_of(from, [](int64_t d) { return d == 1; }))
    return false;
  return std::nullopt;
}

std::optional<RowForm> formBeforeBroadcast(const RowDomain &domain, RowForm form,
                                           ArrayRef<int64_t> from, ArrayRef<int64_t> to) {
  if (!fitsForm(domain, form, to))
    return std::nullopt;
  SmallVector<int64_t> aligned(to.size() - from.size(), 1);
  aligned.append(from.begin(), from.end());
  size_t split = form == RowForm::Tile  ? *rowPrefix(to, domain.rows())
                 : form == RowForm::Row ? to.size()
                                        : 0;
  std::optional<bool> rows = keeps(ArrayRef(aligned).take_front(split), to.take_front(split));
  std::optional<bool> columns = keeps(ArrayRef(aligned).drop_front(split), to.drop_front(split));
  if (!rows || !columns)
    return std::nullopt;
  return makeForm(variesOverRows(form) && *rows, variesOverColumns(form) && *columns);
}

SmallVector<RowForm, 4> fittingForms(const RowDomain &domain, RowWiseOpInterface op) {
  SmallVector<int64_t> shape = op.rowWiseShape();
  SmallVector<RowForm, 4> forms;
  std::optional<unsigned> split = op.rowDimensions();
  if (!split) {
    for (RowForm form : {RowForm::Tile, RowForm::Row, RowForm::Column, RowForm::Scalar})
      if (fitsForm(domain, form, shape))
        forms.push_back(form);
    return forms;
  }
  ArrayRef<int64_t> rows = ArrayRef(shape).take_front(*split);
  ArrayRef<int64_t> inner = ArrayRef(shape).drop_front(*split);
  if (rows != ArrayRef(domain.rowShape))
    return forms;
  if (inner == ArrayRef(domain.innerShape))
    forms.push_back(RowForm::Tile);
  else if (inner.empty())
    forms.push_back(RowForm::Row);
  return forms;
}

RowForm formWithin(RowForm op, RowForm own) {
  return makeForm(variesOverRows(op) && variesOverRows(own),
                  variesOverColumns(op) && (variesOverColumns(own)));
}

RowForm formByRank(Value v) {
  return cast<RankedTensorType>(v.getType()).getRank() == 0 ? RowForm::Scalar : RowForm::Tile;
}

StringRef formName(RowForm form) {
  switch (form) {
  case RowForm::Tile:
    return "tile";
  case RowForm::Row:
    return "row value";
  case RowForm::Column:
    return "column value";
  case RowForm::Scalar:
    return "scalar";
  }
  llvm_unreachable("four forms");
}

} // namespace hydra
