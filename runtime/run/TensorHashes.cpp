// Files are read once more, piece by piece: their values may go elsewhere in other formats.
#include "runtime/run/TensorHashes.h"

#include "runtime/run/CheckpointNames.h"
#include "runtime/run/LongWork.h"
#include "runtime/run/Manifest.h"
#include "runtime/run/TensorFiles.h"
#include "runtime/support/BlockHash.h"
#include "runtime/support/Error.h"
#include "runtime/support/Safetensors.h"
#include "runtime/support/Shown.h"
#include "runtime/support/StreamHash.h"

#include <algorithm>
#include <optional>
#include <vector>

namespace hydra::runtime {

using support::fail;
using support::shown;
using support::TensorPlace;

namespace {

constexpr uint64_t kBytes = uint64_t{4} << 20; // at a time

std::string hashOf(const support::SafetensorsFile &file, const TensorPlace &tensor, bool whole,
                   LongWork &work) {
  const uint64_t size = tensor.end - tensor.begin;
  support::BlockHash blocks(size, 0);
  support::StreamHash all;
  std::vector<std::byte> bytes;
  for (uint64_t at = 0; at < size; at += bytes.size()) {
    bytes.resize(std::min(kBytes, size - at));
    file.read(tensor, at, bytes);
    if (whole)
      all.add(bytes);
    else
      blocks.add(bytes);
    work.add(bytes.size());
  }
  return hashText(whole ? all.value() : blocks.sum());
}

void compareShare(const support::SafetensorsFile &file,
                  const std::vector<const TensorPlace *> &tensors, const TensorHashes &hashes,
                  Ranks *ranks, bool speaks) {
  const uint64_t rank = ranks ? ranks->rank() : 0, size = ranks ? ranks->size() : 1;
  uint64_t bytes = 0;
  for (uint64_t i = rank; i < tensors.size(); i += size)
    bytes += tensors[i]->end - tensors[i]->begin;
  LongWork work("checking " + file.name(), bytes, speaks);
  for (uint64_t i = rank; i < tensors.size(); i += size)
    hashes.compare(file.name(), tensors[i]->name, hashOf(file, *tensors[i], hashes.ofWhole, work));
  work.finish();
}

} // namespace

std::string hashText(uint64_t hash) { return fmt::format("{:016x}", hash); }

void TensorHashes::compare(std::string_view path, std::string_view tensor,
                           const std::string &hash) const {
  const auto said = byTensor.find(std::string(tensor));
  if (said == byTensor.end())
    fail("{}: tensor {} has no hash in {}", path, shown(tensor), kManifest);
  if (said->second != hash)
    fail("{}: tensor {} is damaged: its hash is {}; {} says {}", path, shown(tensor), hash,
         kManifest, shown(said->second));
}

void checkHashes(const std::filesystem::path &file, std::string_view ending, Ranks *ranks,
                 bool speaks) {
  const std::filesystem::path directory = file.parent_path();
  if (file.filename() != kParametersFile && file.filename() != kStatesFile)
    return;
  together(ranks, [&] {
    const std::optional<TensorHashes> hashes = readHashes(directory);
    if (!hashes)
      return;
    const support::SafetensorsFile opened(file);
    std::vector<const TensorPlace *> tensors;
    for (const TensorPlace &tensor : opened.tensors())
      if (tensor.name.ends_with(ending))
        tensors.push_back(&tensor);
    try {
      compareShare(opened, tensors, *hashes, ranks, speaks);
    } catch (const support::Error &error) {
      throw support::Error(error.what() + olderCheckpointText(directory));
    }
  });
}

} // namespace hydra::runtime
