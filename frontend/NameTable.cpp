// From the operations of a bound model.
#include "frontend/NameTable.h"

#include "runtime/support/Error.h"
#include "runtime/support/Shown.h"

#include <algorithm>
#include <map>

namespace hydra::frontend {

std::vector<int64_t> NamedParameter::originShape() const {
  std::vector<int64_t> other = shape;
  if (transposed)
    std::ranges::reverse(other);
  return other;
}

std::vector<NamedParameter> namesOf(ModelOp model) {
  std::vector<NamedParameter> table;
  std::map<std::string, std::string> users;
  for (ParamOp param : model.getBody().getOps<ParamOp>()) {
    const std::string name = param.getSymName().str();
    if (!param.getOrigin())
      support::fail(
          "the parameter {} does not say from which tensor it is; expected from \"NAME\" behind it",
          support::shown(name));
    NamedParameter &entry = table.emplace_back();
    entry.name = name;
    entry.origin = param.getOrigin()->str();
    entry.transposed = param.getTransposed();
    const llvm::ArrayRef<int64_t> shape = param.getBoundType().getShape();
    entry.shape.assign(shape.begin(), shape.end());
    if (const auto [other, isNew] = users.try_emplace(entry.origin, name); !isNew)
      support::fail("the parameters {} and {} are both from \"{}\"; expected a tensor for each",
                    support::shown(other->second), support::shown(name),
                    support::shown(entry.origin));
  }
  return table;
}

std::vector<std::string> statesOf(ModelOp model) {
  std::vector<std::string> names;
  for (StateOp state : model.getBody().getOps<StateOp>())
    names.push_back(state.getSymName().str());
  return names;
}

} // namespace hydra::frontend
