// Looking up what a target says of a kernel.
#include "compiler/codegen/cuda/TileRules.h"

using namespace mlir;

namespace hydra::cuda {

std::optional<int64_t> SaidSizes::get(StringRef name) const {
  const auto found = sizes.find(name.str());
  return found == sizes.end() ? std::nullopt : std::optional(found->second);
}

InFlightDiagnostic SaidSizes::refuse(Operation *step) const {
  return step->emitError() << "--kernel-tiles=" << said << ": ";
}

LogicalResult TileRules::read(Operation *module, TargetAttr target) {
  const auto add = [&](ArrayAttr texts, bool required) {
    if (!texts)
      return success();
    for (Attribute one : texts) {
      const auto text = dyn_cast<StringAttr>(one);
      std::string problem = "is no text";
      auto tiles = text ? KernelTiles::parse(text.getValue(), problem) : std::nullopt;
      if (!tiles)
        return LogicalResult(module->emitError() << "tiles of target " << target.getName() << ": "
                                                 << one << ": " << problem);
      tiles->required = required;
      rules.push_back({std::move(*tiles)});
    }
    return success();
  };
  return success(succeeded(add(target.getTiles(), false)) &&
                 succeeded(add(target.getRequiredTiles(), true)));
}

SaidSizes TileRules::of(StringRef kernel, int64_t width) {
  SaidSizes found;
  for (Rule &rule : rules) {
    if (rule.tiles.kernel != kernel || (rule.tiles.width != 0 && rule.tiles.width != width))
      continue;
    rule.used = true;
    for (const auto &[name, value] : rule.tiles.sizes)
      found.sizes[name] = value;
    found.said = rule.tiles.text();
  }
  return found;
}

LogicalResult TileRules::checkRequired(Operation *module) const {
  for (const Rule &rule : rules)
    if (rule.tiles.required && !rule.used)
      return module->emitError() << "--kernel-tiles=" << rule.tiles.text()
                                 << ": the plan has no such kernel";
  return success();
}

} // namespace hydra::cuda
