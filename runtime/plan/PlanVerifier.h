// The rules that a plan keeps beyond the structure of its tables.
//
// Every index names an entry that exists, every enum and union is one of its values, names are not
// empty, and elements of vectors stand at their alignment.
//
// Data
// * There are two segments, persistent and transient, aligned to a power of two of at most 2 MiB.
// * Dimensions are at least 1, strides not negative, elements fewer than 2^48, rank at most 8;
//   offsets are multiples of the element size; all bytes of a tensor are inside its segment.
// * Variables and scalars are persistent and share no byte; their names are unique. Numbers of
//   initializers are finite and in range; the table of a shuffle has one value per element. Only
//   parameters have a group; only states are moments, and of parameters.
// * A variable may share its tensor, a unit, with others: it is dense, has at most 2^48 elements
// with
//   the pieces of all ranks, is cut along one axis of the mesh or not at all, and its members lie
//   inside and share no element. Copies have the shape of their owner.
// * Scalars have rank 0; those that are drawn, or count micro-batches, are i32. Step counts of
//   schedules are not negative and in order.
// * The axes of a mesh have names of their own and 1 to 65536 ranks in all; what says where a rank
// is
//   along one is a persistent i32 of rank 0, and shares no byte with the variables and scalars.
// Code
// * Blobs are native on the CPU, cubin or ptx on CUDA, and not empty. Kernel names are unique.
// * CUDA launches are within the limits of every device, and their shared memory within the
// target's;
//   CPU kernels have no grid.
// * What predictions go by, of target and steps, is finite and not negative.
// Programs
// * There is at least one; names of programs, and of inputs and outputs within one, are unique.
//   Accumulation above 1 needs the programs accumulate and apply.
// * The safe form of a program is of role custom, and has inputs and outputs like its own. So has
//   what does its work without one optimization; of those there are as many as programs with a safe
//   form, or none.
// * Programs that derive have no inputs; derived variables need one. Histories of largest
// magnitudes
//   are f32, of two dimensions.
// * Inputs share no byte; tokens and labels are integers with a limit of at least 1; an ignored
//   label is none of the valid ones.
// * The batch of an input or output is one of its dimensions. Collectives go along an axis of the
// mesh,
//   and stand in no loop or switch; those along one axis are on one stream, so all ranks meet in
//   one order.
// * Blocks are nested at most kMaxBlockDepth deep. Loops run at least once, have a body, and name
//   the tensors they shift in increasing order. Switches have a case and select by a rank-0 i32.
// * Streams and events are within the numbers the program declares (at most 64 streams); an event
//   is signalled by one block, earlier in the same list than every block that waits for it.
// * Launches pass as many arguments as the kernel has; on the CPU rows and grain are at least 1, on
//   CUDA they are 0.
// * A tensor that is written gives each element bytes of its own.
// * A tensor shifted by loops stays inside its segment in all iterations; what a program touches of
//   the transient segment is inside its transient_bytes, which are inside the segment.
// * One of a step's alternatives is chosen. Those of a launch, on CUDA, are the launch and then
//   library calls.
// * Ordering: two blocks of one list that touch overlapping bytes, one of them writing, are ordered
//   by their stream or by events. Loop and switch touch what anything inside touches, in all
//   iterations and cases. Slices of columns with the same pitch count as disjoint when they are.
// * Contents: a step finds in every transient byte it reads what its own buffer was last given.
//   Arguments of a step share no byte that is written, but for a generated kernel on the CPU that
//   works in place on one tensor; instances of a batched launch share none.
#pragma once

#include "runtime/plan/plan_generated.h"

#include <string_view>

namespace hydra::runtime {

/// How deep blocks may be nested: 1 is a program without loops and switches.
inline constexpr unsigned kMaxBlockDepth = 16;

/// Throws Error, naming `origin` (the file) and the field, at the first broken rule. The structure
/// must have passed the FlatBuffers verifier.
void verifyPlan(const planfile::Plan &plan, std::string_view origin);

} // namespace hydra::runtime
