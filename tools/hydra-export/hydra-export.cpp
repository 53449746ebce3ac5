// hydra-export: weights of a model as a directory that transformers loads.
#include "compiler/driver/CommandLine.h"
#include "compiler/driver/ModelText.h"
#include "frontend/ModelWriter.h"
#include "frontend/Transfer.h"
#include "frontend/families/Families.h"
#include "runtime/run/CheckpointNames.h"
#include "runtime/run/TensorHashes.h"
#include "runtime/support/AtomicFile.h"
#include "runtime/support/Error.h"
#include "runtime/support/InputFile.h"
#include "runtime/support/NamedFiles.h"
#include "runtime/support/ProblemOf.h"
#include "runtime/support/Shown.h"
#include "runtime/support/StandardStreams.h"
#include "runtime/support/StopSignal.h"
#include "runtime/support/TemporaryFolder.h"
#include "tools/common/ParsedModel.h"
#include "tools/common/WeightFormat.h"

#include "llvm/Support/MemoryBuffer.h"

#include <unistd.h>

#include <algorithm>
#include <map>
#include <optional>
#include <span>

using namespace mlir;
using namespace hydra;
using support::fail;
using support::shown;
namespace cl = llvm::cl;
namespace fs = std::filesystem;

namespace {

constexpr llvm::StringLiteral kOverview =
    "Makes a directory that transformers loads of a model's weights.\n\n"
    "  hydra-export run --model=llama.mlir --preset=Llama-3.2-1B --config=Llama-3.2-1B/config.json "
    "-o trained\n"
    "  hydra-export run --adapter --model=llama.mlir --preset=Llama-3.2-1B -o adapter\n"
    "  hydra-export run --merge -o merged.safetensors\n\n"
    "WEIGHTS is a safetensors file (as of hydra-run --export), a checkpoint, or a run or a folder "
    "of "
    "checkpoints, and then\n"
    "stands for the newest. The model says by `from` what files of others call its parameters, or "
    "has the\n"
    "parameters of hydra-import. The configuration is the one that the model was imported with; it "
    "is copied,\n"
    "with the number format of the weights.\n"
    "What a plan of hydrac --lora has trained is exported alone (--adapter), as PEFT has it, or "
    "added to the\n"
    "parameters (--merge); without --config and --model that is a file under the names of the "
    "model.\n"
    "Without --config alone there are no more than the weights, for the programs that own models "
    "come "
    "from.\n";

struct Options {
  cl::OptionCategory category{"Export"};
  cl::opt<std::string> weights{cl::Positional, cl::desc("WEIGHTS"), cl::value_desc("WEIGHTS"),
                               cl::cat(category)};
  cl::opt<std::string> model{"model", cl::value_desc("FILE"), cl::cat(category),
                             cl::desc("the model file")};
  cl::opt<std::string> preset{"preset", cl::value_desc("NAME"), cl::cat(category),
                              cl::desc("a preset of the model (default: none)")};
  cl::list<std::string> set{"set", cl::value_desc("NAME=VALUE,..."), cl::cat(category),
                            cl::CommaSeparated,
                            cl::desc("values of symbols (default: those of the preset)")};
  cl::opt<std::string> config{"config", cl::value_desc("FILE"), cl::cat(category),
                              cl::desc("the configuration that the model was imported with "
                                       "(default: none is written)")};
  cl::opt<std::string> output{"o", cl::value_desc("DIR"), cl::cat(category),
                              cl::desc("the directory to make")};
  SwitchOption adapter{
      "adapter", cl::cat(category),
      cl::desc("write what a plan of hydrac --lora has trained, alone: a directory that PEFT loads "
               "(default: off)")};
  SwitchOption merge{"merge", cl::cat(category),
                     cl::desc("add that to the parameters (default: off)")};
  cl::opt<std::string> base{
      "base", cl::value_desc("NAME"), cl::cat(category),
      cl::desc("--adapter: the model that it belongs to, as PEFT loads it (default: what "
               "--config says, or the directory of --config)")};
  WeightFormatOption dtype{category};

  /// Whether what is written is a file of Hydra's.
  bool ownNames() const { return merge && config.empty() && model.empty(); }

  void check() const {
    if (adapter && merge)
      fail("--adapter and --merge exclude each other");
    if (!adapter && !base.empty())
      fail("--base is for --adapter");
    if (ownNames() && (!preset.empty() || !set.empty()))
      fail("--{} is for --model=FILE", preset.empty() ? "set" : "preset");
    for (const auto &[what, value] : {std::pair<const char *, const std::string &>(
                                          "weights are given; expected WEIGHTS [flags]", weights),
                                      {"model is given; expected --model=FILE", model},
                                      {"output is given; expected -o DIR", output}})
      if (value.empty() && !(ownNames() && &value == &model.getValue()))
        fail("no {}, see --help", what);
  }
};

/// The file of weights that a path stands for.
fs::path weightsAt(const fs::path &path) {
  std::error_code unknown; // whoever reads the file says what is wrong with it
  if (!fs::is_directory(path, unknown))
    return path;
  if (const fs::path file = path / runtime::kParametersFile; support::isThere(file))
    return file;
  const fs::path newest = runtime::newestCheckpoint(path, -1);
  if (const fs::path ofRun = path / "checkpoints";
      newest.empty() && fs::is_directory(ofRun, unknown))
    return weightsAt(ofRun);
  if (newest.empty())
    fail("{}: is no checkpoint, and holds none", support::shownPath(path));
  return newest / runtime::kParametersFile;
}

/// That file. Throws Error where it is one of a checkpoint, and is not what was saved.
fs::path checkedWeights(const Options &options) {
  fs::path path = weightsAt(options.weights.getValue());
  runtime::checkHashes(path);
  return path;
}

/// Throws Error unless the model has the tensors, by name and shape, that the configuration asks
/// for.
void checkTable(const std::vector<frontend::NamedParameter> &table,
                const std::vector<frontend::NamedParameter> &expected, const Options &options) {
  std::map<std::string, std::vector<int64_t>> shapes;
  for (const frontend::NamedParameter &parameter : table)
    for (const std::string &origin : parameter.origins())
      shapes[origin] = parameter.originShape();
  for (const frontend::NamedParameter &parameter : expected)
    for (const std::string &origin : parameter.origins()) {
      const auto found = shapes.find(origin);
      if (found == shapes.end())
        fail("{}: no parameter is from \"{}\", which {} asks for",
             support::shownPath(options.model.getValue()), shown(origin),
             support::shownPath(options.config.getValue()));
      if (found->second != parameter.originShape())
        fail("{}: \"{}\" is {}; expected {}, as {} says",
             support::shownPath(options.model.getValue()), shown(origin),
             support::shapeText(found->second), support::shapeText(parameter.originShape()),
             support::shownPath(options.config.getValue()));
      shapes.erase(found);
    }
  if (!shapes.empty())
    fail("{}: \"{}\" is nothing that {} asks for", support::shownPath(options.model.getValue()),
         shown(shapes.begin()->first), support::shownPath(options.config.getValue()));
}

/// Throws Error where the model has another size than the configuration: numbers of heads and
/// widths of windows are in no shape. A symbol that one of them does not have says nothing.
void checkSizes(ModelOp model, ModelOp expected, const Options &options) {
  for (const NamedAttribute symbol : expected.getBoundAttr().getAs<DictionaryAttr>("symbols")) {
    const auto size = dyn_cast<IntegerAttr>(symbol.getValue());
    const auto found = dyn_cast_or_null<IntegerAttr>(model.getSymbolValue(symbol.getName()));
    if (size && found && size.getInt() != found.getInt())
      fail("{}: {} is {}; expected {}, as {} says", support::shownPath(options.model.getValue()),
           symbol.getName().str(), found.getInt(), size.getInt(),
           support::shownPath(options.config.getValue()));
  }
}

/// What a model computes as its logits, as text; padding of lookups is of gradients alone.
std::string logitsOf(ModelOp model) {
  std::string text;
  llvm::raw_string_ostream os(text);
  if (EntryOp entry = model.lookupSymbol<EntryOp>("logits")) {
    entry->walk([](EmbeddingOp rows) { rows.removePaddingAttr(); });
    entry->print(os);
  }
  return text;
}

/// Says so where the logits are others than those of the configuration, or written in another way:
/// numbers such as bases of positions, caps, activations and kinds of layers are in no shape.
void compareLogits(ModelOp model, ModelOp expected, const Options &options) {
  if (logitsOf(model) != logitsOf(expected))
    std::fprintf(stderr, "hydra-export: %s\n",
                 fmt::format("{}: its logits are not written as {} asks for; what reads the "
                             "directory computes what the configuration says",
                             support::shownPath(options.model.getValue()),
                             support::shownPath(options.config.getValue()))
                     .c_str());
}

/// The model that the configuration asks for, under the names with or without prefix that the
/// other one has.
LogicalResult loadExpected(frontend::Architecture architecture,
                           const std::vector<frontend::NamedParameter> &table,
                           ParsedModel &expected) {
  if (frontend::lacksPrefix(architecture, table))
    architecture = frontend::withoutPrefix(architecture);
  return expected.load(frontend::modelText(architecture, "expected"),
                       "the model of the configuration", "expected");
}

/// The configuration, with the format that the weights have.
std::string configText(nlohmann::ordered_json config, const frontend::NamedParameter &any,
                       const fs::path &weights) {
  const support::SafetensorsFile file(weights);
  const support::DType dtype = file.find(any.origins().front())->dtype;
  const char *name = dtype == support::DType::BF16  ? "bfloat16"
                     : dtype == support::DType::F16 ? "float16"
                     : dtype == support::DType::F64 ? "float64"
                                                    : "float32";
  for (const char *field : {"torch_dtype", "dtype"}) // the first is its older name
    if (config.contains(field))
      config[field] = name;
  if (!config.contains("torch_dtype"))
    config["dtype"] = name;
  return config.dump(2) + "\n";
}

/// A directory that has its name once it is complete, and else goes.
class NewDirectory {
public:
  explicit NewDirectory(fs::path path) {
    path = path.lexically_normal();
    if (!path.has_filename()) // `model/`
      path = path.parent_path();
    std::error_code error;
    const fs::path target = fs::absolute(path, error).lexically_normal();
    if (error)
      fail("cannot write {}: {}", support::shownPath(path), error.message());
    if (fs::exists(fs::symlink_status(target, error)))
      fail("cannot write {}: it exists", support::shownPath(path));
    // What is there already is another's, or what a killed one has left: in containers processes
    // have the same numbers.
    for (int number = 0; !folder; ++number) {
      const fs::path free =
          target.parent_path() / fmt::format(".{}.{}{}", target.filename().string(), ::getpid(),
                                             number == 0 ? "" : fmt::format("-{}", number));
      if (fs::create_directory(free, error))
        folder.emplace(support::OutputPath(free, path));
      else if (error)
        fail("cannot write {}: {}", support::shownPath(path), error.message());
    }
  }

  const support::OutputPath &path() const { return folder->path(); }
  void commit() {
    if (const std::error_code error = folder->rename())
      fail("cannot write {}: {}", support::shownPath(path().shown), error.message());
  }

private:
  std::optional<support::TemporaryFolder> folder;
};

/// What PEFT is to load the adapter's model from.
std::string baseOf(const Options &options) {
  if (!options.base.empty() || options.config.empty())
    return options.base;
  const frontend::Config config = frontend::Config::open(options.config.getValue());
  const auto name = config.json().find("_name_or_path");
  if (name != config.json().end() && name->is_string() && !name->get<std::string>().empty())
    return name->get<std::string>();
  return fs::absolute(options.config.getValue()).lexically_normal().parent_path().string();
}

/// The model of `--model`, bound.
LogicalResult loadModel(const Options &options, ParsedModel &model) {
  std::string problem;
  const std::unique_ptr<llvm::MemoryBuffer> text = readModelText(options.model, problem);
  if (!text)
    fail("cannot open the model: {}", problem);
  return model.load(text->getBuffer().str(), options.model, options.preset,
                    {options.set.begin(), options.set.end()});
}

/// Whether a model says of no parameter which tensor of others it is.
bool isUnnamed(ModelOp model) {
  return llvm::none_of(model.getBody().getOps<ParamOp>(),
                       [](ParamOp param) { return param.getOrigin().has_value(); });
}

/// Whether a model has the parameters of a table, by name and shape.
bool hasParameters(ModelOp model, const std::vector<frontend::NamedParameter> &table) {
  std::map<StringRef, ArrayRef<int64_t>> shapes;
  for (ParamOp param : model.getBody().getOps<ParamOp>())
    shapes[param.getSymName()] = param.getBoundType().getShape();
  return shapes.size() == table.size() &&
         llvm::all_of(table, [&](const frontend::NamedParameter &parameter) {
           const auto found = shapes.find(parameter.name);
           return found != shapes.end() && found->second == ArrayRef<int64_t>(parameter.shape);
         });
}

/// What the model says of its parameters. One that says nothing, and has those of the model that
/// hydra-import would make of the configuration, has the names of that.
std::vector<frontend::NamedParameter>
tableOf(ModelOp model, const std::optional<frontend::Architecture> &architecture,
        const Options &options) {
  ParsedModel imported;
  if (architecture && isUnnamed(model) && succeeded(loadExpected(*architecture, {}, imported)))
    if (std::vector<frontend::NamedParameter> table = frontend::namesOf(imported.model());
        hasParameters(model, table))
      return table;
  if (!architecture && isUnnamed(model))
    fail("{}: no parameter says from which tensor it is; expected --config=FILE, which gives them "
         "names, or from \"NAME\" behind each",
         support::shownPath(options.model.getValue()));
  return frontend::namesOf(model);
}

/// Adapters alone.
LogicalResult exportAdapter(const Options &options) {
  std::optional<frontend::Architecture> architecture;
  if (!options.config.empty())
    architecture = frontend::readArchitecture(frontend::Config::open(options.config.getValue()));
  ParsedModel model;
  if (failed(loadModel(options, model)))
    return failure();
  const support::SafetensorsFile weights(checkedWeights(options));
  NewDirectory directory(options.output.getValue());
  frontend::exportAdapter(weights, tableOf(model.model(), architecture, options),
                          frontend::statesOf(model.model()), options.dtype.dtype(), baseOf(options),
                          directory.path(), architecture ? &*architecture : nullptr);
  directory.commit();
  return success();
}

/// Adapters added to parameters, under the same names.
void mergeAdapters(const Options &options) {
  const fs::path source = checkedWeights(options);
  support::checkOutputs({{"WEIGHTS", source}}, {{"-o", options.output}});
  frontend::mergeWeights(support::SafetensorsFile(source), options.dtype.dtype(),
                         options.output.getValue());
}

/// A directory of all parameters.
LogicalResult exportModel(const Options &options) {
  std::optional<frontend::Config> config;
  std::optional<frontend::Architecture> architecture;
  if (!options.config.empty()) {
    config = frontend::Config::open(options.config.getValue());
    architecture = frontend::readArchitecture(*config);
  }
  ParsedModel model;
  if (failed(loadModel(options, model)))
    return failure();
  const std::vector<frontend::NamedParameter> table = tableOf(model.model(), architecture, options);
  if (architecture) {
    ParsedModel expected;
    if (failed(loadExpected(*architecture, table, expected)))
      return failure();
    checkTable(table, frontend::namesOf(expected.model()), options);
    checkSizes(model.model(), expected.model(), options);
    compareLogits(model.model(), expected.model(), options);
  }

  const support::SafetensorsFile weights(checkedWeights(options));
  NewDirectory directory(options.output.getValue());
  const support::OutputPath file = directory.path() / "model.safetensors";
  frontend::exportWeights(weights, table, frontend::statesOf(model.model()), options.dtype.dtype(),
                          file, options.merge);
  if (config) {
    const std::string content = configText(config->json(), table.front(), file.place);
    support::AtomicFile written(directory.path() / "config.json");
    written.write(std::as_bytes(std::span(content)));
    written.commit();
  }
  directory.commit();
  return success();
}

LogicalResult run(const Options &options) {
  checkFileNames({&options.model, &options.config});
  options.check();
  if (options.adapter)
    return exportAdapter(options);
  if (!options.ownNames())
    return exportModel(options);
  mergeAdapters(options);
  return success();
}

} // namespace

int main(int argc, char **argv) {
  support::reserveStandardStreams();
  static Options options;
  if (!parseCommandLine(argc, argv, kOverview, {&options.category}))
    return 1;
  const support::StopSignal stop; // leaves nothing behind
  try {
    return failed(run(options));
  } catch (const std::exception &error) {
    printProblem(support::problemOf(error));
  }
  return support::StopSignal::statusOfError();
}
