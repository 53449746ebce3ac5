// The text of a model, before anything parses it.
#pragma once

#include "mlir/Support/LLVM.h"
#include "llvm/Support/ErrorOr.h"
#include "llvm/Support/MemoryBuffer.h"

#include <memory>
#include <optional>
#include <string>

namespace hydra {

/// Reads a regular file, or standard input for `-`; `problem` says why not: one may wait at a pipe
/// for ever.
std::unique_ptr<llvm::MemoryBuffer> readModelText(const std::string &path, std::string &problem);

/// A bracket of a text, from 1.
struct TextPlace {
  unsigned line = 1, column = 1;
};

/// Brackets nest so deep at most; MLIR's parser calls itself for each and has one stack.
/// Expressions (512) in regions (64) fit.
inline constexpr unsigned kMostNesting = 600;

/// The first place that nests deeper, counted with what `#name` and `!name` stand for.
std::optional<TextPlace> findDeepNesting(llvm::StringRef text);

} // namespace hydra
