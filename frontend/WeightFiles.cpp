// Which shards there are, and that the index and they say the same.
#include "frontend/WeightFiles.h"

#include "frontend/Config.h"
#include "runtime/support/Error.h"
#include "runtime/support/InputFile.h"
#include "runtime/support/Shown.h"

#include <nlohmann/json.hpp>

#include <set>

namespace fs = std::filesystem;

namespace hydra::frontend {

using support::fail;
using support::isThere;
using support::shown;

std::string StoredTensor::where() const {
  return fmt::format("{}: tensor '{}'", file->name(), shown(place->name));
}

namespace {

/// Throws Error for a file of another kind than safetensors, by its name.
void checkKind(const fs::path &path) {
  for (const char *kind : {".pt", ".pth", ".bin", ".ckpt", ".pkl", ".npz", ".msgpack"})
    if (path.extension() == kind)
      fail("{}: {} files are not read; save the tensors by safetensors.torch.save_file, or of JAX "
           "by "
           "safetensors.flax.save_file",
           support::shownPath(path), kind);
}

/// A file of such a kind in a directory, as messages name it behind what is missing.
std::string otherKinds(const fs::path &directory) {
  for (const char *name : {"pytorch_model.bin", "pytorch_model.bin.index.json", "model.pt"})
    if (isThere(directory / name))
      return fmt::format("; {} is not read",
                         std::string_view(name).starts_with("py") ? "pytorch_model.bin" : name);
  return "";
}

} // namespace

WeightFiles::WeightFiles(const fs::path &directory)
    : shownDirectory(support::shownPath(directory)) {
  std::error_code unknown;
  if (isThere(directory) && !fs::is_directory(directory, unknown)) {
    checkKind(directory);
    addAll(directory);
    return;
  }
  const fs::path one = directory / "model.safetensors",
                 index = directory / "model.safetensors.index.json";
  const bool hasOne = isThere(one), hasIndex = isThere(index);
  if (hasOne && hasIndex && fs::exists(one, unknown) && fs::exists(index, unknown))
    fail("{}: has model.safetensors and model.safetensors.index.json; expected one of them",
         shownDirectory);
  if (!hasOne && !hasIndex)
    fail("{}: has neither model.safetensors nor model.safetensors.index.json{}", shownDirectory,
         otherKinds(directory));
  if (hasOne)
    addAll(one);
  else
    readIndex(directory, index);
}

void WeightFiles::addAll(const fs::path &path) {
  read.push_back(path);
  const support::SafetensorsFile &file = files.emplace_back(path);
  for (const support::TensorPlace &place : file.tensors())
    if (const auto [other, isNew] = byName.try_emplace(place.name, StoredTensor{&file, &place});
        !isNew)
      fail("{}: tensor '{}' is in {} too; expected it once", file.name(), shown(place.name),
           other->second.file->name());
}

void WeightFiles::readIndex(const fs::path &directory, const fs::path &index) {
  read.push_back(index);
  Config content = Config::open(index);
  const auto map = content.findObject("weight_map");
  if (!map)
    fail("{}: has no weight_map; expected the file of each tensor", content.where());
  std::map<std::string, std::string> fileOf; // by tensor
  std::set<std::string> names;
  for (const auto &[tensor, file] : map->json().items()) {
    const std::string name = file.is_string() ? file.get<std::string>() : "";
    if (name.empty() || name == "." || name == ".." || name.find('/') != name.npos ||
        name.find('\0') != name.npos)
      fail("{}: tensor '{}' is in {}; expected the name of a file beside the index",
           content.where(), shown(tensor),
           shown(file.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace)));
    fileOf[tensor] = name;
    names.insert(name);
  }
  for (const std::string &name : names)
    addAll(directory / name);
  for (const auto &[tensor, file] : fileOf) {
    const StoredTensor *found = find(tensor);
    if (!found || found->file->name() != support::shownPath(directory / file))
      fail("{}: tensor '{}' is not in {}", content.where(), shown(tensor), shown(file));
  }
  for (const auto &[name, tensor] : byName)
    if (!fileOf.contains(name))
      fail("{} is not in the index", tensor.where());
}

const StoredTensor *WeightFiles::find(std::string_view name) const {
  const auto found = byName.find(name);
  return found == byName.end() ? nullptr : &found->second;
}

std::vector<fs::path> weightPaths(const fs::path &directory) {
  const fs::path index = directory / "model.safetensors.index.json";
  std::vector<fs::path> paths = {directory / "model.safetensors", index};
  try {
    if (const auto map = Config::open(index).findObject("weight_map"))
      for (const auto &file : map->json())
        if (file.is_string())
          paths.push_back(directory / file.get<std::string>());
  } catch (const support::Error &) {
    // Whoever reads weights says what is wrong with it.
  }
  std::erase_if(paths, [](const fs::path &path) {
    std::error_code ignored;
    return !fs::exists(path, ignored);
  });
  return paths;
}

} // namespace hydra::frontend
