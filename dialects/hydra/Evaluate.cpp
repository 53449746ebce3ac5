// Evaluation of symbol expressions.
#include "dialects/hydra/Expr.h"
#include "dialects/hydra/ExprText.h"
#include "dialects/hydra/Hydra.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/StringExtras.h"

#include <cmath>
#include <limits>

using namespace mlir;

namespace hydra {

namespace {

bool isInt(Attribute a) { return isIntOrExpr(a) && !isa<ExprAttr>(a); }

/// Applies operators and functions to evaluated arguments.
class Evaluator {
public:
  Evaluator(MLIRContext *context, const Environment &environment,
            llvm::function_ref<InFlightDiagnostic()> emitError)
      : builder(context), environment(environment), emitError(emitError) {}

  FailureOr<Attribute> run(Attribute expr) {
    auto e = dyn_cast<ExprAttr>(expr);
    if (!e)
      return expr;
    if (e.getArgs().empty())
      return symbol(e);
    if (e.getHead() == "==")
      return equal(e);
    SmallVector<Attribute> args;
    for (Attribute a : e.getArgs()) {
      FailureOr<Attribute> value = run(a);
      if (failed(value))
        return failure();
      args.push_back(*value);
    }
    if (llvm::any_of(args, [](Attribute a) { return isa<ExprAttr>(a); }))
      return Attribute(ExprAttr::get(builder.getContext(), e.getHead(), args));
    return apply(e, args);
  }

private:
  FailureOr<Attribute> symbol(ExprAttr e) {
    if (environment.deferred.contains(e.getHead()))
      return Attribute(e);
    auto it = environment.values.find(e.getHead());
    if (it == environment.values.end()) {
      emitError() << "symbol '" << e.getHead() << "' is not declared";
      return failure();
    }
    return it->second;
  }

  /// `choice == option` or a comparison of numbers.
  FailureOr<Attribute> equal(ExprAttr e) {
    for (int side : {0, 1}) {
      auto choice = dyn_cast<ExprAttr>(e.getArgs()[side]);
      auto option = dyn_cast<ExprAttr>(e.getArgs()[1 - side]);
      if (!choice || !choice.getArgs().empty())
        continue;
      auto options = environment.options.find(choice.getHead());
      if (options == environment.options.end())
        continue;
      if (!option || !option.getArgs().empty() ||
          !llvm::is_contained(options->second, option.getHead())) {
        emitError() << "choice '" << choice.getHead()
                    << "' can only be compared with one of: " << llvm::join(options->second, ", ");
        return failure();
      }
      FailureOr<Attribute> value = symbol(choice);
      if (failed(value))
        return failure();
      return Attribute(builder.getBoolAttr(cast<StringAttr>(*value) == option.getHead()));
    }
    FailureOr<Attribute> a = run(e.getArgs()[0]), b = run(e.getArgs()[1]);
    if (failed(a) || failed(b))
      return failure();
    if (isa<ExprAttr>(*a) || isa<ExprAttr>(*b))
      return Attribute(ExprAttr::get(builder.getContext(), "==", {*a, *b}));
    if (isa<BoolAttr>(*a) && isa<BoolAttr>(*b))
      return Attribute(builder.getBoolAttr(*a == *b));
    if (failed(numbers(e, {*a, *b})))
      return failure();
    const bool whole = isInt(*a) && isInt(*b); // beyond 2^53 no double is
    return Attribute(
        builder.getBoolAttr(whole ? intValue(*a) == intValue(*b) : realValue(*a) == realValue(*b)));
  }

  LogicalResult numbers(ExprAttr e, ArrayRef<Attribute> args) {
    for (Attribute a : args)
      if (!isInt(a) && !isa<FloatAttr>(a)) {
        emitError() << "'" << e.getHead() << "' wants numbers in '" << exprText(e) << "'";
        return failure();
      }
    return success();
  }

  Attribute real(double v) { return builder.getF64FloatAttr(v); }
  Attribute integer(int64_t v) { return builder.getI64IntegerAttr(v); }

  FailureOr<Attribute> overflow(ExprAttr e) {
    emitError() << "integer overflow in '" << exprText(e) << "'";
    return failure();
  }

  FailureOr<Attribute> apply(ExprAttr e, ArrayRef<Attribute> args) {
    StringRef f = e.getHead();
    if (f == "and" || f == "or" || f == "not" || f == "select") {
      auto truth = dyn_cast<BoolAttr>(args[0]);
      bool logical = f != "select";
      if (!truth || (logical && !llvm::all_of(args, llvm::IsaPred<BoolAttr>))) {
        emitError() << "'" << f << "' wants truth values in '" << exprText(e) << "'";
        return failure();
      }
      if (f == "select")
        return truth.getValue() ? args[1] : args[2];
      if (f == "not")
        return Attribute(builder.getBoolAttr(!truth.getValue()));
      bool a = truth.getValue(), b = cast<BoolAttr>(args[1]).getValue();
      return Attribute(builder.getBoolAttr(f == "and" ? a && b : a || b));
    }
    if (failed(numbers(e, args)))
      return failure();
    if (llvm::all_of(args, isInt))
      if (std::optional<FailureOr<Attribute>> exact = integers(e, args))
        return *exact;
    return reals(e, args);
  }

  /// Operators that keep integers exact; nullopt for functions that are real anyway.
  std::optional<FailureOr<Attribute>> integers(ExprAttr e, ArrayRef<Attribute> args) {
    StringRef f = e.getHead();
    int64_t a = intValue(args[0]), b = args.size() > 1 ? intValue(args[1]) : 0, r = 0;
    auto truth = [&](bool v) { return FailureOr<Attribute>(Attribute(builder.getBoolAttr(v))); };
    auto result = [&](bool wrapped) {
      // The smallest integer has no literal.
      return wrapped || r == std::numeric_limits<int64_t>::min() ? overflow(e)
                                                                 : FailureOr<Attribute>(integer(r));
    };
    if (f == "+")
      return result(__builtin_add_overflow(a, b, &r));
    if (f == "-")
      return result(args.size() == 1 ? __builtin_sub_overflow(int64_t(0), a, &r)
                                     : __builtin_sub_overflow(a, b, &r));
    if (f == "*")
      return result(__builtin_mul_overflow(a, b, &r));
    if (f == "/") {
      if (b == 0 || a % b != 0) {
        emitError() << "'" << exprText(e) << "' is not exact: " << a << " / " << b
                    << (b == 0 ? "" : " leaves a remainder of ")
                    << (b == 0 ? std::string() : std::to_string(a % b));
        return FailureOr<Attribute>(failure());
      }
      r = a / b;
      return result(false);
    }
    if (f == "<")
      return truth(a < b);
    if (f == "<=")
      return truth(a <= b);
    if (f == ">")
      return truth(a > b);
    if (f == ">=")
      return truth(a >= b);
    if (f == "min" || f == "max" || f == "clamp") {
      SmallVector<int64_t> v = llvm::map_to_vector(args, intValue);
      r = f == "min"   ? *std::min_element(v.begin(), v.end())
          : f == "max" ? *std::max_element(v.begin(), v.end())
                       : std::min(std::max(v[0], v[1]), v[2]);
      return result(false);
    }
    if (f == "ceil" || f == "floor" || f == "round") {
      r = a;
      return result(false);
    }
    return std::nullopt;
  }

  FailureOr<Attribute> reals(ExprAttr e, ArrayRef<Attribute> args) {
    StringRef f = e.getHead();
    SmallVector<double> v = llvm::map_to_vector(args, realValue);
    double a = v[0], b = v.size() > 1 ? v[1] : 0.0;
    if (f == "<" || f == "<=" || f == ">" || f == ">=")
      return Attribute(builder.getBoolAttr(f == "<"    ? a < b
                                           : f == "<=" ? a <= b
                                           : f == ">"  ? a > b
                                                       : a >= b));
    if (f == "ceil" || f == "floor" || f == "round") {
      double r = f == "ceil" ? std::ceil(a) : f == "floor" ? std::floor(a) : std::nearbyint(a);
      if (!(std::abs(r) < 9.0e15))
        return overflow(e);
      return integer(static_cast<int64_t>(r));
    }
    double r = f == "+"         ? a + b
               : f == "-"       ? (v.size() == 1 ? -a : a - b)
               : f == "*"       ? a * b
               : f == "/"       ? a / b
               : f == "sqrt"    ? std::sqrt(a)
               : f == "exp"     ? std::exp(a)
               : f == "log"     ? std::log(a)
               : f == "logit"   ? std::log(a / (1.0 - a))
               : f == "sigmoid" ? 1.0 / (1.0 + std::exp(-a))
               : f == "pow"     ? std::pow(a, b)
               : f == "min"     ? *std::min_element(v.begin(), v.end())
               : f == "max"     ? *std::max_element(v.begin(), v.end())
               : f == "clamp"   ? std::min(std::max(a, v[1]), v[2])
                                : a; // real
    if (!std::isfinite(r)) {
      emitError() << "'" << exprText(e) << "' is not a finite number";
      return failure();
    }
    return real(r);
  }

  Builder builder;
  const Environment &environment;
  llvm::function_ref<InFlightDiagnostic()> emitError;
};

} // namespace

FailureOr<Attribute> evaluate(Attribute expr, const Environment &environment,
                              llvm::function_ref<InFlightDiagnostic()> emitError) {
  if (auto array = dyn_cast<ArrayAttr>(expr)) {
    SmallVector<Attribute> values;
    for (Attribute a : array) {
      FailureOr<Attribute> value = hasExpr(a) ? evaluate(a, environment, emitError) : a;
      if (failed(value))
        return failure();
      values.push_back(*value);
    }
    return Attribute(ArrayAttr::get(expr.getContext(), values));
  }
  if (auto init = dyn_cast<InitAttr>(expr)) {
    FailureOr<Attribute> args =
        evaluate(ArrayAttr::get(expr.getContext(), init.getArgs()), environment, emitError);
    if (failed(args))
      return failure();
    auto evaluated = InitAttr::getChecked(emitError, expr.getContext(), init.getKind(),
                                          cast<ArrayAttr>(*args).getValue());
    if (!evaluated)
      return failure();
    return Attribute(evaluated);
  }
  return Evaluator(expr.getContext(), environment, emitError).run(expr);
}

} // namespace hydra
