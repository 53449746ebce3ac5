// From the operations of a bound model.
#include "frontend/NameTable.h"

#include "runtime/support/Error.h"
#include "runtime/support/Shown.h"

#include <algorithm>
#include <map>

namespace hydra::frontend {

std::vector<std::string> NamedParameter::origins() const {
  if (rows == 0)
    return {origin};
  const std::string_view placeholder = kRowPlaceholder;
  std::vector<std::string> names;
  for (int64_t row = 0; row < rows; ++row)
    names.push_back(std::string(origin).replace(origin.find(placeholder), placeholder.size(),
                                                std::to_string(row)));
  return names;
}

std::vector<int64_t> NamedParameter::originShape() const {
  std::vector<int64_t> other(shape.begin() + (rows > 0 ? 1 : 0), shape.end());
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
    if (param.getOrigin()->contains(kRowPlaceholder))
      entry.rows = entry.shape.front();
    for (const std::string &origin : entry.origins())
      if (const auto [other, isNew] = users.try_emplace(origin, name); !isNew)
        support::fail("the parameters {} and {} are both from \"{}\"; expected a tensor for each",
                      support::shown(other->second), support::shown(name), support::shown(origin));
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
