// Which preset a document is shown with, and for which batch: from the editor's settings, and from
// a comment of the document, which wins:
//
//   // hydra-lsp: --preset=tiny --batch=2 --seq=8 --set=V=97,eps=1.0e-6 --routing=static
#pragma once

#include "compiler/Pipelines.h"
#include "tools/hydra-lsp/Names.h"

#include "llvm/Support/JSON.h"

#include <optional>

namespace hydra::lsp {

/// What the editor says, by the names of the flags: `preset`, `set`, `batch`, `seq`, `routing`.
/// Without a preset the first one of the document is taken; a batch is 1 and a sequence 32 long
/// unless something says otherwise.
struct Configuration {
  std::string preset;
  std::vector<std::string> settings; ///< NAME=VALUE
  int64_t batch = 1, seq = 32;
  Routing routing = Routing::Dynamic;

  /// Takes over what an object of the settings gives. Returns what is wrong with the rest, or
  /// nothing.
  std::string read(const llvm::json::Object &given);
  /// The same of one flag, `--batch=2`.
  std::string readFlag(llvm::StringRef flag);

private:
  std::string give(llvm::StringRef name, llvm::StringRef value);
};

/// Something in the comment, or about the preset, that is not as expected.
struct ConfigurationProblem {
  size_t begin, end; ///< bytes of the document
  std::string message;
};

/// How a document is bound.
struct Choice {
  BindingOptions binding;
  std::vector<ConfigurationProblem> problems;
};

/// The configuration for one document. A preset that the editor asks for and the document lacks
/// gives way to the document's first one, and is a problem; so is one of the comment.
Choice choiceFor(const Names &names, Configuration configuration);

/// The word behind which flags follow in a comment.
inline constexpr llvm::StringLiteral kCommentMark = "hydra-lsp:";

} // namespace hydra::lsp
