// CUDA C++ expressions of the numbers of a group over those that they are made of.
#pragma once

#include "compiler/codegen/rows/RowProgram.h"

#include <optional>
#include <string>

namespace hydra::cuda {

/// How numbers are divided, and roots taken: rounded to the nearest, or as
/// templates/update_hopper.cuh does it, within a unit in the last place.
enum class Divisions { Rounded, Branchless };

/// A constant, or a number that is made of other nodes' numbers of the same place, called as `name`
/// says; nothing of any other node.
std::optional<std::string>
madeText(const RowNode &node, llvm::function_ref<std::string(unsigned)> name, Divisions divisions);

/// A number rounded to a float of fewer bits.
std::string roundedText(RowType type, const std::string &x);
/// The number as one of another type.
std::string castText(RowType type, const std::string &x);
/// The C++ type in which numbers of that type are computed, and an element in memory as one.
llvm::StringRef numberType(RowType type);
std::string loadedText(RowType type, const std::string &element);

/// The table `name` of the frequencies of pairs of numbers that are rotated.
std::string frequenciesText(const std::string &name, const Rotation &rotation, int64_t pairs);

} // namespace hydra::cuda
