// Row-wise operations seen as one group: a domain that all of them fit, what they read, and the
// `hydra.fused` that they become.
#pragma once

#include "dialects/hydra/RowForms.h"
#include "passes/Passes.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

namespace hydra {

/// Operations without work of their own: constants, index tensors, reshapes and broadcasts. A group
/// that needs one has a copy of it inside.
bool isFreeSource(mlir::Operation *op);
/// Whether an operation can be a member of a group.
bool isGroupable(mlir::Operation *op);
/// The value behind reshapes and broadcasts.
mlir::Value originOf(mlir::Value v);

/// What a group reads: a value in one form, or (no form) a table to gather from or rotate.
struct GroupInput {
  mlir::Value value;
  std::optional<RowForm> form;

  bool operator==(const GroupInput &) const = default;
};

class GroupLayout {
public:
  /// The members, in program order, in a domain that fits them all; nullopt if there is none.
  static std::optional<GroupLayout> find(llvm::ArrayRef<mlir::Operation *> members);

  const RowDomain &getDomain() const { return domain; }
  llvm::ArrayRef<mlir::Operation *> getMembers() const { return members; }
  llvm::ArrayRef<GroupInput> getInputs() const { return inputs; }

  /// Whether an input is a broadcast in another shape than the broadcast's own: all of it then has
  /// to be written to memory first, where one in its own shape, or computed in the group, has not.
  bool isReshapedBroadcast(const GroupInput &input) const;
  bool readsReshapedBroadcast() const;

  /// Results of members that something outside uses.
  llvm::SmallVector<mlir::Value> liveResults() const;
  /// Writes the group where its last member stands and erases the members.
  FusedOp build() const;

private:
  enum class Source {
    Member,    ///< computed in the group
    Copied,    ///< a free source that gets a copy in the group
    Read,      ///< an input of the group
    Impossible ///< a result of the group in a form in which it cannot be read
  };

  explicit GroupLayout(llvm::ArrayRef<mlir::Operation *> members)
      : members(members), isMember(members.begin(), members.end()) {}

  bool assign(RowDomain candidate);
  bool anyReadsElsewhere() const;
  bool assign(RowWiseOpInterface op);
  void collectInputs();
  Source classify(mlir::Value v, RowForm form) const;
  bool comesFromMember(mlir::Value v) const;
  /// Whether a value can be an input or result of that form as it is.
  bool hasShapeOf(RowForm form, mlir::Value v) const;
  bool isUsedOutside(mlir::Value v) const;

  /// A free source that holds `v` in `form`, and the form of its operand.
  std::optional<RowForm> operandForm(mlir::Operation *source, RowForm form) const;
  mlir::Location location() const;

  llvm::SmallVector<mlir::Operation *> members;
  llvm::SmallPtrSet<mlir::Operation *, 16> isMember;
  RowDomain domain;
  llvm::DenseMap<mlir::Operation *, RowForm> forms; ///< of each member in the domain
  llvm::SmallVector<GroupInput> inputs;

  friend class GroupWriter;
};

} // namespace hydra
