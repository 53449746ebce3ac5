// The entries of a plan file that others name by number: tensors, files and places in the model.
#pragma once

#include "dialects/plan/Plan.h"
#include "runtime/plan/plan_generated.h"

#include "llvm/ADT/StringMap.h"

#include <map>
#include <optional>
#include <string>
#include <tuple>

namespace hydra {

/// The same word of plan files: the lists of both are alike (PlanWordsTest).
template <typename To, typename From> To fileWord(From word) { return static_cast<To>(word); }

/// What reports are told of where something came from; defaults where its location has no tags.
struct Tags {
  Phase phase = Phase::forward;
  llvm::StringRef path, pass; ///< empty: none
  int32_t layer = -1;         ///< the number in a path such as `layers.3.mlp`; -1 outside of stacks
};
Tags tagsOf(mlir::Location loc);

/// Grows a file's tables; what is asked for again has the number that it had.
class FileTables {
public:
  /// `modelFile`: where operations are that have no place of their own.
  FileTables(planfile::PlanT &file, llvm::StringRef modelFile) : file(file), modelFile(modelFile) {}

  /// The number of the tensor that a value of type memref is.
  uint32_t tensor(mlir::Value value);
  /// The number of the place in the model that a location names.
  uint32_t location(mlir::Location loc);
  /// The number of a path; -1 of an empty one.
  int32_t path(llvm::StringRef path);

  /// What tensors of the buffer that a value lies in go by; to be set before they are asked for.
  std::string &bufferName(mlir::Value value) { return names[plan::placeOf(value).buffer]; }

  /// What plan files have of that name; a word that they do not know is an error.
  template <typename E>
  E known(std::optional<E> value, mlir::Location loc, llvm::StringRef what, llvm::StringRef word) {
    if (value)
      return *value;
    mlir::emitError(loc) << "plan files have no " << what << " '" << word << "'";
    complete = false;
    return E();
  }
  /// Whether every word was known.
  bool isComplete() const { return complete; }

private:
  uint32_t fileIndex(llvm::StringRef name);

  planfile::PlanT &file;
  llvm::StringRef modelFile;
  bool complete = true;
  llvm::DenseMap<mlir::Value, uint32_t> tensors;
  llvm::DenseMap<mlir::Operation *, std::string> names;
  llvm::DenseMap<mlir::Operation *, uint32_t> buffers; ///< their numbers
  llvm::StringMap<uint32_t> files, paths;
  std::map<std::tuple<uint32_t, uint32_t, uint32_t>, uint32_t> locations;
};

} // namespace hydra
