// hydra-import: a model and its weights from a directory of Hugging Face.
#include "compiler/driver/CommandLine.h"
#include "compiler/driver/NamedFiles.h"
#include "frontend/ModelWriter.h"
#include "frontend/Text.h"
#include "frontend/Transfer.h"
#include "frontend/families/Families.h"
#include "runtime/support/AtomicFile.h"
#include "runtime/support/Error.h"
#include "runtime/support/StandardStreams.h"
#include "tools/common/ParsedModel.h"
#include "tools/common/WeightFormat.h"

#include <numeric>
#include <optional>
#include <span>

using namespace mlir;
using namespace hydra;
namespace cl = llvm::cl;
namespace fs = std::filesystem;

namespace {

constexpr llvm::StringLiteral kOverview =
    "Makes a model file and weights of a directory as Hugging Face has them.\n\n"
    "  hydra-import Llama-3.2-1B -o llama.mlir --weights llama.safetensors\n"
    "  hydrac llama.mlir --preset=Llama-3.2-1B --batch=1 --seq=2048 -o plan.fb\n"
    "  hydra-run plan.fb --weights llama.safetensors ...\n\n"
    "The numbers of its config.json become a preset with the name of the directory. Weights are "
    "read from\n"
    "model.safetensors, or the files that model.safetensors.index.json names, and keep their "
    "number format.\n";

struct Options {
  cl::OptionCategory category{"Import"};
  cl::opt<std::string> directory{cl::Positional, cl::desc("DIR"), cl::value_desc("DIR"),
                                 cl::cat(category)};
  cl::opt<std::string> output{"o", cl::value_desc("FILE"), cl::cat(category),
                              cl::init("model.mlir"),
                              cl::desc("where the model goes (default: model.mlir)")};
  cl::opt<std::string> weights{"weights", cl::value_desc("FILE"), cl::cat(category),
                               cl::desc("where the weights go (default: none are read)")};
  WeightFormatOption dtype{category};
};

/// The last part of the path, as a preset is called.
std::string presetOf(const std::string &directory) {
  const fs::path path = fs::absolute(directory).lexically_normal();
  return frontend::plainName(
      (path.has_filename() ? path.filename() : path.parent_path().filename()).string());
}

LogicalResult import(const Options &options) {
  if (options.directory.empty())
    support::fail("no directory is given; expected DIR [flags], see --help");
  const fs::path directory = options.directory.getValue(), config = directory / "config.json";
  frontend::Architecture architecture = frontend::readArchitecture(frontend::Config::open(config));
  std::optional<frontend::WeightFiles> weights;
  std::vector<NamedFile> inputs = {{"the configuration", config}};
  if (!options.weights.empty()) {
    weights.emplace(directory);
    for (const fs::path &path : weights->paths())
      inputs.push_back({"a file of weights", path});
    if (frontend::lacksPrefix(architecture, *weights))
      architecture = frontend::withoutPrefix(architecture);
  }
  checkOutputs(inputs, {{"-o", options.output}, {"--weights", options.weights}});
  const std::string preset = presetOf(options.directory),
                    text = frontend::modelText(architecture, preset);

  // The table of names is read from the text, as an export will.
  ParsedModel model;
  if (failed(model.load(text, options.output, preset)))
    return failure();
  const std::vector<frontend::NamedParameter> table = frontend::namesOf(model.model());
  support::AtomicFile file(options.output.getValue());
  file.write(std::as_bytes(std::span(text)));
  if (weights)
    frontend::importWeights(*weights, architecture, table, options.dtype.dtype(),
                            options.weights.getValue());
  file.commit();

  int64_t elements = 0;
  for (const frontend::NamedParameter &parameter : table)
    elements += std::accumulate(parameter.shape.begin(), parameter.shape.end(), int64_t{1},
                                std::multiplies());
  printOutput(fmt::format("{}: {} {}, {} parameters\n", options.output.getValue(),
                          architecture.family, preset, elements));
  return success();
}

} // namespace

int main(int argc, char **argv) {
  support::reserveStandardStreams();
  static Options options;
  if (!parseCommandLine(argc, argv, kOverview, {&options.category}))
    return 1;
  try {
    return failed(import(options));
  } catch (const std::bad_alloc &) {
    printProblem("there is not enough memory for a tensor of this model");
  } catch (const std::exception &error) {
    printProblem(error.what());
  }
  return 1;
}
