// What binds a model, as options of hydra-bind. Apart from the pipelines, for programs that only bind.
#include "compiler/Pipelines.h"

namespace hydra {

BindOptions bindOptions(const BindingOptions &binding) {
  BindOptions options;
  options.preset = binding.preset;
  options.set.assign(binding.settings.begin(), binding.settings.end());
  options.programs.assign(binding.programs.begin(), binding.programs.end());
  options.batch = binding.batch;
  options.seq = binding.seq;
  options.mesh.assign(binding.mesh.begin(), binding.mesh.end());
  options.staticRouting = binding.routing == Routing::Static;
  return options;
}

} // namespace hydra
