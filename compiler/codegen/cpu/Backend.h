// From LLVM IR to the bytes of a shared object.
#pragma once

#include "compiler/codegen/cpu/CpuTarget.h"

#include "llvm/Support/Error.h"

#include <cstdint>
#include <string>
#include <vector>

namespace llvm {
class Function;
class Module;
} // namespace llvm

namespace hydra::cpu {

/// Sets the triple and data layout of a module of generated kernels.
llvm::Error prepareModule(llvm::Module &module, const CpuTarget &target);
/// Sets what the back end must know of a kernel.
void prepareFunction(llvm::Function &function, const CpuTarget &target);

/// What the object follows from beside the module. To be changed with what compileObject does.
std::string objectsOf(const CpuTarget &target);
/// Optimises the module and compiles it to an ELF object: position independent, nothing imported.
llvm::Expected<std::vector<uint8_t>> compileObject(llvm::Module &module, const CpuTarget &target);

/// Links objects, in this order, to a shared object that exports their functions.
llvm::Expected<std::vector<uint8_t>>
linkShared(llvm::ArrayRef<std::vector<uint8_t>> objects);

} // namespace hydra::cpu
