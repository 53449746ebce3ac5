// Derivatives of a program's loss by differences.
#include "test/support/Derivative.h"

#include "test/support/Random.h"

#include "llvm/Support/FormatVariadic.h"

#include <cmath>
#include <limits>

using namespace mlir;

namespace hydra::test {

/// What rounding may do to a difference quotient of values around 1.
static constexpr double kNoise = 1e-10;

std::optional<double> numericDerivative(llvm::function_ref<double(double)> f) {
  // The error is about h^4 f⁽⁵⁾ / 30 from the formula and 1e-16 |f| / h from rounding. Halving h
  // changes the first by a factor of 16, so two estimates that agree are good to far more than
  // their difference; a kink within reach moves them apart by a fraction of the jump. One at 0 does
  // not, but makes the slopes of the two sides differ, by more than the h^3 of their formula.
  const double zero = f(0.0);
  for (const double h : {1e-3, 1e-4}) {
    const double right = f(h), left = f(-h), farRight = f(2 * h), farLeft = f(-2 * h);
    const double half = f(h / 2) - f(-h / 2), one = right - left, two = farRight - farLeft;
    const double coarse = (8.0 * one - two) / (12.0 * h), fine = (8.0 * half - one) / (6.0 * h);
    const double slopeRight = (4.0 * right - farRight - 3.0 * zero) / (2.0 * h);
    const double slopeLeft = (3.0 * zero - 4.0 * left + farLeft) / (2.0 * h);
    const double size = std::max({std::abs(coarse), std::abs(slopeLeft), std::abs(slopeRight)});
    if (std::abs(coarse - fine) <= 1e-7 * size + kNoise &&
        std::abs(slopeRight - slopeLeft) <= 1e-6 * size + 1e-8)
      return fine;
  }
  return std::nullopt;
}

namespace {

class GradientCheck {
public:
  GradientCheck(EntryOp forward, const TensorMap &values, const TensorMap &gradients,
                const DerivativeOptions &options)
      : forward(forward), values(values), options(options) {
    auto model = forward->getParentOfType<ModelOp>();
    for (auto param : model.getBody().getOps<ParamOp>()) {
      auto it = gradients.find(("grad." + param.getSymName()).str());
      if (it != gradients.end())
        params.push_back({param.getSymName().str(), &it->second});
    }
    for (const Param &param : params)
      if (llvm::any_of(param.gradient->data, [](double g) { return g != 0.0; }))
        flowing.push_back(param);
  }

  DerivativeReport run(uint64_t seed) {
    Random random(seed);
    if (params.empty())
      return report;
    for (unsigned i = 0; i < options.directions; ++i)
      checkDirection(random);
    for (unsigned i = 0; i < options.elements; ++i) {
      // Mostly where something flows: many parameters of a random program have no gradient.
      const Param &param = random.pick(flowing.empty() || i % 4 == 3 ? params : flowing);
      checkElement(param, random.below(param.gradient->size()));
    }
    return report;
  }

private:
  struct Param {
    std::string name;
    const RefTensor *gradient;
  };

  double loss() {
    FailureOr<TensorMap> results = interpret(forward, values);
    return failed(results) ? std::numeric_limits<double>::quiet_NaN()
                           : results->lookup("loss").data[0];
  }

  void compare(const std::string &what, double analytic, std::optional<double> numeric) {
    if (!numeric) {
      ++report.skipped;
      return;
    }
    ++report.checked;
    const double size = std::max(std::abs(analytic), std::abs(*numeric));
    const double error = std::abs(analytic - *numeric);
    if (size > 1e-3)
      report.worst = std::max(report.worst, error / size);
    if (!(error <= options.tolerance * size + kNoise))
      report.failures +=
          llvm::formatv("{0}: gradient {1}, differences {2}\n", what, analytic, *numeric);
  }

  /// All parameters move along a random unit vector.
  void checkDirection(Random &random) {
    std::vector<std::vector<double>> start, direction;
    double square = 0.0, analytic = 0.0;
    for (const Param &param : params) {
      start.push_back(values[param.name].data);
      std::vector<double> &d = direction.emplace_back();
      for (double g : param.gradient->data) {
        d.push_back(random.normal());
        square += d.back() * d.back();
        analytic += d.back() * g;
      }
    }
    const double norm = std::sqrt(square);
    auto move = [&](double t) {
      for (size_t p = 0; p < params.size(); ++p) {
        std::vector<double> &data = values[params[p].name].data;
        for (size_t i = 0; i < data.size(); ++i)
          data[i] = start[p][i] + t * direction[p][i] / norm;
      }
    };
    compare("all parameters", analytic / norm, numericDerivative([&](double t) {
              move(t);
              return loss();
            }));
    for (size_t p = 0; p < params.size(); ++p)
      values[params[p].name].data = start[p];
  }

  void checkElement(const Param &param, int64_t i) {
    double &x = values[param.name].data[i];
    const double start = x;
    compare(llvm::formatv("{0}[{1}]", param.name, i), param.gradient->data[i],
            numericDerivative([&](double t) {
              x = start + t;
              return loss();
            }));
    x = start;
  }

  EntryOp forward;
  TensorMap values;
  const DerivativeOptions &options;
  std::vector<Param> params, flowing;
  DerivativeReport report;
};

} // namespace

DerivativeReport checkGradients(EntryOp forward, const TensorMap &values,
                                const TensorMap &gradients, uint64_t seed,
                                const DerivativeOptions &options) {
  return GradientCheck(forward, values, gradients, options).run(seed);
}

} // namespace hydra::test
