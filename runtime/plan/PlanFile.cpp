// The prologue of plan files, the checks on it, and file input and output.
#include "runtime/plan/PlanFile.h"

#include "runtime/plan/PlanVerifier.h"
#include "runtime/support/AtomicFile.h"
#include "runtime/support/Error.h"
#include "runtime/support/InputFile.h"
#include "runtime/support/Shown.h"

#include <xxhash.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <utility>

namespace hydra::runtime {

using support::fail;

namespace {

// The layout of the prologue; see plan.fbs.
constexpr size_t kRootOffset = 0;
constexpr size_t kVersionOffset = 8;
constexpr size_t kSizeOffset = 16;
constexpr size_t kChecksumOffset = 24;
constexpr size_t kFlatBuffersStart = 8; // behind root offset and identifier
constexpr size_t kInserted = 32;        // a multiple of every alignment inside
constexpr size_t kPrologueSize = kFlatBuffersStart + kInserted;

// FlatBuffers' offsets are signed 32-bit numbers.
constexpr size_t kMaxSize = FLATBUFFERS_MAX_BUFFER_SIZE - 1;

template <typename T> T load(std::span<const std::byte> file, size_t offset) {
  return flatbuffers::ReadScalar<T>(file.data() + offset);
}

template <typename T> void store(std::span<std::byte> file, size_t offset, T value) {
  flatbuffers::WriteScalar(file.data() + offset, value);
}

/// XXH3-64 with the checksum itself taken as zero.
uint64_t checksumOf(std::span<const std::byte> file) {
  constexpr uint64_t zero = 0;
  constexpr size_t behind = kChecksumOffset + sizeof(zero);
  std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> state(XXH3_createState(),
                                                                 XXH3_freeState);
  if (!state)
    throw std::bad_alloc();
  XXH3_64bits_reset(state.get());
  XXH3_64bits_update(state.get(), file.data(), kChecksumOffset);
  XXH3_64bits_update(state.get(), &zero, sizeof(zero));
  XXH3_64bits_update(state.get(), file.data() + behind, file.size() - behind);
  return XXH3_64bits_digest(state.get());
}

void checkPrologue(std::span<const std::byte> file, const std::string &origin) {
  if (file.size() < kPrologueSize)
    fail("{}: {} bytes are too few for a plan; it begins with {}", origin, file.size(),
         kPrologueSize);
  if (file.size() > kMaxSize)
    fail("{}: {} bytes are too many for a plan; the largest has {}", origin, file.size(), kMaxSize);
  if (!planfile::PlanBufferHasIdentifier(file.data()))
    fail("{}: no plan: expected the identifier {} at byte 4", origin, planfile::PlanIdentifier());
  const auto version = load<uint32_t>(file, kVersionOffset);
  if (version != kPlanVersion) {
    fail("{}: plan format version {}; this program reads version {} (compile the model again with "
         "the hydrac that belongs to it)",
         origin, version, kPlanVersion);
  }
  const auto size = load<uint64_t>(file, kSizeOffset);
  if (size != file.size())
    fail("{}: the file has {} bytes, but was written with {}: truncated or damaged", origin,
         file.size(), size);
  const auto expected = load<uint64_t>(file, kChecksumOffset);
  const uint64_t found = checksumOf(file);
  if (found != expected)
    fail("{}: checksum {:016x}; expected {:016x}: the file is damaged", origin, found, expected);
}

void checkStructure(std::span<const std::byte> file, const std::string &origin) {
  // A nested switch takes three tables.
  constexpr flatbuffers::uoffset_t maxDepth = 3 * kMaxBlockDepth + 16;
  // A table has at least an offset to its vtable and is referred to by one: so files whose tables
  // are shared, which could take exponential time, go over this number.
  const auto maxTables = static_cast<flatbuffers::uoffset_t>(file.size() / 8);
  flatbuffers::Verifier verifier(reinterpret_cast<const uint8_t *>(file.data()), file.size(),
                                 maxDepth, maxTables);
  if (!planfile::VerifyPlanBuffer(verifier))
    fail("{}: the tables of the plan are damaged (FlatBuffers verifier)", origin);
}

} // namespace

PlanFile PlanFile::read(const std::filesystem::path &path) {
  const support::InputFile file(path);
  if (file.size() > kMaxSize)
    fail("{}: {} bytes are too many for a plan; the largest has {}", file.name(), file.size(),
         kMaxSize);
  return parse(file.readAll(), file.name());
}

std::span<const std::byte, 8> PlanFile::checksum() const {
  return std::span<const std::byte>(contents).subspan<kChecksumOffset, 8>();
}

PlanFile PlanFile::parse(std::vector<std::byte> bytes, std::string origin) {
  PlanFile file(std::move(bytes), std::move(origin));
  checkPrologue(file.contents, file.name);
  checkStructure(file.contents, file.name);
  verifyPlan(file.plan(), file.name);
  return file;
}

std::vector<std::byte> encodePlan(const planfile::PlanT &plan) {
  flatbuffers::FlatBufferBuilder builder;
  planfile::FinishPlanBuffer(builder, planfile::Plan::Pack(builder, &plan));
  const auto built =
      std::as_bytes(std::span<const uint8_t>(builder.GetBufferPointer(), builder.GetSize()));

  // Offsets inside are relative to where they stand, so only the root's changes.
  std::vector<std::byte> file(built.size() + kInserted);
  std::memcpy(file.data(), built.data(), kFlatBuffersStart);
  std::memcpy(file.data() + kPrologueSize, built.data() + kFlatBuffersStart,
              built.size() - kFlatBuffersStart);
  store(file, kRootOffset, static_cast<uint32_t>(load<uint32_t>(built, kRootOffset) + kInserted));
  store(file, kVersionOffset, kPlanVersion);
  sealPlan(file);
  return file;
}

void sealPlan(std::span<std::byte> file) {
  store(file, kSizeOffset, static_cast<uint64_t>(file.size()));
  store(file, kChecksumOffset, checksumOf(file));
}

void writePlan(const std::filesystem::path &path, const planfile::PlanT &plan) {
  writePlan(path, PlanFile::parse(encodePlan(plan), support::shownPath(path)));
}

void writePlan(const std::filesystem::path &path, const PlanFile &plan) {
  support::AtomicFile output(path);
  output.write(plan.bytes());
  output.commit();
}

bool isSafeForm(const planfile::Plan &plan, uint32_t program) {
  return std::any_of(plan.programs()->begin(), plan.programs()->end(),
                     [&](const planfile::Program *other) {
                       return other->safe() == static_cast<int32_t>(program);
                     });
}

ProgramForm formWithout(uint32_t optimization) {
  return static_cast<ProgramForm>(static_cast<uint32_t>(ProgramForm::firstWithout) + optimization);
}

std::optional<ProgramForm> formWithout(const planfile::Plan &plan, std::string_view optimization) {
  if (plan.optimizations())
    for (flatbuffers::uoffset_t i = 0; i < plan.optimizations()->size(); ++i) {
      const planfile::Optimization &one = *plan.optimizations()->Get(i);
      if (one.name()->string_view() == optimization && one.programs() && one.programs()->size() > 0)
        return formWithout(i);
    }
  return std::nullopt;
}

std::optional<uint32_t> programInForm(const planfile::Plan &plan, uint32_t program,
                                      ProgramForm form) {
  if (form == ProgramForm::own)
    return program;
  const int32_t safe = plan.programs()->Get(program)->safe();
  if (safe < 0)
    return std::nullopt;
  if (form == ProgramForm::safe)
    return static_cast<uint32_t>(safe);
  const auto optimization =
      static_cast<uint32_t>(form) - static_cast<uint32_t>(ProgramForm::firstWithout);
  if (!plan.optimizations() || optimization >= plan.optimizations()->size())
    return std::nullopt;
  const auto *programs = plan.optimizations()->Get(optimization)->programs();
  if (!programs || programs->size() == 0)
    return std::nullopt;
  flatbuffers::uoffset_t place = 0; // among those that have a safe form
  for (uint32_t i = 0; i < program; ++i)
    place += plan.programs()->Get(i)->safe() >= 0 ? 1 : 0;
  return programs->Get(place); // as many as such programs: see PlanVerifier
}

bool trainsOnBatches(const planfile::Program &program) {
  return program.role() == planfile::ProgramRole::train ||
         program.role() == planfile::ProgramRole::accumulate;
}

std::optional<uint32_t> mainTrainingProgram(const planfile::Plan &plan) {
  const auto isPhase = [&](uint32_t program) {
    return plan.phases() && std::any_of(plan.phases()->begin(), plan.phases()->end(),
                                        [&](const planfile::TrainingPhase *phase) {
                                          return phase->program() == program;
                                        });
  };
  for (uint32_t i = 0; i < plan.programs()->size(); ++i)
    if (trainsOnBatches(*plan.programs()->Get(i)) && !isPhase(i))
      return i;
  return std::nullopt;
}

std::optional<PlanMode> planModeNamed(std::string_view word) {
  constexpr std::array<std::pair<std::string_view, PlanMode>, 4> modes{
      {{"generate", PlanMode::generate},
       {"forward", PlanMode::forward},
       {"grad", PlanMode::grad},
       {"train", PlanMode::train}}};
  for (const auto &[name, mode] : modes)
    if (name == word)
      return mode;
  return std::nullopt;
}

bool isTrainPlan(const planfile::Plan &plan) {
  return planModeNamed(plan.header()->mode()->string_view()) == PlanMode::train;
}

bool isForwardPlan(const planfile::Plan &plan) {
  return planModeNamed(plan.header()->mode()->string_view()) == PlanMode::forward;
}

support::DType dtypeOf(const planfile::Tensor &tensor) {
  using support::DType;
  // The two enums are one list; its ends and a middle would move with any difference.
  static_assert(static_cast<int>(planfile::DType::f64) == static_cast<int>(DType::F64));
  static_assert(static_cast<int>(planfile::DType::i32) == static_cast<int>(DType::I32));
  static_assert(static_cast<int>(planfile::DType::u8) == static_cast<int>(DType::U8));
  static_assert(static_cast<int>(planfile::DType::boolean) == static_cast<int>(DType::Bool));
  static_assert(static_cast<int>(planfile::DType::tf32) == static_cast<int>(DType::TF32));
  return static_cast<DType>(tensor.dtype());
}

} // namespace hydra::runtime
