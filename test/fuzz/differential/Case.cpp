// Programs by kind and seed, and from files.
#include "test/fuzz/differential/Case.h"

#include "runtime/support/Error.h"
#include "runtime/support/Int4Groups.h"
#include "test/support/HostileProgram.h"
#include "test/support/RandomProgram.h"
#include "test/support/RandomScan.h"
#include "test/support/RandomText.h"
#include "test/support/RandomTransformer.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/MemoryBuffer.h"

#include <fmt/ranges.h>

#include <map>
#include <set>

namespace hydra::test {

std::string Case::flags() const {
  std::string text = fmt::format("--seed={}", seed);
  if (source.binding.batch)
    text += fmt::format(" --batch={}", source.binding.batch);
  if (source.binding.seq)
    text += fmt::format(" --seq={}", source.binding.seq);
  if (!source.binding.preset.empty())
    text += " --preset=" + source.binding.preset;
  for (const std::string &setting : source.binding.settings)
    text += " --set=" + setting;
  return text;
}

/// Whether every parameter that is trained belongs to an optimizer group of the text; hydrac trains
/// no other model.
static bool hasOptimizers(llvm::StringRef text) {
  auto nameIn = [](llvm::StringRef text) {
    return text.take_while([](char c) { return llvm::isAlnum(c) || c == '_'; });
  };
  llvm::SmallVector<llvm::StringRef> declarations; // each up to the next one
  text.split(declarations, "hydra.");
  llvm::StringSet<> groups;
  for (llvm::StringRef one : declarations)
    if (one.consume_front("group @"))
      groups.insert(nameIn(one));
  const bool all = llvm::all_of(declarations, [&](llvm::StringRef one) {
    if (!one.starts_with("param @") || one.contains(" frozen"))
      return true;
    const llvm::StringRef group = nameIn(one.split(" group = @").second);
    return groups.contains(group.empty() ? "default" : group);
  });
  return all && !groups.empty();
}

std::vector<Mode> Case::modes() const {
  const llvm::StringRef text = source.text;
  if (!text.contains("hydra.entry @loss(") && text.contains("hydra.entry @logits("))
    return {Mode::Generate};
  std::vector<Mode> modes = {Mode::Grad, Mode::Forward};
  if (hasOptimizers(text) && (!text.contains(" updates(") || text.contains("hydra.entry @eval(")))
    modes.push_back(Mode::Train);
  return modes;
}

std::vector<std::string> Case::parameters() const {
  std::vector<std::string> names;
  llvm::SmallVector<llvm::StringRef> declarations;
  llvm::StringRef(source.text).split(declarations, "hydra.param @");
  for (llvm::StringRef one : llvm::drop_begin(declarations))
    names.push_back(one.take_while([](char c) { return llvm::isAlnum(c) || c == '_'; }).str());
  return names;
}

/// Whether what stands at a place of a line is the second operand of a linear layer, or of a
/// grouped one.
static bool isWeight(llvm::StringRef line, size_t at) {
  const llvm::StringRef word = "linear", before = line.take_front(at);
  const size_t call = before.rfind(word);
  if (call == llvm::StringRef::npos)
    return false;
  const llvm::StringRef operands = before.drop_front(call + word.size());
  return (operands.starts_with(" ") || operands.starts_with("(")) && operands.count(',') == 1;
}

std::vector<std::string> Case::linearWeights() const {
  std::map<llvm::StringRef, llvm::StringRef> parameterOf; // by what it is read as
  std::set<llvm::StringRef> weights, others;
  llvm::SmallVector<llvm::StringRef> lines;
  llvm::StringRef(source.text).split(lines, '\n');
  const auto isName = [](char c) { return llvm::isAlnum(c) || c == '_'; };
  for (const llvm::StringRef line : lines) {
    auto [result, used] = line.trim().split(" = hydra.use @");
    if (!used.empty()) {
      parameterOf[result] = used;
      continue;
    }
    for (size_t at = 0; (at = line.find_first_of("%@", at)) != llvm::StringRef::npos; ++at) {
      const llvm::StringRef name =
          line.substr(at, 1 + line.drop_front(at + 1).take_while(isName).size());
      if (line.take_front(at).ends_with("hydra.param "))
        parameterOf[name] = name.drop_front();
      else if (auto it = parameterOf.find(name); it != parameterOf.end())
        (isWeight(line, at) ? weights : others).insert(it->second);
    }
  }
  // A pattern of one name is one of all that end with it.
  std::vector<std::string> result;
  const std::vector<std::string> all = parameters();
  const auto isTaken = [&](llvm::StringRef name) {
    return weights.contains(name) && !others.contains(name);
  };
  for (const std::string &name : all)
    if (llvm::all_of(
            all, [&](llvm::StringRef other) { return isTaken(other) || !other.ends_with(name); }))
      result.push_back(name);
  return result;
}

SettingRange Case::range(const std::string &target) const {
  SettingRange range;
  range.target = target;
  range.modes = modes();
  range.batch = source.binding.batch;
  range.int8 = int8;
  range.int4 = int4;
  range.ranks = onRanks;
  range.parameters = parameters();
  range.linearWeights = linearWeights();
  return range;
}

const std::vector<std::string> &caseKinds() {
  static const std::vector<std::string> kinds = {"program", "scan",  "training", "random",
                                                 "batch",   "ranks", "text",     "wide"};
  return kinds;
}

/// The first of several that 2 and 4 ranks divide, or, of every third seed, 2, 3 and 6.
static BoundText trainingOnRanks(uint64_t seed) {
  constexpr uint64_t kTried = 16;
  const int64_t batch = seed % 3 == 0 ? 6 : 4;
  for (uint64_t number = seed * kTried;; ++number)
    if (BoundText program = hostileProgram(HostileKind::Training, number);
        program.binding.batch == batch)
      return program;
}

constexpr unsigned kPartitionedSize = 10; ///< operations
constexpr int64_t kPartitionedBatch = 12;

/// The programs that the interpreter's tests draw, and between them scans.
static BoundText randomCase(uint64_t seed) {
  if (seed % 2 == 0)
    return randomProgram(seed / 2).layered;
  Random random(seed / 2);
  const RandomScan scan(random);
  return {scan.model(scan.scan() + "    %y = hydra.mul %all, %end\n").text(), {}};
}

Case makeCase(const std::string &kind, uint64_t seed) {
  Case result;
  result.name = fmt::format("{} {}", kind, seed);
  result.seed = seed;
  if (kind == "program")
    result.source = hostileProgram(HostileKind::Program, seed);
  else if (kind == "scan")
    result.source = hostileProgram(HostileKind::Scan, seed);
  else if (kind == "training")
    result.source = hostileProgram(HostileKind::Training, seed);
  else if (kind == "random")
    result.source = randomCase(seed);
  else if (kind == "batch")
    result.source = randomProgram(seed, kPartitionedSize, kPartitionedBatch).layered;
  else if (kind == "ranks") {
    result.source = trainingOnRanks(seed);
    result.onRanks = true;
  } else if (kind == "text") {
    // Of which a weight in integers has a multiple.
    constexpr int64_t kInt8Columns = 16, kInt4Columns = support::kInt4Group;
    result.int8 = seed % 2 == 1;
    result.int4 = seed % 4 == 3;
    result.source.text = result.int4   ? randomCausalModel(seed, kInt4Columns)
                         : result.int8 ? randomCausalModel(seed, kInt8Columns)
                                       : randomCausalModel(seed);
    result.source.binding.batch = 1 + static_cast<int64_t>(seed % 3);
  } else if (kind == "wide") {
    result.source = randomTransformer(seed);
    result.int8 = result.int4 = readsOn(seed);
  } else
    support::fail("there are no programs of kind '{}'; expected {}", kind,
                  fmt::join(caseKinds(), ", "));
  return result;
}

Case readCase(const std::string &path, BindingOptions binding, uint64_t seed) {
  auto text = llvm::MemoryBuffer::getFile(path, /*IsText=*/true);
  if (!text)
    support::fail("cannot read {}: {}", path, text.getError().message());
  Case result;
  result.name = path;
  result.source = {(*text)->getBuffer().str(), std::move(binding)};
  result.seed = seed;
  return result;
}

} // namespace hydra::test
