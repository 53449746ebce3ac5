// hydra-inspect: what is in a plan.
#include "runtime/plan/PlanFile.h"
#include "runtime/support/Error.h"
#include "runtime/support/StandardStreams.h"
#include "tools/common/ParseArguments.h"
#include "tools/hydra-inspect/PlanJson.h"
#include "tools/hydra-inspect/PlanText.h"

#include <cerrno>
#include <cstdio>

using namespace hydra;

namespace {

struct Options {
  std::string path;
  bool json = false, parameters = false, memory = false, kernels = false, steps = false;
  bool precision = false;

  bool everything() const { return !(parameters || memory || kernels || steps || precision); }
};

std::string asText(const Options &options, const runtime::PlanFile &file) {
  const bool all = options.everything();
  std::string text;
  const auto add = [&](bool wanted, auto render) {
    if (!wanted)
      return;
    if (!text.empty())
      text += '\n';
    text += render();
  };
  add(all, [&] { return inspect::headerText(file); });
  add(all || options.parameters, [&] { return inspect::parametersText(file.plan()); });
  add(all || options.memory, [&] { return inspect::memoryText(file.plan()); });
  add(all || options.kernels, [&] { return inspect::kernelsText(file.plan()); });
  add(all || options.steps, [&] { return inspect::stepsText(file.plan()); });
  add(options.precision, [&] { return inspect::precisionText(file.plan()); });
  return text;
}

std::string asJson(const Options &options, const runtime::PlanFile &file) {
  const bool all = options.everything();
  inspect::Json json;
  if (all)
    inspect::addHeader(json, file);
  if (all || options.parameters)
    inspect::addParameters(json, file.plan());
  if (all || options.memory)
    inspect::addMemory(json, file.plan());
  if (all || options.kernels)
    inspect::addKernels(json, file.plan());
  if (all || options.steps)
    inspect::addSteps(json, file.plan());
  if (options.precision)
    inspect::addPrecision(json, file.plan());
  return json.dump(1, ' ', false, inspect::Json::error_handler_t::replace) + "\n";
}

void print(const std::string &text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0)
    support::fail("cannot write to standard output: {}", support::errnoText(errno));
}

} // namespace

int main(int argc, char **argv) {
  support::reserveStandardStreams();
  Options options;
  CLI::App app("Shows what is in a plan: header, parameters, memory map, kernels, steps.");
  app.add_option("plan", options.path, "the plan, as hydrac writes it")->required();
  app.add_flag("--json", options.json, "as JSON");
  app.add_flag("--parameters", options.parameters, "only parameters, states and scalars");
  app.add_flag("--memory", options.memory, "only segments, categories and live ranges");
  app.add_flag("--kernels", options.kernels, "only generated kernels");
  app.add_flag("--steps", options.steps, "only programs and their steps");
  app.add_flag("--precision", options.precision,
               "only the element types of parameters, matmuls, norms, logits, loss and gradients");
  app.footer("Without a selection everything is shown; selections add up.\n"
             "Example: hydra-inspect plan.fb --memory");
  if (const auto status = parseArguments(app, argc, argv, "hydra-inspect"))
    return *status;
  try {
    const auto file = runtime::PlanFile::read(options.path);
    print(options.json ? asJson(options, file) : asText(options, file));
  } catch (const std::exception &error) {
    std::fprintf(stderr, "hydra-inspect: %s\n", error.what());
    return 1;
  }
  return 0;
}
