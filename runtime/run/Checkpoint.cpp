// Writing, finding and reading checkpoints.
#include "runtime/run/Checkpoint.h"

#include "runtime/plan/Mesh.h"
#include "runtime/run/CheckpointNames.h"
#include "runtime/run/FirstValues.h"
#include "runtime/run/LongWork.h"
#include "runtime/run/TensorValues.h"
#include "runtime/run/Variables.h"
#include "runtime/support/AtomicFile.h"
#include "runtime/support/BlockHash.h"
#include "runtime/support/Error.h"
#include "runtime/support/Safetensors.h"
#include "runtime/support/Shown.h"
#include "runtime/support/StreamHash.h"

#include <fcntl.h>
#include <nlohmann/json.hpp>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <optional>
#include <set>
#include <vector>

using namespace hydra::runtime;
using namespace hydra::planfile;
using hydra::support::fail;
using hydra::support::OutputPath;
using hydra::support::shown;
using hydra::support::shownPath;
using hydra::support::TemporaryFolder;
using nlohmann::json;
namespace fs = std::filesystem;

namespace {

constexpr const char *kTemporary = ".saving-"; // followed by the name of the checkpoint

/// The files of a checkpoint, in the order they are written.
constexpr std::array<const char *, 2> kTensorFiles = {kParametersFile, kStatesFile};
const char *fileOf(const Variable &variable) {
  return kTensorFiles[variable.role() == VariableRole::moment ||
                      variable.role() == VariableRole::average ||
                      variable.role() == VariableRole::update_count ||
                      variable.role() == VariableRole::loss_scaling ||
                      variable.role() == VariableRole::amax_history];
}

/// Of plans of other makers too, whose names may be no text.
std::string textOf(const json &value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

hydra::support::SafetensorsMetadata metadataOf(const PlanFile &file, const TrainingState *state) {
  const Header &header = *file.plan().header();
  json config = json::object();
  for (const KeyValue *symbol : *header.symbols())
    config[symbol->key()->str()] = symbol->value()->str();
  hydra::support::SafetensorsMetadata metadata{
      {"family", textOf(json(header.model()->str()))},
      {"preset", textOf(json(header.preset() ? header.preset()->str() : ""))},
      {"config", textOf(config)}};
  if (const auto scale = adapterScaleOf(file.plan()))
    metadata[kLoraKey] = textOf(*scale);
  if (state) {
    metadata["step"] = json(state->step).dump();
    metadata["data_position"] = json(state->step * sequencesOfStep(file.plan())).dump();
    metadata["rng"] = json({{"algorithm", "philox4x32-10"}, {"seed", state->seed}}).dump();
  }
  return metadata;
}

void syncDirectory(int descriptor, const fs::path &path) {
  if (::fsync(descriptor) != 0 && errno != EINVAL) // EINVAL: no sync of directories there
    fail("cannot sync {}: {}", shownPath(path), hydra::support::errnoText(errno));
}

/// A new folder, in the place of one that has been left behind.
void makeFolder(const OutputPath &path) {
  std::error_code code;
  fs::remove_all(path.place, code);
  if (!fs::create_directory(path.place, code))
    fail("cannot create {}: {}", shownPath(path.shown), code.message());
}

} // namespace

CheckpointFolder::CheckpointFolder(const fs::path &path, int64_t step, Ranks *ranks)
    : folder(path), ranks(ranks) {
  try {
    together(ranks, [&] {
      if (leads())
        open(step);
    });
    if (ranks)
      checkThatAllSeeIt();
  } catch (...) {
    unlock();
    throw;
  }
}

CheckpointFolder::~CheckpointFolder() { unlock(); }

void CheckpointFolder::unlock() const {
  if (descriptor >= 0)
    ::close(descriptor);
}

void CheckpointFolder::checkThatAllSeeIt() {
  std::optional<TemporaryFolder> probe;
  std::string name;
  together(ranks, [&] {
    if (!leads())
      return;
    probe.emplace(folder / fmt::format("{}nothing-{}", kTemporary, ::getpid()));
    makeFolder(probe->path());
    name = fs::absolute(probe->path().place).string();
  });
  const std::vector<std::byte> seen = ranks->broadcast(std::as_bytes(std::span(name)));
  together(ranks, [&] {
    const std::string_view path(reinterpret_cast<const char *>(seen.data()), seen.size());
    if (!fs::exists(path))
      fail("cannot save into {}: {}, which rank 0 has created, is not there; ranks that hold parts "
           "of variables need a folder that all of them see",
           shownPath(folder), shownPath(path));
  });
}

void CheckpointFolder::open(int64_t step) {
  std::error_code code;
  fs::create_directories(folder, code);
  if (code)
    fail("cannot create the folder {}: {}", shownPath(folder), code.message());
  descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0)
    fail("cannot open the folder {}: {}", shownPath(folder), support::errnoText(errno));
  try {
    if (::flock(descriptor, LOCK_EX | LOCK_NB) != 0) {
      if (errno == EWOULDBLOCK)
        fail("another run saves into {}; choose another folder for --save", shownPath(folder));
      fail("cannot lock the folder {}: {}; choose one on a file system with locks for --save",
           shownPath(folder), support::errnoText(errno));
    }
    if (::access(folder.c_str(), W_OK) != 0)
      fail("cannot write into the folder {}: {}", shownPath(folder), support::errnoText(errno));
    checkNoLaterCheckpoint(folder, step);
    const std::map<int64_t, fs::path> present = checkpointsIn(folder);
    // Those behind which this run goes on are its own; any others are another run's.
    if (present.contains(step))
      for (const auto &[number, path] : present)
        own.insert(number);
    for (const fs::directory_entry &entry : fs::directory_iterator(folder))
      if (entry.path().filename().string().starts_with(kTemporary))
        fs::remove_all(entry.path(), code);
  } catch (const fs::filesystem_error &error) {
    fail("cannot read the folder {}: {}", shownPath(folder), error.code().message());
  }
}

fs::path CheckpointFolder::save(const PlanFile &file, Executor &executor,
                                const TrainingState &state) {
  const fs::path target = folder / checkpointName(state.step);
  const OutputPath directory = {folder / (kTemporary + checkpointName(state.step)), target};
  std::optional<TemporaryFolder> temporary;
  together(ranks, [&] {
    if (!leads())
      return;
    temporary.emplace(directory);
    makeFolder(directory);
  });
  std::vector<TensorFile> files;
  for (const char *name : kTensorFiles) {
    const auto isIn = [&](const Variable &variable) {
      return isInCheckpoint(variable) && fileOf(variable) == name;
    };
    files.push_back(
        {directory / name, variablesByName(file.plan(), isIn), metadataOf(file, &state)});
  }
  const std::map<std::string, std::string> hashes =
      writeTensorFiles(target, files, file, executor, ranks);
  together(ranks, [&] {
    if (leads())
      finish(*temporary, file, state, hashes);
  });
  return target;
}

void CheckpointFolder::finish(TemporaryFolder &temporary, const PlanFile &file,
                              const TrainingState &state,
                              const std::map<std::string, std::string> &hashes) {
  const std::string manifest = manifestText(file, state, hashes);
  {
    support::AtomicFile out(temporary.path() / kManifest);
    out.write(std::as_bytes(std::span(manifest)));
    out.commit();
  }
  place(temporary.path().place, temporary.path().shown);
  own.insert(state.step);
  syncDirectory(descriptor, folder);
}

void CheckpointFolder::place(const fs::path &temporary, const fs::path &target) const {
  // A directory cannot be renamed over one that is not empty, but the two can change places; not on
  // every file system (NFS), and then the old one goes first.
  int problem = 0;
  if (fs::exists(target)) {
    if (::renameat2(AT_FDCWD, temporary.c_str(), AT_FDCWD, target.c_str(), RENAME_EXCHANGE) == 0)
      return;
    problem = errno;
    if (problem != EINVAL && problem != ENOSYS && problem != EOPNOTSUPP)
      fail("cannot rename the finished checkpoint to {}: {}", shownPath(target),
           support::errnoText(problem));
    const fs::path old = temporary.string() + ".old"; // swept with what else is half-written
    std::error_code code;
    fs::rename(target, old, code);
    problem = code.value();
    if (!code) {
      const bool renamed = ::rename(temporary.c_str(), target.c_str()) == 0;
      problem = renamed ? 0 : errno;
      if (renamed)
        fs::remove_all(old, code);
      else
        fs::rename(old, target, code);
    }
  } else if (::rename(temporary.c_str(), target.c_str()) != 0) {
    problem = errno;
  }
  if (problem != 0)
    fail("cannot rename the finished checkpoint to {}: {}", shownPath(target),
         support::errnoText(problem));
}

void CheckpointFolder::prune(int keep) {
  if (!leads())
    return;
  std::map<int64_t, fs::path> present = checkpointsIn(folder);
  std::erase_if(present, [&](const auto &checkpoint) { return !own.contains(checkpoint.first); });
  while (present.size() > static_cast<size_t>(keep)) {
    std::error_code code;
    // Renamed first, so that a half-removed one is no checkpoint.
    const fs::path doomed = folder / (kTemporary + present.begin()->second.filename().string());
    const TemporaryFolder removal(doomed);
    fs::rename(present.begin()->second, doomed, code);
    if (!code)
      fs::remove_all(doomed, code);
    if (code)
      fail("cannot remove the old checkpoint {}: {}", shownPath(present.begin()->second),
           code.message());
    present.erase(present.begin());
  }
}

bool Checkpoint::exists(const fs::path &path) {
  std::error_code code;
  return fs::exists(path / kManifest, code) || !checkpointsIn(path).empty();
}

Checkpoint::Checkpoint(const fs::path &path, const PlanFile &file) : file(file), directory(path) {
  std::error_code code;
  if (!fs::exists(path / kManifest, code)) {
    const std::map<int64_t, fs::path> present = checkpointsIn(path);
    if (present.empty())
      fail("there is no checkpoint in {}", shownPath(path));
    directory = present.rbegin()->second;
  }
  manifest = readManifest(directory, file);
}

/// One reading of a checkpoint, by one of the ranks.
class Checkpoint::Restoring {
public:
  Restoring(const Checkpoint &checkpoint, Executor &executor, Ranks *ranks)
      : checkpoint(checkpoint), plan(checkpoint.file.plan()), executor(executor), ranks(ranks),
        rank(ranks ? ranks->rank() : 0) {
    for (const char *name : kTensorFiles)
      files.emplace(name, checkpoint.directory / name);
  }

  void run() {
    clearGaps(plan, executor, rank);
    uint64_t bytes = 0;
    for (const Variable *variable : *plan.variables())
      if (isInCheckpoint(*variable))
        bytes += heldBytes(plan, *variable, rank);
    work.emplace("reading " + shownPath(checkpoint.directory), bytes, rank == 0);
    for (const Variable *variable : *plan.variables())
      if (!followsOthers(*variable))
        restore(*variable);
    if (ranks && !cut.empty())
      compareSums();
    work->finish();
  }

private:
  void restore(const Variable &variable) {
    if (!isInCheckpoint(variable))
      return writeInitialValues(plan, executor, variable, rank, checkpoint.manifest.state.seed);
    const bool isSaved = checkpoint.manifest.hashes.byTensor.contains(variable.name()->str());
    if (variable.role() == VariableRole::update_count &&
        !(checkpoint.manifest.countsUpdates && isSaved))
      return writeVariable(plan, executor, variable, rank, countOf(variable));
    if (variable.role() == VariableRole::average && !isSaved)
      return beginAverage(variable);
    checkFormat(variable);
    const ElementSource values = givenValues(plan, variable, fileWith(variable));
    if (checkpoint.manifest.hashes.ofWhole) {
      compare(variable, wholeHash(variable, values));
      return writeVariable(plan, executor, variable, rank, values);
    }
    const uint64_t sum = restoreAndHash(variable, values);
    if (VariablePart(plan, variable, rank).isCut()) {
      cut.push_back(&variable);
      sums.push_back(sum);
    } else {
      compare(variable, hashText(sum));
    }
  }

  /// Where the run kept no average of a parameter, one begins with its present value.
  void beginAverage(const Variable &variable) {
    const Variable &owner = *plan.variables()->Get(static_cast<uint32_t>(variable.owner()));
    writeVariable(plan, executor, variable, rank,
                  givenValues(plan, variable, fileWith(owner), owner.name()->str()));
  }

  /// What one plan keeps rounded, because it is frozen, another may keep in f32; the hash is of the
  /// bytes that were saved.
  void checkFormat(const Variable &variable) const {
    const std::string_view name = variable.name()->string_view();
    const GivenTensors &given = fileWith(variable);
    const std::optional<hydra::support::DType> saved = given.formatOf(name);
    if (saved && *saved != dtypeOf(plan, variable))
      fail("{}: tensor {} is {}, in the plan {}; expected a plan that keeps it in the same format "
           "(or --weights, which takes the parameters alone)",
           given.path(), shown(name), hydra::support::safetensorsName(*saved),
           hydra::support::safetensorsName(dtypeOf(plan, variable)));
  }

  const GivenTensors &fileWith(const Variable &variable) const {
    return files.at(fileOf(variable));
  }

  /// The update that follows the steps made, each of which was one but for those that were skipped;
  /// of older checkpoints each was.
  std::vector<std::byte> countOf(const Variable &variable) const {
    const TrainingState &state = checkpoint.manifest.state;
    const int64_t skipped = checkpoint.manifest.countsUpdates ? state.counts.skipped : 0;
    const auto next = static_cast<double>(std::max<int64_t>(0, state.step - skipped) + 1);
    const hydra::support::DType dtype = dtypeOf(plan, variable);
    std::vector<std::byte> count(hydra::support::byteSize(dtype));
    hydra::support::fromDoubles(dtype, std::span(&next, 1), count);
    return count;
  }

  std::string wholeHash(const Variable &variable, const ElementSource &values) const {
    const int64_t elements = elementsOf(plan, variable);
    const size_t size = hydra::support::byteSize(dtypeOf(plan, variable));
    hydra::support::StreamHash hash;
    std::vector<std::byte> bytes;
    for (int64_t at = 0; at < elements; at += kPiece) {
      bytes.resize(static_cast<size_t>(std::min(kPiece, elements - at)) * size);
      values(at, bytes);
      hash.add(bytes);
    }
    return hashText(hash.value());
  }

  /// What this rank holds of the variable, and adds to its hash.
  uint64_t restoreAndHash(const Variable &variable, const ElementSource &values) {
    const VariablePart part(plan, variable, rank);
    const size_t size = hydra::support::byteSize(dtypeOf(plan, variable));
    const auto byteOf = [&](int64_t element) { return static_cast<uint64_t>(element) * size; };
    hydra::support::BlockHash hash(byteOf(elementsOf(plan, variable)), byteOf(part.first));
    writeVariable(plan, executor, variable, rank, [&](int64_t first, std::span<std::byte> out) {
      values(first, out);
      const int64_t begin = std::max(first, part.first),
                    end = std::min(first + static_cast<int64_t>(out.size() / size), part.end());
      if (begin < end) { // a copy may have more of it than the variable
        hash.add(out.subspan(byteOf(begin - first), byteOf(end - begin)));
        work->add(byteOf(end - begin));
      }
    });
    if (hash.missing() > 0) {
      std::vector<std::byte> rest(hash.missing());
      values(static_cast<int64_t>(hash.position() / size), rest);
      hash.add(rest);
    }
    return hash.sum();
  }

  void compare(const Variable &variable, const std::string &hash) const {
    checkpoint.manifest.hashes.compare(fileWith(variable).path(), variable.name()->string_view(),
                                       hash);
  }

  /// Every set of ranks that together hold a variable must have read what was saved.
  void compareSums() {
    const auto bytes = std::as_bytes(std::span(sums));
    const std::vector<std::vector<std::byte>> all = ranks->gather(bytes);
    std::string problem;
    try {
      for (uint64_t first = 0; first < all.size(); ++first)
        for (size_t i = 0; i < cut.size(); ++i)
          compareSum(*cut[i], first, [&](uint64_t from) {
            uint64_t sum = 0;
            std::memcpy(&sum, all[from].data() + i * sizeof sum, sizeof sum);
            return sum;
          });
    } catch (const hydra::support::Error &error) {
      problem = error.what();
    }
    ranks->decide(problem);
  }

  void compareSum(const Variable &variable, uint64_t first,
                  const std::function<uint64_t(uint64_t rank)> &sumOf) const {
    const std::vector<uint32_t> axes = VariablePart(plan, variable, first).axes;
    if (coordinateOf(plan, first, axes) != 0)
      return;
    uint64_t sum = 0;
    for (uint64_t i = 0; i < sizeOf(plan, axes); ++i)
      sum += sumOf(first + distanceOf(plan, axes, i));
    compare(variable, hashText(sum));
  }

  const Checkpoint &checkpoint;
  const Plan &plan;
  Executor &executor;
  Ranks *ranks;
  const uint64_t rank;
  std::map<std::string_view, GivenTensors> files;
  std::vector<const Variable *> cut; // of which this rank has hashed a part
  std::vector<uint64_t> sums;        // and what came out
  std::optional<LongWork> work;
};

void Checkpoint::checkOptimizer() const {
  const Plan &plan = file.plan();
  std::set<std::string> known, parameters;
  for (const Variable *variable : *plan.variables()) {
    known.insert(variable->name()->str());
    if (variable->role() == VariableRole::parameter) {
      parameters.insert(variable->name()->str());
      known.insert(variable->name()->str() + ".average"); // which a plan may leave
    }
  }
  constexpr const char *expected = "expected the optimizers, and the parameters that are trained, "
                                   "of the plan that saved it, or --weights, which takes the "
                                   "parameters alone";
  // What a parameter's name begins, and the plan does not have, an optimizer kept for it.
  for (const auto &[name, hash] : manifest.hashes.byTensor)
    for (size_t dot = name.find('.'); dot != std::string::npos && !known.contains(name);
         dot = name.find('.', dot + 1))
      if (parameters.contains(name.substr(0, dot)))
        throw CommonError(fmt::format("{}: holds {}, which {} does not keep; {}",
                                      shownPath(directory), shown(name), file.origin(), expected));
  for (const Variable *variable : *plan.variables()) {
    const bool kept = variable->role() == VariableRole::moment ||
                      variable->role() == VariableRole::amax_history ||
                      variable->role() == VariableRole::parameter;
    if (kept && !followsOthers(*variable) && isInCheckpoint(*variable) &&
        !manifest.hashes.byTensor.contains(variable->name()->str()))
      throw CommonError(fmt::format("{}: holds no {}, which {} has; {}", shownPath(directory),
                                    shown(variable->name()->string_view()), file.origin(),
                                    expected));
  }
}

void Checkpoint::restore(Executor &executor, Ranks *ranks) const {
  checkOptimizer();
  try {
    Restoring(*this, executor, ranks).run();
  } catch (const RunEnded &) {
    throw;
  } catch (const CommunicationError &) {
    throw;
  } catch (const CommonError &error) {
    throw CommonError(error.what() + olderCheckpointText(directory));
  } catch (const hydra::support::Error &error) {
    throw hydra::support::Error(error.what() + olderCheckpointText(directory));
  }
}

void hydra::runtime::exportWeights(const fs::path &path, const PlanFile &file, Executor &executor,
                                   Ranks *ranks) {
  const auto isParameter = [](const Variable &variable) {
    return variable.role() == VariableRole::parameter;
  };
  for (const Variable *variable : *file.plan().variables())
    if (isInt8(file.plan(), *variable))
      fail("{}: holds {} as integers (--weight-format={}), of which its numbers cannot be made "
           "again; expected a plan that holds parameters as they are, to export them",
           file.origin(), shown(variable->name()->string_view()),
           variable->packed() ? "int4" : "int8");
  const TensorFile weights{path, variablesByName(file.plan(), isParameter),
                           metadataOf(file, nullptr)};
  writeTensorFiles(path, {weights}, file, executor, ranks);
}
