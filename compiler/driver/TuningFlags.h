// The flags that say what of a model is trained.
#pragma once

#include "compiler/Pipelines.h"
#include "compiler/driver/CommandLine.h"

#include <optional>
#include <string>

namespace hydra {

/// `rank=16,alpha=32,targets=*.wq,*.wv` as options; nullopt, with the reason in `problem`, for a
/// text that is none.
std::optional<TuningOptions::Lora> parseLora(llvm::StringRef text, std::string &problem);

/// `--freeze` and `--lora`. Lives in main from before flags are parsed to the end, as does what
/// they are bound to.
class TuningFlags {
public:
  TuningFlags(TuningOptions &tuning, llvm::cl::OptionCategory &category);

  /// What `--lora` was given; empty without it.
  const std::string &loraText() const { return lora.getValue(); }

private:
  struct LoraParser : llvm::cl::parser<std::string> {
    using parser::parser;
    bool parse(llvm::cl::Option &option, llvm::StringRef name, llvm::StringRef text,
               std::string &value);
  };
  llvm::cl::list<std::string, std::vector<std::string>> freeze;
  llvm::cl::opt<std::string, false, LoraParser> lora;
};

} // namespace hydra
