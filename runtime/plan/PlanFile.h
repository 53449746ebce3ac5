// Plan files in memory and on disk: reading with every check, and writing.
#pragma once

#include "runtime/plan/plan_generated.h"
#include "runtime/support/DType.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hydra::runtime {

/// The format written, and the only one read.
inline constexpr uint32_t kPlanVersion = 26;

/// A plan that passed every check, and the bytes it lives in. What plan() gives stays valid for as
/// long as this object or one it was moved to.
class PlanFile {
public:
  /// Reads and checks a file, in this order: size, identifier, version, checksum, FlatBuffers
  /// structure, then the rules of PlanVerifier.h. Throws Error with one line that names the file
  /// and, for the rules, the field.
  static PlanFile read(const std::filesystem::path &path);

  /// The same checks on bytes in memory; `origin` stands for the file's name in errors.
  static PlanFile parse(std::vector<std::byte> bytes, std::string origin);

  const planfile::Plan &plan() const { return *planfile::GetPlan(contents.data()); }
  std::span<const std::byte> bytes() const { return contents; }
  const std::string &origin() const { return name; }
  /// Eight bytes that tell it from every other plan.
  std::span<const std::byte, 8> checksum() const;

private:
  PlanFile(std::vector<std::byte> bytes, std::string origin)
      : contents(std::move(bytes)), name(std::move(origin)) {}

  std::vector<std::byte> contents; // malloc aligns it to 16, the largest alignment in the schema
  std::string name;
};

/// The bytes of a plan file: equal plans give equal bytes. Required fields must be set.
std::vector<std::byte> encodePlan(const planfile::PlanT &plan);

/// Writes size and checksum into the prologue of a plan that was changed in place. There must be
/// at least a prologue.
void sealPlan(std::span<std::byte> file);

/// Encodes, checks like PlanFile::read, and writes the file so that it appears complete or not at
/// all. Throws Error, also for a plan that breaks a rule.
void writePlan(const std::filesystem::path &path, const planfile::PlanT &plan);
void writePlan(const std::filesystem::path &path, const PlanFile &plan);

/// The program that runs for each batch of a step, behind all phases; nothing where none trains.
std::optional<uint32_t> mainTrainingProgram(const planfile::Plan &plan);

/// What hydrac made a plan for: its `--mode`, which headers have in a word.
enum class PlanMode { generate, forward, grad, train };
/// Nothing for a word that is no mode: verified plans have none.
std::optional<PlanMode> planModeNamed(std::string_view word);

/// Whether a plan is for training, so that runs make steps of it instead of calls.
bool isTrainPlan(const planfile::Plan &plan);
/// Whether it is for the values of a model alone.
bool isForwardPlan(const planfile::Plan &plan);
/// Whether a program is the safe form of another.
bool isSafeForm(const planfile::Plan &plan, uint32_t program);

/// In what form the work of a program is done: as the program itself does it, as its safe form
/// does, or with all optimisations of the plan but one.
enum class ProgramForm : uint32_t { own, safe, firstWithout };
/// Without the optimisation of that index, alone.
ProgramForm formWithout(uint32_t optimization);
/// The same by its name; nothing where the plan has no such form.
std::optional<ProgramForm> formWithout(const planfile::Plan &plan, std::string_view optimization);
/// The index of the program that does the work of `program` in a form; nothing where there is none.
std::optional<uint32_t> programInForm(const planfile::Plan &plan, uint32_t program,
                                      ProgramForm form);
/// Whether a program runs for each batch of a training step.
bool trainsOnBatches(const planfile::Program &program);

/// The same type in the runtime's terms.
support::DType dtypeOf(const planfile::Tensor &tensor);

} // namespace hydra::runtime
