// The flags that every tool taking a model has: which model, bound how, extended to what, in which
// numbers. They are bound to the options that passes are made from.
#pragma once

#include "compiler/Pipelines.h"
#include "compiler/driver/CommandLine.h"
#include "compiler/driver/TuningFlags.h"

#include "llvm/ADT/StringSet.h"

#include <string>

namespace hydra {

/// `dynamic`, `masked`, `static`.
llvm::StringRef shardingName(Sharding sharding);
llvm::StringRef routingName(Routing routing);

/// Reads what --average says, `ema,decay=D` or `swa,from=N`, into `update`; false, and nothing
/// read, for any other text.
bool readAverage(llvm::StringRef text, UpdateOptions &update);

/// Throws support::Error for --layer-precision that says what --precision says of all layers.
void checkLayerPrecision(const ProgramOptions &program);

/// The flags of `hydra-bind`. Lives in main from before flags are parsed to the end, as does what
/// they are bound to.
class BindingFlags {
public:
  explicit BindingFlags(BindingOptions &binding);

  /// Whether any of them is given.
  bool given() const;

  llvm::cl::OptionCategory category;

protected:
  /// Whether --mesh is given.
  bool hasMesh() const { return mesh.getNumOccurrences() > 0; }

private:
  /// `NAME=VALUE`, each name once.
  struct SettingParser : llvm::cl::parser<std::string> {
    using parser::parser;
    bool parse(llvm::cl::Option &option, llvm::StringRef name, llvm::StringRef text,
               std::string &value);
    llvm::StringSet<> names;
  };
  llvm::cl::opt<std::string, true> preset;
  llvm::cl::list<std::string, std::vector<std::string>, SettingParser> set;
  BoundInteger<1> batch, seq;
  llvm::cl::list<std::string, std::vector<std::string>> mesh;
  BoundChoice<Routing> routing;
};

/// The same with the model and what becomes of it.
class ModelOptions : public BindingFlags {
public:
  /// What the tool does with a program: `--mode=generate` is for calls that follow one another.
  enum class Calls { One, Many };

  /// `modeDefault` is what `--help` says about a missing `--mode`.
  ModelOptions(ProgramOptions &program, llvm::StringRef modeDefault, Calls calls = Calls::One);

  llvm::cl::opt<std::string> file;
  TuningFlags tuning;
  BoundChoice<Mode> mode;
  BoundInteger<1, std::numeric_limits<int32_t>::max()> accum;
  BoundChoice<AccumExchange> accumExchange;

  /// `ema,decay=D` or `swa,from=N`.
  struct AverageParser : llvm::cl::parser<std::string> {
    using parser::parser;
    bool parse(llvm::cl::Option &option, llvm::StringRef name, llvm::StringRef text,
               std::string &value);
  };
  llvm::cl::opt<std::string, false, AverageParser> average;

  /// A policy of hydra-mixed-precision.
  struct PrecisionParser : llvm::cl::parser<std::string> {
    using parser::parser;
    bool parse(llvm::cl::Option &option, llvm::StringRef name, llvm::StringRef text,
               std::string &value);
  };
  llvm::cl::opt<std::string, true, PrecisionParser> precision;
  llvm::cl::list<std::string, std::vector<std::string>> layerPrecision;
  BoundChoice<LogitsFormat> logits;
  BoundChoice<GradientFormat> gradients;
  BoundChoice<QuantizedFormat> fp8Format;
  BoundChoice<QuantizedScaling> fp8Scaling;
  BoundChoice<QuantizedAmax> fp8Amax;
  BoundInteger<1, 1024> fp8AmaxHistory;
  llvm::cl::list<std::string, std::vector<std::string>> fp8Keep;
  BoundInteger<1> fp8Least;
  llvm::cl::opt<std::string> dumpPasses;

  /// Throws support::Error for flags of --precision=fp8 without it, and for those of a history of
  /// largest magnitudes where there is none.
  void checkQuantization() const;
  /// Throws support::Error for --logits=bf16 where nothing else is bf16.
  void checkLogits() const;
  /// Throws support::Error for --gradients=bf16 where there are none, or matmuls make other
  /// numbers.
  void checkGradients() const;
  /// Throws support::Error for --accum-exchange=last where there are no ranks, or, unless others
  /// than
  /// --accum cut the batch, no micro-batches.
  void checkExchange(bool mayCutBatch = false) const;

private:
  std::string modeHelp;
};

} // namespace hydra
