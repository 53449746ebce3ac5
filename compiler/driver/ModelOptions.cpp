// The flags that every tool taking a model has.
#include "compiler/driver/ModelOptions.h"

using namespace llvm;

namespace hydra {

StringRef modeName(Mode mode) {
  return mode == Mode::Forward ? "forward" : mode == Mode::Grad ? "grad" : "train";
}

ModelOptions::ModelOptions(StringRef modeDefault)
    : category("Model"), file(cl::Positional, cl::desc("MODEL.mlir"), cl::cat(category)),
      preset("preset", cl::value_desc("NAME"), cl::cat(category),
             cl::desc("a preset of the model (default: none)")),
      set("set", cl::value_desc("NAME=VALUE,..."), cl::cat(category), cl::CommaSeparated,
          cl::desc("values of symbols, over the preset's; repeatable (default: none)")),
      batch("batch", cl::value_desc("B"), cl::cat(category), cl::init(0),
            cl::desc("sequences at a time: the entry dimension B (default: none)")),
      seq("seq", cl::value_desc("S"), cl::cat(category), cl::init(0),
          cl::desc("tokens in a sequence: the entry dimension S (default: none)")),
      mode("mode", cl::cat(category), cl::init(Mode::Forward),
           cl::values(clEnumValN(Mode::Forward, "forward", "the results of the entry"),
                      clEnumValN(Mode::Grad, "grad", "the loss and all gradients"),
                      clEnumValN(Mode::Train, "train", "updates of all parameters"))),
      accum("accum", cl::value_desc("N"), cl::cat(category), cl::init(1),
            cl::desc("micro-batches per update in --mode=train (default: 1)")),
      dumpPasses("dump-passes", cl::value_desc("DIR"), cl::cat(category),
                 cl::desc("write the program after each pass to DIR/NN-pass.mlir (default: off)")),
      modeHelp(("what the program computes (default: " + modeDefault + ")").str()) {
  mode.setDescription(modeHelp);
}

std::optional<Mode> ModelOptions::givenMode() const {
  return mode.getNumOccurrences() > 0 ? std::optional<Mode>(mode.getValue()) : std::nullopt;
}

bool ModelOptions::bindingGiven() const {
  return preset.getNumOccurrences() + set.getNumOccurrences() + batch.getNumOccurrences() +
             seq.getNumOccurrences() >
         0;
}

BindingOptions ModelOptions::binding() const {
  BindingOptions options;
  options.preset = preset;
  options.settings.assign(set.begin(), set.end());
  options.batch = batch;
  options.seq = seq;
  return options;
}

} // namespace hydra
