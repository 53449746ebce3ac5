// The flags that every tool taking a model has: which model, bound how, extended to what.
#pragma once

#include "compiler/Pipelines.h"
#include "compiler/driver/CommandLine.h"

#include <optional>
#include <string>

namespace hydra {

/// `forward`, `grad`, `train`.
llvm::StringRef modeName(Mode mode);

/// Lives in main from before parseCommandLine to the end.
struct ModelOptions {
  /// `modeDefault` is what `--help` says about a missing `--mode`.
  explicit ModelOptions(llvm::StringRef modeDefault);

  llvm::cl::OptionCategory category;
  llvm::cl::opt<std::string> file;
  llvm::cl::opt<std::string> preset;
  llvm::cl::list<std::string> set;
  IntegerOption<1> batch, seq;
  ChoiceOption<Mode> mode;
  IntegerOption<1, std::numeric_limits<int32_t>::max()> accum;
  llvm::cl::opt<std::string> dumpPasses;

  /// `--mode`, if given.
  std::optional<Mode> givenMode() const;
  /// Whether any flag says how to bind.
  bool bindingGiven() const;
  BindingOptions binding() const;

private:
  std::string modeHelp;
};

} // namespace hydra
