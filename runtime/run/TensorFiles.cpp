// Headers by rank 0, elements by all, hashes of what each wrote.
#include "runtime/run/TensorFiles.h"

#include "runtime/run/LongWork.h"
#include "runtime/run/Variables.h"
#include "runtime/support/AtomicFile.h"
#include "runtime/support/BlockHash.h"
#include "runtime/support/InputFile.h"
#include "runtime/support/OutputFile.h"
#include "runtime/support/PlaceText.h"
#include "runtime/support/Shown.h"

#include <cstring>
#include <deque>
#include <optional>

using namespace hydra::runtime;
using namespace hydra::planfile;
using hydra::support::BlockHash;
using hydra::support::fail;
using hydra::support::shown;
using hydra::support::shownPath;
namespace fs = std::filesystem;

namespace {

/// Throws NotFinite, in which `what` was to be saved. `values` are those from element `first` on.
void checkFinite(const fs::path &what, const Plan &plan, const Variable &variable, int64_t first,
                 std::span<const std::byte> values) {
  const hydra::support::DType dtype = dtypeOf(plan, variable);
  const std::optional<size_t> bad = hydra::support::firstNotFinite(dtype, values);
  if (!bad)
    return;
  const size_t size = hydra::support::byteSize(dtype);
  double value = 0;
  hydra::support::toDoubles(dtype, values.subspan(*bad * size, size), std::span(&value, 1));
  throw NotFinite(fmt::format(
      "cannot save {}: {}{} is {}; expected finite parameters and states "
      "(what was saved before stays)",
      shownPath(what), shown(variable.name()->string_view()),
      hydra::support::placeText(shapeOf(plan, variable), first + static_cast<int64_t>(*bad)),
      value));
}

/// Of one file, what this rank does to it.
class Part {
public:
  Part(const TensorFile &file, const Plan &plan, uint64_t rank)
      : file(file), plan(plan), rank(rank), layout(layoutOf(file, plan)) {}

  /// Rank 0: the file with its header and its size, under a name for the time being.
  fs::path create() {
    whole.emplace(file.path);
    whole->write(std::as_bytes(std::span(layout.header)));
    whole->resize(layout.fileSize);
    return fs::absolute(whole->temporaryPath().place);
  }

  /// The elements that are for this rank to write.
  void write(const fs::path &at, const fs::path &what, Executor &executor, LongWork &work) {
    place = at;
    std::optional<hydra::support::OutputFile> out = open();
    for (size_t i = 0; i < file.variables.size(); ++i) {
      const Variable &variable = *file.variables[i];
      const hydra::support::TensorPlace &tensor = layout.tensors[i];
      const VariablePart part(plan, variable, rank);
      const uint64_t size = hydra::support::byteSize(tensor.dtype);
      hashes.emplace_back(tensor.end - tensor.begin, static_cast<uint64_t>(part.first) * size);
      if (part.isFirst)
        readVariable(plan, executor, variable, rank,
                     [&](int64_t first, std::span<const std::byte> values) {
                       checkFinite(what, plan, variable, first, values);
                       hashes.back().add(values);
                       out->write(tensor.begin + static_cast<uint64_t>(first) * size, values);
                       work.add(values.size());
                     });
    }
    out->close();
  }

  /// Hashes the blocks that begin in what this rank wrote; the rest of one is there by now.
  void finishHashes(std::vector<uint64_t> &sums) {
    std::optional<hydra::support::InputFile> in;
    for (size_t i = 0; i < hashes.size(); ++i) {
      if (hashes[i].missing() > 0) {
        if (!in)
          in.emplace(place);
        std::vector<std::byte> rest(hashes[i].missing());
        in->read(layout.tensors[i].begin + hashes[i].position(), rest);
        hashes[i].add(rest);
      }
      sums.push_back(hashes[i].sum());
    }
  }

  void commit() { whole->commit(); }

private:
  static hydra::support::SafetensorsLayout layoutOf(const TensorFile &file, const Plan &plan) {
    std::vector<hydra::support::TensorInfo> infos;
    for (const Variable *variable : file.variables)
      infos.push_back(
          {variable->name()->str(), dtypeOf(plan, *variable), shapeOf(plan, *variable)});
    return hydra::support::SafetensorsLayout(infos, file.metadata, shownPath(file.path.shown));
  }

  hydra::support::OutputFile open() const {
    if (rank > 0 && !fs::exists(place))
      fail("cannot write {}: {}, which rank 0 has created, is not there; ranks that save parts of "
           "variables need a folder that all of them see",
           shownPath(file.path.shown), shownPath(place));
    return {{place, file.path.shown}, layout.fileSize};
  }

  const TensorFile &file;
  const Plan &plan;
  const uint64_t rank;
  const hydra::support::SafetensorsLayout layout;
  std::optional<hydra::support::AtomicFile> whole; // of rank 0
  fs::path place;
  std::vector<BlockHash> hashes; // of variables
};

std::vector<std::byte> bytesOf(const std::vector<uint64_t> &numbers) {
  const auto bytes = std::as_bytes(std::span(numbers));
  return {bytes.begin(), bytes.end()};
}

/// Paths behind each other.
std::vector<std::byte> bytesOf(const std::vector<fs::path> &paths) {
  std::string text;
  for (const fs::path &path : paths)
    text += path.string() + '\0';
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

std::vector<fs::path> pathsOf(const std::vector<std::byte> &bytes) {
  std::vector<fs::path> paths;
  for (size_t at = 0; at < bytes.size();) {
    paths.emplace_back(reinterpret_cast<const char *>(bytes.data() + at)); // ends at its zero
    at += paths.back().string().size() + 1;
  }
  return paths;
}

} // namespace

Ranks *hydra::runtime::writersOf(const Plan &plan, Ranks *ranks) {
  return cutsVariables(plan) ? ranks : nullptr;
}

void hydra::runtime::together(Ranks *ranks, const std::function<void()> &work) {
  if (!ranks)
    return work();
  std::string notFinite, other;
  try {
    work();
  } catch (const NotFinite &error) {
    notFinite = error.what();
  } catch (const std::exception &error) {
    other = error.what();
  }
  try {
    ranks->meet(notFinite);
  } catch (const CommonError &error) {
    throw NotFinite(error.what());
  }
  ranks->meet(other);
}

std::map<std::string, std::string>
hydra::runtime::writeTensorFiles(const fs::path &what, const std::vector<TensorFile> &files,
                                 const PlanFile &file, Executor &executor, Ranks *ranks) {
  const uint32_t rank = ranks ? ranks->rank() : 0;
  std::deque<Part> parts;
  std::vector<fs::path> places;
  together(ranks, [&] {
    for (const TensorFile &one : files)
      parts.emplace_back(one, file.plan(), rank);
    if (rank == 0)
      for (Part &part : parts)
        places.push_back(part.create());
  });
  if (ranks)
    places = pathsOf(ranks->broadcast(bytesOf(places)));
  uint64_t bytes = 0;
  for (const TensorFile &one : files)
    for (const Variable *variable : one.variables)
      bytes += heldBytes(file.plan(), *variable, rank);
  LongWork work("saving " + shownPath(what), bytes, rank == 0);
  together(ranks, [&] {
    for (size_t i = 0; i < parts.size(); ++i)
      parts[i].write(places[i], what, executor, work);
  });
  std::vector<uint64_t> sums; // of all variables, what this rank has of their hashes
  together(ranks, [&] {
    for (Part &part : parts)
      part.finishHashes(sums);
  });
  if (ranks) {
    const std::vector<std::vector<std::byte>> all = ranks->gather(bytesOf(sums));
    for (size_t from = 1; from < all.size(); ++from)
      for (size_t i = 0; i < sums.size(); ++i) {
        uint64_t theirs = 0;
        std::memcpy(&theirs, all[from].data() + i * sizeof theirs, sizeof theirs);
        sums[i] += theirs;
      }
  }
  together(ranks, [&] {
    if (rank == 0)
      for (Part &part : parts)
        part.commit();
  });
  work.finish();
  std::map<std::string, std::string> hashes;
  size_t next = 0;
  for (const TensorFile &one : files)
    for (const Variable *variable : one.variables)
      hashes[variable->name()->str()] = fmt::format("{:016x}", sums[next++]);
  return hashes;
}
