// The declarations of a model's text: parameters, definitions, entries, presets. Each can be looked
// at without the others, so that a mistake in one of them hides none of the others.
#pragma once

#include "tools/hydra-lsp/Names.h"

#include "llvm/ADT/BitVector.h"

#include <optional>

namespace hydra::lsp {

/// One declaration, with all bytes up to the next one.
struct Declaration {
  size_t begin, end;
  unsigned statement;     ///< that it is
  unsigned stack = kNone; ///< the declaration that it is in
};

class Declarations {
public:
  /// `names` must outlive it. There are none in a text that has not exactly one model.
  explicit Declarations(const Names &names);

  unsigned size() const { return static_cast<unsigned>(list.size()); }
  const Declaration &operator[](unsigned number) const { return list[number]; }
  /// The innermost one around a byte; the last one behind all of them; kNone: in front.
  unsigned at(size_t offset) const;

  /// The text with white space instead of some declarations: places stay what they are. A stack
  /// goes with all that is in it.
  std::string without(const llvm::BitVector &left) const;
  /// The text with those alone that come behind one.
  std::string behind(unsigned number) const;
  /// The text with one declaration alone, without what is wrong in it.
  std::string only(unsigned number, const llvm::BitVector &wrong) const;

  /// What must be left out where `wrong` are: these, and what mentions what they declare, or may
  /// have been meant to declare.
  llvm::BitVector dependents(const llvm::BitVector &wrong);

private:
  /// Who mentions what.
  struct Mentions {
    std::vector<llvm::SmallVector<unsigned>> users; ///< of each declaration
    /// The names in each declaration that nothing declares, if it may be meant to.
    std::vector<llvm::SmallVector<llvm::StringRef>> strange;
    llvm::StringMap<llvm::SmallVector<unsigned>> strangers; ///< who says a name of that kind
  };
  void readMentions();
  bool declaresWords(unsigned number) const;

  const Names &names;
  std::optional<Mentions> mentions; ///< once somebody asks
  std::vector<Declaration> list;    ///< in the order of the text, a stack in front of what is in it
};

} // namespace hydra::lsp
