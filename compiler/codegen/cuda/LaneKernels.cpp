// CUDA C++ for loops with lanes: what a lane keeps, and what it moves in which iteration.
#include "compiler/codegen/cuda/LaneKernels.h"

#include "compiler/codegen/cuda/GroupText.h"
#include "compiler/codegen/cuda/LoopSteps.h"
#include "compiler/codegen/cuda/NodeText.h"
#include "compiler/codegen/cuda/StepLauncher.h"
#include "dialects/hydra/RowForms.h"
#include "dialects/plan/Slices.h"

#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using llvm::formatv;

namespace hydra::cuda {

namespace {

/// A number that a lane knows: of one element in every iteration, under one name or several.
struct Number {
  Value value;
  plan::LaneLayout layout;
  std::string index; ///< of the element in its tensor, in C++
  RowType type;
  std::string name; ///< of its variable
  bool readFirst = false, written = false;

  /// Whether another iteration has another element.
  bool moves() const { return layout.moves.front() != 0; }
};

/// Numbers of a wide access, as `loadFour` and `storeFour` of templates/loop.cuh have it.
constexpr int64_t kFour = 4;

/// Threads of a block, and of a multiprocessor where each takes as many registers as it can.
constexpr int64_t kMostThreads = 256;

class LaneWriter {
public:
  LaneWriter(plan::LoopOp loop, ArrayRef<LoopStep> steps)
      : loop(loop), body(&loop.getBody().front()), steps(steps), lanes(*loop.getSlices()),
        count(loop.getCount()) {}

  FailureOr<LoopKernel> write(int64_t multiprocessors) {
    for (const LoopStep &step : steps)
      if (failed(collect(step)))
        return failure();
    const int64_t threads = threadsFor(multiprocessors);
    together = iterationsTogether(ceilDiv(lanes, kMostThreads) <= multiprocessors);
    const std::string fetched = fetch();
    std::string iteration = takeFetched();
    for (const LoopStep &step : steps)
      iteration += textOf(step);
    iteration += storeMoved();
    const std::string each =
        formatv("_Pragma(\"unroll\") for (int ahead = 0; ahead < {0}; ++ahead) {1}{{\n", together,
                count % together == 0 ? "" : formatv("if (first + ahead < {0}) ", count).str());
    LoopKernel kernel;
    const std::string before = enter(), after = leave(); // they name arguments too
    std::string parameters;
    for (auto [i, value] : llvm::enumerate(arguments))
      parameters +=
          formatv("{0}{1} *a{2}", i ? ", " : "", cType(typeOf(value).getElementType()), i);
    kernel.text =
        formatv("({0}) {{\n"
                "const int64 lane = int64(blockIdx.x) * {1} + threadIdx.x;\n"
                "if (lane >= {2})\nreturn;\n"
                "{3}{4}"
                "for (int first = 0; first < {5}; first += {6}) {{\n{7}{8}{9}}\n}\n{10}}",
                parameters, threads, lanes, declarations, before, count, together,
                arrays + (fetched.empty() ? "" : each + fetched + "}\n"), each, iteration, after)
            .str();
    kernel.args = llvm::map_to_vector(arguments, [&](Value v) { return wholeOf(loop, v); });
    for (Value value : arguments)
      kernel.access.push_back(isWritten(value) ? plan::kUpdate : plan::kRead);
    kernel.blocks = ceilDiv(lanes, threads);
    kernel.threads = threads;
    kernel.bytes = movedBytes();
    return kernel;
  }

private:
  /// The fewer lanes, the smaller blocks, so that they meet more multiprocessors.
  int64_t threadsFor(int64_t multiprocessors) const {
    int64_t threads = kMostThreads;
    while (threads > 32 && ceilDiv(lanes, threads) < multiprocessors)
      threads /= 2;
    return threads;
  }

  /// As many iterations as registers hold numbers of; a number that divides all where there is one
  /// not much smaller. With so few lanes that each may take all the registers that a thread can
  /// have, half of them are for these numbers: no other lanes work while some wait for memory, so
  /// they had better wait seldom.
  int64_t iterationsTogether(bool fewLanes) const {
    constexpr int64_t mostNodes = 4096;
    const int64_t mostFetched = fewLanes ? 128 : 48, most = fewLanes ? 64 : 8;
    int64_t nodes = 1, fetched = 1;
    for (const LoopStep &step : steps)
      nodes += step.program ? step.program->nodes.size() : 1;
    for (const Number &number : numbers)
      fetched += isFetched(number);
    const int64_t together = std::clamp<int64_t>(std::min(mostFetched / fetched, mostNodes / nodes),
                                                 1, std::min<int64_t>(most, count));
    for (int64_t fewer = together; 2 * fewer > together; --fewer)
      if (count % fewer == 0)
        return fewer;
    return together;
  }

  //===-- Numbers ---------------------------------------------------------------------------===//

  LogicalResult collect(const LoopStep &step) {
    for (auto [i, arg] : llvm::enumerate(step.args))
      if (!rowTypeOf(typeOf(arg).getElementType()))
        return step.op->emitOpError()
               << "works on " << typeOf(arg).getElementType() << ", which kernels of loops do not";
    for (unsigned i = 0; i < step.args.size(); ++i)
      if (step.reads(i)) {
        Number &number = numberOf(step, i);
        number.readFirst |= !number.written;
      }
    for (unsigned i = 0; i < step.args.size(); ++i)
      if (step.writes(i))
        numberOf(step, i).written = true;
    return success();
  }

  Number &numberOf(const LoopStep &step, unsigned i) {
    Value value = step.args[i];
    plan::LaneLayout layout = plan::laneLayoutOf(loop, value);
    std::string index = indexOf(step, value);
    for (Number &number : numbers)
      if (number.layout == layout && number.index == index)
        return number;
    numbers.push_back({value, layout, index, *rowTypeOf(typeOf(value).getElementType()),
                       "x" + std::to_string(numbers.size())});
    return numbers.back();
  }

  /// Which element of a tensor is a lane's, in row-major order.
  std::string indexOf(const LoopStep &step, Value value) const {
    ArrayRef<int64_t> shape = typeOf(value).getShape();
    if (!step.program || typeOf(value).getNumElements() == lanes)
      return "lane";
    const RowDomain &domain = step.program->domain;
    const RowForm form = *formOfShape(domain, shape);
    if (form == RowForm::Scalar)
      return "0";
    return formatv(variesOverRows(form) ? "(lane / {0})" : "(lane % {0})", domain.columns());
  }

  /// Whether only one iteration knows a number: it needs no memory.
  bool isLocal(const Number &number) const { return number.layout.buffer->getBlock() == body; }
  /// Whether a number of a sequence is read, each in an iteration of its own.
  bool isFetched(const Number &number) const {
    return !isLocal(number) && number.moves() && number.readFirst;
  }
  bool isKept(const Number &number) const { return !isLocal(number) && !number.moves(); }

  bool isWritten(Value argument) const {
    return llvm::any_of(
        numbers, [&](const Number &number) { return number.written && number.value == argument; });
  }

  /// What all lanes load and store: of sequences in every iteration, of others once.
  int64_t movedBytes() const {
    int64_t bytes = 0;
    for (const Number &number : numbers) {
      if (isLocal(number))
        continue;
      MemRefType type = typeOf(number.value);
      const int64_t each = type.getNumElements() * elementBytes(type.getElementType());
      bytes += each * (number.moves() ? count : 1) * (number.readFirst + number.written);
    }
    return bytes;
  }

  //===-- Memory ----------------------------------------------------------------------------===//

  /// Whether a lane's numbers of four iterations lie side by side: one access for them, where lanes
  /// are too far apart to share any.
  bool isFourfold(const Number &number) const {
    const auto move = number.layout.moves.front();
    const int64_t element = elementBytes(number.layout.element), bytes = kFour * element;
    const auto isWhole = [&](int64_t distance) { return distance % bytes == 0; };
    return !isLocal(number) && isFloat(number.type) && std::abs(move) == element &&
           count % kFour == 0 && together % kFour == 0 &&
           // Of iterations that go backward the last of four lies first.
           isWhole(number.layout.bytes + (move < 0 ? (kFour - 1) * move : 0)) &&
           llvm::all_of(ArrayRef(number.layout.moves).drop_front(), isWhole) &&
           llvm::all_of(number.layout.dims,
                        [&](auto dim) { return isWhole(dim.second * element); });
  }

  /// The element of a number, in the iteration that is a C++ expression.
  std::string element(const Number &number, StringRef iteration) {
    MemRefType type = typeOf(number.value);
    std::string &pointer = pointers[number.name];
    if (pointer.empty()) {
      pointer = "v" + number.name.substr(1);
      auto *known = llvm::find(arguments, number.value);
      const size_t argument = known - arguments.begin();
      if (known == arguments.end())
        arguments.push_back(number.value);
      declarations +=
          formatv("{0} *{1} = a{2} + ({3}) + {4};\n", cType(type.getElementType()), pointer,
                  argument, offsetText(number.index, type.getShape(), plan::stridesOf(type)),
                  firstElement(loop, number.value));
    }
    if (!number.moves())
      return "*" + pointer;
    return formatv("{0}[int64({1}) * {2}]", pointer, iteration,
                   strideOf(loop, number.value) / elementBytes(type.getElementType()));
  }

  static std::string stored(const Number &number, const std::string &element) {
    return isFloat(number.type) ? formatv("assign({0}, {1});\n", element, number.name).str()
                                : formatv("{0} = {1};\n", element, number.name).str();
  }

  /// In front of the first iteration: what all share, and what is carried into it.
  std::string enter() {
    std::string text;
    for (const Number &number : numbers)
      if (isKept(number) && number.readFirst)
        text += formatv("{0} {1} = {2};\n", numberType(number.type), number.name,
                        loadedText(number.type, element(number, "")));
      else if (isKept(number))
        text += formatv("{0} {1};\n", numberType(number.type), number.name);
    return text;
  }

  /// Behind the last iteration.
  std::string leave() {
    std::string text;
    for (const Number &number : numbers)
      if (isKept(number) && number.written)
        text += stored(number, element(number, ""));
    return text;
  }

  /// Loads what iteration `first + ahead` reads of sequences, or that and the next three.
  std::string fetch() {
    std::string text;
    for (const Number &number : numbers) {
      if (!isFetched(number))
        continue;
      arrays += formatv("{0} {1}s[{2}];\n", numberType(number.type), number.name, together);
      if (!isFourfold(number))
        text += formatv("{0}s[ahead] = {1};\n", number.name,
                        loadedText(number.type, element(number, "(first + ahead)")));
      else if (number.layout.moves.front() > 0)
        text += formatv("if (ahead % 4 == 0) loadFour({0}s + ahead, &{1});\n", number.name,
                        element(number, "(first + ahead)"));
      else
        text += formatv("if (ahead % 4 == 0) {{ float four[4]; loadFour(four, &{1});\n"
                        "_Pragma(\"unroll\") for (int j = 0; j < 4; ++j) {0}s[ahead + j] = "
                        "four[3 - j]; }\n",
                        number.name, element(number, "(first + ahead + 3)"));
    }
    return text;
  }

  /// Where an iteration begins.
  std::string takeFetched() {
    std::string text;
    for (const Number &number : numbers)
      if (isFetched(number))
        text += formatv("{0} {1} = {1}s[ahead];\n", numberType(number.type), number.name);
      else if (!isKept(number))
        text += formatv("{0} {1};\n", numberType(number.type), number.name);
    return text;
  }

  /// Where it ends.
  std::string storeMoved() {
    std::string text;
    for (const Number &number : numbers)
      if (!isLocal(number) && number.moves() && number.written)
        text += isFourfold(number) ? storedWithThree(number)
                                   : stored(number, element(number, "(first + ahead)"));
    return text;
  }

  /// Stores the numbers of four iterations when the last one ends.
  std::string storedWithThree(const Number &number) {
    const bool forward = number.layout.moves.front() > 0;
    arrays += formatv("float {0}f[4];\n", number.name);
    return formatv("{0}f[{1}] = {0};\nif (ahead % 4 == 3) storeFour(&{2}, {0}f);\n", number.name,
                   forward ? "ahead % 4" : "3 - ahead % 4",
                   element(number, forward ? "(first + ahead - 3)" : "(first + ahead)"));
  }

  //===-- Steps -----------------------------------------------------------------------------===//

  std::string textOf(const LoopStep &step) {
    auto name = [&](unsigned i) { return numberOf(step, i).name; };
    if (!step.program)
      return name(1) + " = " + name(0) + ";\n";
    const unsigned count = step.program->inputs.size();
    SmallVector<std::string> inputs, results;
    for (unsigned i = 0; i < step.args.size(); ++i)
      (i < count ? inputs : results).push_back(name(i));
    return laneGroupText(*step.program, inputs, results);
  }

  plan::LoopOp loop;
  Block *body;
  ArrayRef<LoopStep> steps;
  const int64_t lanes, count;
  int64_t together = 1; ///< iterations whose numbers are asked for at once
  std::vector<Number> numbers;
  SmallVector<Value> arguments;
  llvm::StringMap<std::string> pointers; ///< by the names of numbers
  std::string declarations, arrays;
};

} // namespace

FailureOr<LoopKernel> writeLaneKernel(plan::LoopOp loop, int64_t multiprocessors) {
  FailureOr<std::vector<LoopStep>> steps = loopSteps(loop);
  if (failed(steps))
    return failure();
  return LaneWriter(loop, *steps).write(multiprocessors);
}

} // namespace hydra::cuda
