// Writing, finding and reading checkpoints.
#include "runtime/run/Checkpoint.h"

#include "runtime/run/TensorValues.h"
#include "runtime/run/Variables.h"
#include "runtime/support/AtomicFile.h"
#include "runtime/support/Error.h"
#include "runtime/support/Safetensors.h"

#include <fcntl.h>
#include <nlohmann/json.hpp>
#include <sys/file.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <fstream>
#include <optional>
#include <vector>

using namespace hydra::runtime;
using namespace hydra::planfile;
using hydra::support::fail;
using nlohmann::json;
namespace fs = std::filesystem;

namespace {

constexpr int kFormat = 1;
constexpr const char *kManifest = "checkpoint.json";
constexpr const char *kTemporary = ".saving-"; // followed by the name of the checkpoint

/// The files of a checkpoint, in the order they are written.
constexpr std::array<const char *, 2> kTensorFiles = {"model.safetensors", "optimizer.safetensors"};
const char *fileOf(const Variable &variable) { return kTensorFiles[variable.moment_of() >= 0]; }

std::string nameOf(int64_t step) { return fmt::format("step-{:08}", step); }

/// The step of a checkpoint's name; nothing for any other name.
std::optional<int64_t> stepOf(const fs::path &path) {
  const std::string name = path.filename();
  constexpr std::string_view prefix = "step-";
  int64_t step = 0;
  if (!name.starts_with(prefix))
    return std::nullopt;
  const char *end = name.data() + name.size();
  const auto [rest, error] = std::from_chars(name.data() + prefix.size(), end, step);
  return error == std::errc() && rest == end && nameOf(step) == name ? std::optional(step)
                                                                     : std::nullopt;
}

/// The checkpoints of a folder by their steps.
std::map<int64_t, fs::path> checkpointsIn(const fs::path &folder) {
  std::map<int64_t, fs::path> found;
  std::error_code code;
  for (fs::directory_iterator it(folder, code), end; !code && it != end; it.increment(code))
    if (const auto step = stepOf(it->path()))
      found[*step] = it->path();
  return found;
}

std::string hashText(std::span<const std::byte> bytes) {
  return fmt::format("{:016x}", XXH3_64bits(bytes.data(), bytes.size()));
}

/// What must be equal for a run to go on with another plan.
json identityOf(const PlanFile &file) {
  const Plan &plan = file.plan();
  json symbols = json::object(), inputs = json::object();
  for (const KeyValue *symbol : *plan.header()->symbols())
    symbols[symbol->key()->str()] = symbol->value()->str();
  for (const Program *program : *plan.programs()) {
    const std::string_view name = program->name()->string_view();
    if (name == "train" || name == "accumulate")
      for (const Input *input : *program->inputs())
        inputs[input->name()->str()] = shapeOf(*plan.tensors()->Get(input->tensor()));
  }
  return {{"model", plan.header()->model()->str()},
          {"precision", plan.header()->precision()->str()},
          {"accumulation", plan.accumulation()},
          {"symbol", symbols},
          {"input", inputs}};
}

void checkIdentity(const fs::path &directory, const PlanFile &file, const json &saved) {
  const json ours = identityOf(file).flatten(), theirs = saved.flatten();
  std::map<std::string, std::pair<std::string, std::string>> values;
  for (const auto &[key, value] : ours.items())
    values[key].first = value.dump();
  for (const auto &[key, value] : theirs.items())
    values[key].second = value.dump();
  for (const auto &[key, value] : values) {
    if (value.first == value.second)
      continue;
    std::string name = key.substr(1);
    std::replace(name.begin(), name.end(), '/', ' ');
    const auto text = [](const std::string &t) { return t.empty() ? "nothing" : t; };
    fail("{}: made by another plan: {} is {} there and {} in {}; --weights takes its parameters "
         "alone",
         directory.string(), name, text(value.second), text(value.first), file.origin());
  }
}

/// Throws NotFinite, in which `what` was to be saved.
void checkFinite(const fs::path &what, const Variable &variable, const Tensor &tensor,
                 std::span<const std::byte> values) {
  const hydra::support::DType dtype = dtypeOf(tensor);
  const std::optional<size_t> bad = hydra::support::firstNotFinite(dtype, values);
  if (!bad)
    return;
  const size_t size = hydra::support::byteSize(dtype);
  double value = 0;
  hydra::support::toDoubles(dtype, values.subspan(*bad * size, size), std::span(&value, 1));
  throw NotFinite(fmt::format("cannot save {}: {}{} is {}; expected finite parameters and states "
                              "(what was saved before stays)",
                              what.string(), variable.name()->string_view(),
                              placeText(tensor, static_cast<int64_t>(*bad)), value));
}

/// One file of `what` is to be saved, or all of it.
void writeTensors(const fs::path &path, const fs::path &what, const PlanFile &file,
                  Executor &executor, const std::vector<const Variable *> &variables,
                  const hydra::support::SafetensorsMetadata &metadata, json *hashes) {
  const auto &tensors = *file.plan().tensors();
  std::vector<hydra::support::TensorInfo> infos;
  for (const Variable *variable : variables) {
    const Tensor &tensor = *tensors.Get(variable->tensor());
    infos.push_back({variable->name()->str(), dtypeOf(tensor), shapeOf(tensor)});
  }
  hydra::support::SafetensorsWriter writer(path, infos, metadata);
  std::vector<std::byte> bytes;
  for (const Variable *variable : variables) {
    bytes.resize(denseBytes(*tensors.Get(variable->tensor())));
    executor.read(variable->tensor(), bytes);
    checkFinite(what, *variable, *tensors.Get(variable->tensor()), bytes);
    if (hashes)
      (*hashes)[variable->name()->str()] = hashText(bytes);
    writer.append(variable->name()->string_view(), bytes);
  }
  writer.commit();
}

hydra::support::SafetensorsMetadata metadataOf(const PlanFile &file, const TrainingState *state) {
  const Header &header = *file.plan().header();
  json config = json::object();
  for (const KeyValue *symbol : *header.symbols())
    config[symbol->key()->str()] = symbol->value()->str();
  hydra::support::SafetensorsMetadata metadata{
      {"family", json(header.model()->str()).dump()},
      {"preset", json(header.preset() ? header.preset()->str() : "").dump()},
      {"config", config.dump()}};
  if (state) {
    metadata["step"] = json(state->step).dump();
    metadata["data_position"] = json(state->step * file.plan().accumulation()).dump();
    metadata["rng"] = json({{"algorithm", "philox4x32-10"}, {"seed", state->seed}}).dump();
  }
  return metadata;
}

void syncDirectory(int descriptor, const fs::path &path) {
  if (::fsync(descriptor) != 0 && errno != EINVAL) // EINVAL: no sync of directories there
    fail("cannot sync {}: {}", path.string(), hydra::support::errnoText(errno));
}

/// A directory that is removed unless it is kept.
class TemporaryDirectory {
public:
  explicit TemporaryDirectory(fs::path directory) : path(std::move(directory)) {
    std::error_code code;
    fs::remove_all(path, code);
    if (!fs::create_directory(path, code))
      fail("cannot create {}: {}", path.string(), code.message());
  }
  ~TemporaryDirectory() {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
  TemporaryDirectory(const TemporaryDirectory &) = delete;
  TemporaryDirectory &operator=(const TemporaryDirectory &) = delete;

  const fs::path path;
};

} // namespace

CheckpointFolder::CheckpointFolder(const fs::path &path, int64_t step) : folder(path) {
  std::error_code code;
  fs::create_directories(folder, code);
  if (code)
    fail("cannot create the folder {}: {}", folder.string(), code.message());
  descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0)
    fail("cannot open the folder {}: {}", folder.string(), support::errnoText(errno));
  try {
    if (::flock(descriptor, LOCK_EX | LOCK_NB) != 0)
      fail("another run saves into {}; choose another folder for --save", folder.string());
    if (::access(folder.c_str(), W_OK) != 0)
      fail("cannot write into the folder {}: {}", folder.string(), support::errnoText(errno));
    const std::map<int64_t, fs::path> present = checkpointsIn(folder);
    if (!present.empty() && present.rbegin()->first > step)
      fail("{} is there, but this run begins at step {}; continue with --resume auto, or choose "
           "another folder for --save",
           present.rbegin()->second.string(), step);
    for (const fs::directory_entry &entry : fs::directory_iterator(folder))
      if (entry.path().filename().string().starts_with(kTemporary))
        fs::remove_all(entry.path(), code);
  } catch (const fs::filesystem_error &error) {
    ::close(descriptor);
    fail("cannot read the folder {}: {}", folder.string(), error.code().message());
  } catch (...) {
    ::close(descriptor);
    throw;
  }
}

CheckpointFolder::~CheckpointFolder() { ::close(descriptor); }

fs::path CheckpointFolder::save(const PlanFile &file, Executor &executor,
                                const TrainingState &state) {
  const fs::path target = folder / nameOf(state.step);
  const TemporaryDirectory temporary(folder / (kTemporary + nameOf(state.step)));
  json hashes = json::object();
  for (const char *name : kTensorFiles) {
    std::vector<const Variable *> variables;
    for (const Variable *variable : *file.plan().variables())
      if (!isCopy(*variable) && fileOf(*variable) == name)
        variables.push_back(variable);
    writeTensors(temporary.path / name, target, file, executor, variables, metadataOf(file, &state),
                 &hashes);
  }
  const std::string manifest =
      json{{"format", kFormat},  {"step", state.step},           {"seed", state.seed},
           {"data", state.data}, {"schedules", state.schedules}, {"plan", identityOf(file)},
           {"hashes", hashes}}
          .dump(2) +
      "\n";
  {
    support::AtomicFile out(temporary.path / kManifest);
    out.write(std::as_bytes(std::span(manifest)));
    out.commit();
  }
  // A directory cannot be renamed over one that is not empty, but the two can change places.
  const bool replaces = fs::exists(target);
  if (::renameat2(AT_FDCWD, temporary.path.c_str(), AT_FDCWD, target.c_str(),
                  replaces ? RENAME_EXCHANGE : RENAME_NOREPLACE) != 0)
    fail("cannot rename the finished checkpoint to {}: {}", target.string(),
         support::errnoText(errno));
  syncDirectory(descriptor, folder);
  return target;
}

void CheckpointFolder::prune(int keep) {
  std::map<int64_t, fs::path> present = checkpointsIn(folder);
  while (present.size() > static_cast<size_t>(keep)) {
    std::error_code code;
    // Renamed first, so that a half-removed one is no checkpoint.
    const fs::path doomed = folder / (kTemporary + present.begin()->second.filename().string());
    fs::rename(present.begin()->second, doomed, code);
    if (!code)
      fs::remove_all(doomed, code);
    if (code)
      fail("cannot remove the old checkpoint {}: {}", present.begin()->second.string(),
           code.message());
    present.erase(present.begin());
  }
}

bool Checkpoint::exists(const fs::path &path) {
  return fs::exists(path / kManifest) || !checkpointsIn(path).empty();
}

Checkpoint::Checkpoint(const fs::path &path, const PlanFile &file) : file(file), directory(path) {
  if (!fs::exists(path / kManifest)) {
    const std::map<int64_t, fs::path> present = checkpointsIn(path);
    if (present.empty())
      fail("there is no checkpoint in {}", path.string());
    directory = present.rbegin()->second;
  }
  const fs::path manifest = directory / kManifest;
  std::ifstream in(manifest);
  if (!in)
    fail("cannot read {}: {}", manifest.string(), support::errnoText(errno));
  try {
    const json content = json::parse(in);
    if (const int format = content.at("format"); format != kFormat)
      fail("{}: checkpoint format {}; expected {}", manifest.string(), format, kFormat);
    checkIdentity(directory, file, content.at("plan"));
    training.step = content.at("step");
    training.seed = content.at("seed");
    training.data = content.at("data");
    training.schedules = content.at("schedules").get<std::map<std::string, std::string>>();
    hashes = content.at("hashes").get<std::map<std::string, std::string>>();
  } catch (const json::exception &error) {
    fail("{} is damaged: {}", manifest.string(), error.what());
  }
  if (training.step < 0)
    fail("{} is damaged: step {}", manifest.string(), training.step);
}

void Checkpoint::restore(Executor &executor) const {
  const auto &tensors = *file.plan().tensors();
  std::map<std::string_view, GivenTensors> files;
  for (const char *name : kTensorFiles)
    files.emplace(name, directory / name);
  const auto valuesOf = [&](const Variable &variable) {
    const GivenTensors &from = files.at(fileOf(variable));
    const std::string_view name = variable.name()->string_view();
    std::vector<std::byte> values = from.values(name, *tensors.Get(variable.tensor()));
    const auto hash = hashes.find(std::string(name));
    if (hash == hashes.end())
      fail("{}: tensor {} has no hash in {}", from.path(), name, kManifest);
    if (hash->second != hashText(values))
      fail("{}: tensor {} is damaged: its hash is {}; {} says {}", from.path(), name,
           hashText(values), kManifest, hash->second);
    return values;
  };
  // Everything is checked before anything is changed.
  for (const Variable *variable : *file.plan().variables())
    if (!isCopy(*variable))
      valuesOf(*variable);
  for (const Variable *variable : *file.plan().variables())
    if (!isCopy(*variable))
      writeVariable(file.plan(), executor, *variable, valuesOf(*variable));
}

void hydra::runtime::exportWeights(const fs::path &path, const PlanFile &file, Executor &executor) {
  std::vector<const Variable *> parameters;
  for (const Variable *variable : *file.plan().variables())
    if (variable->kind() == VariableKind::param)
      parameters.push_back(variable);
  writeTensors(path, path, file, executor, parameters, metadataOf(file, nullptr), nullptr);
}
