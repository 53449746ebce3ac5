// A plan's parameters and states: what they are to files, and how a rank reads and writes its part
// of them, in pieces that fit into memory.
#pragma once

#include "runtime/plan/VariablePart.h"
#include "runtime/ranks/Ranks.h"
#include "runtime/run/Executor.h"
#include "runtime/run/TensorValues.h"

#include <cstdint>
#include <functional>
#include <vector>

namespace hydra::runtime {

/// Whether a state has the values of another variable, and is written with it.
bool isCopy(const planfile::Variable &variable);
/// Whether others say its values: it is a copy or a scale, or programs derive it.
bool followsOthers(const planfile::Variable &variable);
/// Whether files have it: not what follows another variable, or lives within a step.
bool isSaved(const planfile::Variable &variable);
/// Those of them that a checkpoint holds: gradients are zero between two steps.
bool isInCheckpoint(const planfile::Variable &variable);

/// Those that a file is to have, in the order of their names: that of the plan depends on which of
/// them lie in a unit.
std::vector<const planfile::Variable *>
variablesByName(const planfile::Plan &plan,
                const std::function<bool(const planfile::Variable &)> &isWanted);

/// Elements of a variable that are on the host at a time, at most.
inline constexpr int64_t kPiece = int64_t{1} << 23;

/// The type of its elements in files, and wherever else they are read and written: that of its
/// tensor, or f32 of a parameter in two halves.
support::DType dtypeOf(const planfile::Plan &plan, const planfile::Variable &variable);
/// Whether it is a parameter held as integers in bytes of i8: each row with a scale, or where it is
/// packed each group of neighbours. The scales are a variable beside it.
bool isInt8(const planfile::Plan &plan, const planfile::Variable &variable);
/// What a parameter leaves out that is held in two halves (support::splitFloat); null of others.
const planfile::Variable *restOf(const planfile::Plan &plan, const planfile::Variable &variable);
/// The type that its values are given in: its own, or f32 of what is then rounded to integers.
support::DType givenDtypeOf(const planfile::Plan &plan, const planfile::Variable &variable);

/// Does the work on [begin, end) for all elements, on the threads of the rank.
void inRanges(Executor &executor, size_t elements,
              const std::function<void(size_t begin, size_t end)> &work);

/// Fills `out` with elements of a variable from number `first` on, dense, in the type that its
/// values are given in.
using ElementSource = std::function<void(int64_t first, std::span<std::byte> out)>;
/// Takes them.
using ElementSink = std::function<void(int64_t first, std::span<const std::byte> values)>;

/// Writes what a rank holds of a variable that is no copy, of its copies, of what it leaves out
/// and, of integers, of their scales (support::quantizeRow, quantizeGroup make both). The source is
/// asked for pieces in increasing order, and for nothing that the rank does not hold; while it
/// makes one the device takes the one before.
void writeVariable(const planfile::Plan &plan, Executor &executor,
                   const planfile::Variable &variable, uint64_t rank, const ElementSource &source);
/// The same from the values of all its elements.
void writeVariable(const planfile::Plan &plan, Executor &executor,
                   const planfile::Variable &variable, uint64_t rank,
                   std::span<const std::byte> values);

/// Zeros what a rank holds of a variable and of its copies, where nothing has to be made on the
/// host for that; else it does nothing and returns false.
bool clearVariable(const planfile::Plan &plan, Executor &executor,
                   const planfile::Variable &variable, uint64_t rank);

/// Reads what a rank holds of a variable, in its own type and in pieces in increasing order, which
/// the sink finds in staging memory.
void readVariable(const planfile::Plan &plan, Executor &executor,
                  const planfile::Variable &variable, uint64_t rank, const ElementSink &sink);
/// The same of elements [begin, end) of that part, of a dense tensor.
void readElements(const planfile::Plan &plan, Executor &executor,
                  const planfile::Variable &variable, uint64_t rank, int64_t begin, int64_t end,
                  const ElementSink &sink);

/// Bytes that a rank holds of a variable, without its scales.
uint64_t heldBytes(const planfile::Plan &plan, const planfile::Variable &variable, uint64_t rank);

/// Zeros what lies between the members of units, on which nothing else writes.
void clearGaps(const planfile::Plan &plan, Executor &executor, uint64_t rank);

/// Hashes of all variables that are saved: of those that all ranks have whole, and for all axes
/// along which some are cut, of the rank's pieces of those. Ranks that hold the same make the same
/// claims.
std::vector<Claim> hashesOfVariables(const PlanFile &file, Executor &executor, uint64_t rank);

/// Whether all elements that a rank holds of a variable are finite.
bool isFinite(const PlanFile &file, Executor &executor, const planfile::Variable &variable,
              uint64_t rank);

/// Elements of all parameters, and of those that are trained.
struct ParameterCount {
  uint64_t all = 0, trained = 0;
};
ParameterCount countParameters(const planfile::Plan &plan);

} // namespace hydra::runtime
