// What the cost model tells steps apart by.
#include "runtime/plan/Actions.h"
#include "runtime/plan/PlanFile.h"
#include "runtime/report/MeasuredRates.h"

#include <algorithm>
#include <cmath>
#include <string_view>

namespace hydra::report {

using namespace planfile;

namespace {

/// Below it operations cost nothing beside bytes.
constexpr double kLeastIntensity = 1.0 / 16;

/// What a block of a kernel's grid works on, so that the number of blocks can be estimated without
/// code: as many bytes as 256 threads move with four accesses each; of a matmul's result a tile for
/// tensor cores, or for other units, which libraries cut finer.
constexpr double kBlockBytes = 16384, kTensorTile = 128, kScalarTile = 32;

/// Without the number behind it.
std::string_view stemOf(std::string_view name) {
  const size_t last = name.find_last_not_of("0123456789");
  if (last == std::string_view::npos || last + 1 == name.size() || name[last] != '_')
    return name;
  return name.substr(0, last);
}

const Tensor &argument(const Plan &plan, const Step &step, uint32_t number) {
  return *plan.tensors()->Get(step.args()->Get(number)->tensor());
}

/// Elements of dimensions [first, last).
double elements(const Tensor &tensor, uint32_t first, uint32_t last) {
  double count = 1;
  for (uint32_t d = first; d < last; ++d)
    count *= double(tensor.shape()->Get(d));
  return count;
}

/// Rows, columns, depth and matrices; runtime/calls/MatmulCall.cpp lists the shapes. All 1 where
/// they are none of those, which executors refuse and the plan's verifier does not.
std::vector<double> matmulSizes(const Plan &plan, const Step &step, const Matmul &matmul) {
  const uint32_t result =
      2 + (matmul.bias() ? 1 : 0) + (matmul.weight_scale() ? 1 : 0) + (matmul.scaled() ? 2 : 0);
  if (step.args()->size() <= result)
    return {1, 1, 1, 1};
  const Tensor &a = argument(plan, step, 0), &b = argument(plan, step, 1),
               &c = argument(plan, step, result);
  const uint32_t rank = c.shape()->size(), rankOfA = a.shape()->size();
  const bool sums = rank == 2 && rankOfA > 2, rows = b.shape()->size() == 2;
  if (rank == 0 || rankOfA == 0 || (rank == 1 && !rows))
    return {1, 1, 1, 1};
  const double columns = elements(c, rank - 1, rank);
  const double matrices = sums || rows ? 1 : elements(c, 0, rank - 2);
  const double depth = sums                   ? elements(a, 0, rankOfA - 1)
                       : matmul.transpose_a() ? elements(a, rankOfA - 2, rankOfA - 1)
                                              : elements(a, rankOfA - 1, rankOfA);
  return {elements(c, 0, rank - 1) / matrices, columns, depth, matrices};
}

std::string_view formatOf(const Plan &plan, const Step &step) {
  if (step.args()->size() == 0)
    return "f32";
  return support::irName(runtime::dtypeOf(argument(plan, step, 0)));
}

/// As many as the bytes of a step are estimated to make.
double blocksByBytes(const Step &step) { return double(step.cost()->bytes()) / kBlockBytes; }

/// A scan has a block for each of its slices, whatever its bytes. 0: it is no scan, or its kernel
/// does not say.
double blocksOfScan(const Plan &plan, const Step &step) {
  const Launch *launch = step.action_as_Launch();
  if (!launch || step.op_class() != OpClass::scan)
    return 0;
  const Dim3 &grid = *plan.kernels()->Get(launch->kernel())->grid();
  return double(grid.x()) * grid.y() * grid.z();
}

} // namespace

double limitOf(const Step &step) {
  return step.limit_microseconds() > 0 ? step.limit_microseconds() : step.cost()->microseconds();
}

double shareOf(const Plan &plan, const Step &step) {
  const uint32_t processors = plan.target()->multiprocessors();
  if (processors == 0)
    return 1;
  double blocks = blocksByBytes(step);
  if (const double all = blocksOfScan(plan, step); all > 0)
    blocks = std::min(blocks, all);
  if (const Matmul *matmul = step.action_as_Matmul()) {
    const std::vector<double> sizes = matmulSizes(plan, step, *matmul);
    const bool scalar = formatOf(plan, step) == "f32" && matmul->compute() == DType::f32;
    const double tile = scalar ? kScalarTile : kTensorTile;
    blocks = std::ceil(sizes[0] / tile) * std::ceil(sizes[1] / tile) * sizes[3];
  }
  return std::clamp(blocks, 1.0, double(processors)) / processors;
}

StepWork workOf(const Plan &plan, const Step &step) {
  StepWork work;
  work.limit = limitOf(step);
  if (const Matmul *matmul = step.action_as_Matmul()) {
    const bool tf32 = matmul->compute() == DType::tf32;
    work.kind = std::string("matmul.") + std::string(tf32 ? "tf32" : formatOf(plan, step));
    work.sizes = matmulSizes(plan, step, *matmul);
    return work;
  }
  const double bytes = std::max(1.0, double(step.cost()->bytes()));
  // A scan of a block for each head takes as long for 64 heads as for 16.
  if (const double all = blocksOfScan(plan, step); all > 0 && all < blocksByBytes(step))
    work.share = std::min(1.0, all / std::max(1U, plan.target()->multiprocessors()));
  work.sizes = {bytes / work.share,
                std::max(kLeastIntensity, double(step.cost()->flops()) / bytes)};
  work.kind = EnumNameOpClass(step.op_class());
  if (step.op_class() != OpClass::attention)
    return work;
  // Its kernels are known by their names, as its functions are.
  work.kind = step.action_as_Launch() ? std::string(stemOf(step.name()->string_view()))
                                      : std::string(runtime::wordOf(step.action_type()));
  work.kind += std::string(".") + std::string(formatOf(plan, step));
  return work;
}

} // namespace hydra::report
