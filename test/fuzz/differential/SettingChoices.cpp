// Passes, meshes and operands that a setting can choose from.
#include "test/fuzz/differential/SettingChoices.h"

#include "compiler/Backends.h"
#include "compiler/codegen/cuda/CudaLibraries.h"
#include "passes/precision/Policy.h"

#include "mlir/IR/MLIRContext.h"
#include "mlir/Pass/PassManager.h"

using llvm::StringRef;

namespace hydra::test {

std::vector<std::string> optionalPasses(const Setting &setting) {
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  mlir::PassManager manager(&context);
  const std::vector<std::string> present = buildPlanPipeline(manager, setting.compileOptions());
  std::vector<std::string> names;
  for (const PassEntry &pass : pipelinePasses())
    if (!pass.required && llvm::is_contained(present, pass.name) &&
        !llvm::is_contained(names, pass.name))
      names.push_back(pass.name);
  return names;
}

std::vector<std::string> meshesOf(const SettingRange &range) {
  std::vector<std::string> meshes;
  if ((range.target != "cpu" && !range.compileOnly) || range.batch == 0)
    return meshes;
  for (const auto &[ranks, mesh] : {std::pair<int64_t, const char *>(2, "data:2"),
                                    {3, "data:3"},
                                    {4, "data:4"},
                                    {4, "node:2,data:2"},
                                    {6, "data:6"},
                                    {6, "node:2,data:3"},
                                    {6, "node:3,data:2"}})
    if (range.batch % ranks == 0)
      meshes.emplace_back(mesh);
  return meshes;
}

bool canHaveCode(const SettingRange &range) {
  return range.target == "cpu" || !range.compileOnly || !cuda::sourceCompilerVersion().empty();
}

std::vector<int64_t> levelsOf(const std::string &mesh, StringRef shard) {
  return shard != "ddp" && StringRef(mesh).contains(',') ? std::vector<int64_t>{1, 2}
                                                         : std::vector<int64_t>{1};
}

/// Whether it matters for numbers which parameters a matmul reads: a history of scales has a row
/// for each operand, and where some are joined with one that stays in bf16, or is small, all of
/// them stay.
static bool tellsOperandsApart(const Setting &setting) {
  const Setting plain;
  return setting.precision == "fp8" &&
         (setting.fp8Amax == "delayed" || setting.fp8Keep != plain.fp8Keep ||
          setting.fp8Least != plain.fp8Least);
}

void keepOperands(Setting &setting) {
  if (!tellsOperandsApart(setting))
    return;
  if (setting.fp8Amax == "delayed")
    std::erase(setting.disabled, "hydra-quantize-matmuls");
  const std::vector<std::string> optional = optionalPasses(setting);
  for (const char *name :
       {"hydra-fuse-qkv", "hydra-fuse-gate-up", "hydra-fuse-siblings", "hydra-raise-linear-ce"})
    if (llvm::is_contained(optional, name) && !llvm::is_contained(setting.disabled, name))
      setting.disabled.emplace_back(name);
}

bool multipliesInt8(const Setting &setting) {
  const support::DType format = precisionPolicy(setting.precision)->format;
  const bool narrow = backendOf(Target::named(setting.target)).wants().narrowInt8Rows;
  return format != support::DType::TF32 && !(narrow && format == support::DType::F32);
}

} // namespace hydra::test
