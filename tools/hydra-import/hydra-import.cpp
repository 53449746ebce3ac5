// hydra-import: a model and its weights from a directory of Hugging Face.
#include "compiler/driver/CommandLine.h"
#include "compiler/driver/ModelText.h"
#include "frontend/ModelWriter.h"
#include "frontend/Text.h"
#include "frontend/Transfer.h"
#include "frontend/families/Families.h"
#include "frontend/own/OwnModels.h"
#include "runtime/support/AtomicFile.h"
#include "runtime/support/Error.h"
#include "runtime/support/NamedFiles.h"
#include "runtime/support/ProblemOf.h"
#include "runtime/support/Shown.h"
#include "runtime/support/StandardStreams.h"
#include "runtime/support/StopSignal.h"
#include "tools/common/ParsedModel.h"
#include "tools/common/WeightFormat.h"

#include "llvm/Support/MemoryBuffer.h"

#include <numeric>
#include <optional>
#include <span>

using namespace mlir;
using namespace hydra;
namespace cl = llvm::cl;
namespace fs = std::filesystem;

namespace {

constexpr llvm::StringLiteral kOverview =
    "Makes a model file and weights of a directory as Hugging Face has them, or of a checkpoint "
    "of\n"
    "the programs that Hydra's own models come from.\n\n"
    "  hydra-import Llama-3.2-1B -o llama.mlir --weights llama.safetensors\n"
    "  hydrac llama.mlir --preset=Llama-3.2-1B --batch=1 --seq=2048 -o plan.fb\n"
    "  hydra-run plan.fb --weights llama.safetensors ...\n\n"
    "The numbers of its config.json become a preset with the name of the directory. Weights are "
    "read from\n"
    "model.safetensors, or the files that model.safetensors.index.json names, and keep their "
    "number format.\n"
    "With --model they become those of a model that is there, which says by `from` what they are "
    "called.\n";

struct Options {
  cl::OptionCategory category{"Import"};
  cl::opt<std::string> directory{cl::Positional, cl::desc("DIR|FILE"), cl::value_desc("DIR|FILE"),
                                 cl::cat(category)};
  cl::opt<std::string> output{"o", cl::value_desc("FILE"), cl::cat(category),
                              cl::init("model.mlir"),
                              cl::desc("where the model goes (default: model.mlir)")};
  cl::opt<std::string> model{"model", cl::value_desc("FILE"), cl::cat(category),
                             cl::desc("read weights for this model (default: make one)")};
  cl::opt<std::string> preset{"preset", cl::value_desc("NAME"), cl::cat(category),
                              cl::desc("a preset of --model (default: none)")};
  cl::list<std::string> set{"set", cl::value_desc("NAME=VALUE,..."), cl::cat(category),
                            cl::CommaSeparated,
                            cl::desc("values of its symbols (default: those of the preset)")};
  cl::opt<std::string> weights{"weights", cl::value_desc("FILE"), cl::cat(category),
                               cl::desc("where the weights go (default: none are read)")};
  WeightFormatOption dtype{category};
};

/// The last part of the path, as a preset is called; of a file, without its ending.
std::string presetOf(const std::string &directory) {
  const fs::path path = fs::absolute(directory).lexically_normal();
  std::error_code unknown;
  return frontend::plainName((fs::is_regular_file(path, unknown) ? path.stem()
                              : path.has_filename()              ? path.filename()
                                                                 : path.parent_path().filename())
                                 .string());
}

/// What is read of `source`, for checkOutputs; its weights too where none are asked for, which
/// would be lost all the same.
std::vector<support::NamedFile> inputsOf(const fs::path &what, const char *name,
                                         const fs::path &source) {
  std::vector<support::NamedFile> inputs = {{name, what}};
  std::error_code unknown;
  for (const char *file : {"config.json", "meta.json"})
    if (fs::exists(source / file, unknown))
      inputs.push_back({"the configuration", source / file});
  if (!fs::is_directory(source, unknown))
    inputs.push_back({"a file of weights", source});
  else
    for (const fs::path &path : frontend::weightPaths(source))
      inputs.push_back({"a file of weights", path});
  return inputs;
}

void report(const std::string &file, std::string_view family, const std::string &preset,
            const std::vector<frontend::NamedParameter> &table) {
  int64_t elements = 0;
  for (const frontend::NamedParameter &parameter : table)
    elements += std::accumulate(parameter.shape.begin(), parameter.shape.end(), int64_t{1},
                                std::multiplies());
  printOutput(fmt::format("{}: {}{}{}, {} parameters\n", file, family, preset.empty() ? "" : " ",
                          preset, elements));
}

/// Of a directory as Hugging Face has it.
LogicalResult importArchitecture(const Options &options) {
  const fs::path directory = options.directory.getValue(), config = directory / "config.json";
  if (std::error_code unknown; fs::is_regular_file(directory, unknown))
    support::fail("{}: says nothing of its model; expected a directory with a config.json, or "
                  "--model=FILE",
                  support::shownPath(directory));
  frontend::Architecture architecture = frontend::readArchitecture(frontend::Config::open(config));
  std::optional<frontend::WeightFiles> weights;
  if (!options.weights.empty()) {
    weights.emplace(directory);
    if (frontend::lacksPrefix(architecture, *weights))
      architecture = frontend::withoutPrefix(architecture);
  }
  support::checkOutputs(inputsOf(config, "the configuration", directory),
                        {{"-o", options.output}, {"--weights", options.weights}});
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
  report(options.output, architecture.family, preset, table);
  return success();
}

/// Of a checkpoint that says which of Hydra's own models it is for.
LogicalResult importOwn(const Options &options, const frontend::OwnModel &own) {
  const fs::path source = options.directory.getValue();
  std::optional<frontend::WeightFiles> weights;
  if (!options.weights.empty())
    weights.emplace(source);
  support::checkOutputs(inputsOf(source, "the checkpoint", source),
                        {{"-o", options.output}, {"--weights", options.weights}});
  const std::string preset = frontend::freePreset(own, presetOf(options.directory)),
                    text = ownModelText(own, preset);
  ParsedModel model;
  if (failed(model.load(text, options.output, preset)))
    return failure();
  const std::vector<frontend::NamedParameter> table = frontend::namesOf(model.model());
  support::AtomicFile file(options.output.getValue());
  file.write(std::as_bytes(std::span(text)));
  if (weights)
    frontend::importWeights(*weights, table, frontend::buffersOf(own.name), options.dtype.dtype(),
                            options.weights.getValue());
  file.commit();
  report(options.output, own.name, preset, table);
  return success();
}

/// Weights for a model that is there.
LogicalResult importIntoModel(const Options &options) {
  if (options.weights.empty() || options.output.getNumOccurrences() > 0)
    support::fail("--model: the model is there; expected --weights=FILE, and no -o");
  std::string problem;
  const std::unique_ptr<llvm::MemoryBuffer> text = readModelText(options.model, problem);
  if (!text)
    support::fail("cannot open the model {}: {}", support::shownPath(options.model.getValue()),
                  problem);
  const frontend::WeightFiles weights(options.directory.getValue());
  support::checkOutputs(
      inputsOf(options.model.getValue(), "the model", options.directory.getValue()),
      {{"--weights", options.weights}});
  ParsedModel model;
  if (failed(model.load(text->getBuffer().str(), options.model, options.preset,
                        {options.set.begin(), options.set.end()})))
    return failure();
  const std::vector<frontend::NamedParameter> table = frontend::namesOf(model.model());
  const std::string name = model.model().getSymName().str();
  frontend::importWeights(weights, table, frontend::buffersOf(name), options.dtype.dtype(),
                          options.weights.getValue());
  report(options.weights, name, options.preset, table);
  return success();
}

LogicalResult import(const Options &options) {
  if (options.directory.empty())
    support::fail("no directory is given; expected DIR [flags], see --help");
  checkFileNames({&options.model, &options.weights});
  if (options.weights.empty() && options.dtype.getNumOccurrences() > 0)
    support::fail("--dtype is the number format of --weights=FILE, which is not given");
  if (!options.model.empty())
    return importIntoModel(options);
  if (!options.preset.empty() || !options.set.empty())
    support::fail("--{} is for --model=FILE", options.preset.empty() ? "set" : "preset");
  if (const auto own = frontend::findOwnModel(options.directory.getValue()))
    return importOwn(options, *own);
  return importArchitecture(options);
}

} // namespace

int main(int argc, char **argv) {
  support::reserveStandardStreams();
  static Options options;
  if (!parseCommandLine(argc, argv, kOverview, {&options.category}))
    return 1;
  const support::StopSignal stop; // leaves nothing behind
  try {
    return failed(import(options));
  } catch (const std::exception &error) {
    printProblem(support::problemOf(error));
  }
  return support::StopSignal::statusOfError();
}
