// What the rules of partitioning are made of.
#pragma once

#include "dialects/hydra/Build.h"

namespace hydra::partition {

using Spreads = llvm::MutableArrayRef<Spread>;
using Along = llvm::SmallVector<std::pair<unsigned, int64_t>>;

/// The first operand of which ranks have rows, or null.
inline const Spread *firstRows(llvm::ArrayRef<Spread> in) {
  const auto *it = llvm::find_if(in, [](const Spread &s) { return s.isRows(); });
  return it == in.end() ? nullptr : it;
}

inline void fill(Spreads list, const Spread &spread) { llvm::fill(list, Spread(spread)); }

inline bool anyPart(llvm::ArrayRef<Spread> in) {
  return llvm::any_of(in, [](const Spread &s) { return s.isPart(); });
}

/// All ranks compute the same from the same.
inline void together(Spreads in, Spreads out) {
  fill(in, Spread::same());
  fill(out, Spread::same());
}

/// Within a loop ranks cannot meet: what is linear stays a part of a sum there, also where adding
/// up first would send less.
inline bool inLoop(mlir::Operation *op) { return !op->getParentOfType<EntryOp>().isProgram(); }

inline int64_t rankOf(mlir::Value v) { return build::typeOf(v).getRank(); }

template <typename Model, typename Op>
using RuleOf = PartitionOpInterface::ExternalModel<Model, Op>;

template <template <typename> typename Rule, typename... Ops>
void attach(mlir::MLIRContext &context) {
  (Ops::template attachInterface<Rule<Ops>>(context), ...);
}

/// The rules of operations that work element by element, move elements or reduce.
void attachShapeRules(mlir::MLIRContext &context);

} // namespace hydra::partition
