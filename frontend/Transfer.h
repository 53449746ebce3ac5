// Weights from one file to another under other names, tensor by tensor: never more than one is in
// memory.
#pragma once

#include "frontend/Architecture.h"
#include "frontend/NameTable.h"
#include "frontend/WeightFiles.h"
#include "runtime/support/OutputPath.h"

#include <filesystem>
#include <optional>
#include <span>

namespace hydra::frontend {

/// Whether the files have the trunk's names without the architecture's prefix, as those of a trunk
/// alone do.
bool lacksPrefix(const Architecture &architecture, const WeightFiles &weights);
/// The same of the names that a model says by `from`.
bool lacksPrefix(const Architecture &architecture, std::span<const NamedParameter> table);
/// The architecture with the names that files without the prefix have.
Architecture withoutPrefix(Architecture architecture);

/// Writes what the table asks for, under Hydra's names, in `dtype` or as it is. `path` appears
/// complete or not at all. Throws Error for a tensor that is missing, misshapen or no
/// floating-point number, and one that is neither in the table nor a buffer nor a copy of the tied
/// table.
void importWeights(const WeightFiles &weights, const Architecture &architecture,
                   std::span<const NamedParameter> table, std::optional<support::DType> dtype,
                   const std::filesystem::path &path);

/// The same for a model that says itself which tensors it is made of: the table. They may have
/// dimensions of 1 more. Beside them there may be copies of them, bit for bit, and tensors with
/// such endings.
void importWeights(const WeightFiles &weights, std::span<const NamedParameter> table,
                   std::span<const std::string_view> buffers, std::optional<support::DType> dtype,
                   const std::filesystem::path &path);

/// The same back: writes the parameters of a file of Hydra's under the names of the table. `states`
/// are names that the file may hold beside them. Adapters of the file are added to their parameters
/// if `merge` says so; else Error.
void exportWeights(const support::SafetensorsFile &file, std::span<const NamedParameter> table,
                   std::span<const std::string> states, std::optional<support::DType> dtype,
                   const support::OutputPath &path, bool merge = false);

/// Writes a file of Hydra's under the same names, without its adapters, which are added to their
/// parameters. Throws Error for a file without any.
void mergeWeights(const support::SafetensorsFile &file, std::optional<support::DType> dtype,
                  const std::filesystem::path &path);

/// Writes the adapters of a file of Hydra's alone, as PEFT has them: `adapter_config.json` and
/// `adapter_model.safetensors` in a directory. `base`: what the configuration calls the model that
/// they belong to. `architecture`: whose prefix modules get where the table lacks it; null: none.
/// Throws Error for a file without any, and where PEFT has no word for which of the parameters are
/// adapted.
void exportAdapter(const support::SafetensorsFile &file, std::span<const NamedParameter> table,
                   std::span<const std::string> states, std::optional<support::DType> dtype,
                   const std::string &base, const support::OutputPath &directory,
                   const Architecture *architecture = nullptr);

} // namespace hydra::frontend
