// The flags that every tool taking a model has.
#include "compiler/driver/ModelOptions.h"

#include "passes/precision/Policy.h"
#include "runtime/support/Error.h"

using namespace llvm;

namespace hydra {

StringRef routingName(Routing routing) {
  return routing == Routing::Dynamic ? "dynamic" : routing == Routing::Masked ? "masked" : "static";
}

StringRef shardingName(Sharding sharding) {
  return sharding == Sharding::Ddp ? "ddp" : sharding == Sharding::Zero1 ? "zero1" : "fsdp";
}

void checkLayerPrecision(const ProgramOptions &program) {
  if (program.layerPrecision.empty())
    return;
  // In front of another one a rule says which layers that is not for.
  const std::string &last = program.layerPrecision.back();
  if (const std::optional<LayerPrecision> rule = LayerPrecision::parse(last);
      rule && rule->format == precisionPolicy(program.precision)->format)
    support::fail("--layer-precision={}: --precision={} multiplies in that already", last,
                  program.precision);
}

BindingFlags::BindingFlags(BindingOptions &binding)
    : category("Model"),
      preset("preset", cl::value_desc("NAME"), cl::cat(category), cl::location(binding.preset),
             cl::desc("a preset of the model (default: none)")),
      set("set", cl::value_desc("NAME=VALUE,..."), cl::cat(category), cl::CommaSeparated,
          cl::location(binding.settings),
          cl::desc("values of symbols, over the preset's; repeatable (default: none)")),
      batch("batch", cl::value_desc("B"), cl::cat(category), cl::location(binding.batch),
            cl::desc("sequences at a time: the entry dimension B (default: none)")),
      seq("seq", cl::value_desc("S"), cl::cat(category), cl::location(binding.seq),
          cl::desc("tokens in a sequence: the entry dimension S (default: none)")),
      mesh("mesh", cl::value_desc("NAME:SIZE,..."), cl::cat(category), cl::CommaSeparated,
           cl::location(binding.mesh),
           cl::desc(
               "ranks that share the batch: axes and their sizes, outermost first (default: one)")),
      routing(
          "routing", cl::cat(category), cl::location(binding.routing),
          cl::desc("how work follows what routers of the model say (default: dynamic)"),
          cl::values(clEnumValN(Routing::Dynamic, "dynamic",
                                "work on gathered rows follows their number, on the device"),
                     clEnumValN(Routing::Masked, "masked", "the same values by work on all rows"),
                     clEnumValN(Routing::Static, "static",
                                "soft routing of all rows: every choice of the model that can "
                                "be 'static' is, unless --set says otherwise; another "
                                "gradient"))) {}

bool BindingFlags::SettingParser::parse(cl::Option &option, StringRef, StringRef text,
                                        std::string &value) {
  const StringRef symbol = text.split('=').first.trim();
  if (!names.insert(symbol).second)
    return rejectValue(option, text, ("a single value of " + symbol).str());
  value = text.str();
  return false;
}

bool BindingFlags::given() const {
  return preset.getNumOccurrences() + set.getNumOccurrences() + batch.getNumOccurrences() +
             seq.getNumOccurrences() + mesh.getNumOccurrences() + routing.getNumOccurrences() >
         0;
}

bool readAverage(StringRef text, UpdateOptions &update) {
  UpdateOptions read = update;
  read.emaDecay = 0;
  read.swaFrom = 0;
  constexpr int64_t most = int64_t{1} << 24; // counts are exact in f32
  if (text.consume_front("ema,decay=")) {
    if (text.getAsDouble(read.emaDecay) || !(read.emaDecay > 0 && read.emaDecay < 1))
      return false;
  } else if (!text.consume_front("swa,from=") || text.getAsInteger(10, read.swaFrom) ||
             read.swaFrom < 1 || read.swaFrom > most) {
    return false;
  }
  update = read;
  return true;
}

bool ModelOptions::AverageParser::parse(cl::Option &option, StringRef, StringRef text,
                                        std::string &value) {
  if (UpdateOptions update; !readAverage(text, update))
    return rejectValue(option, text,
                       "ema,decay=D with D between 0 and 1, or swa,from=N with N from 1");
  value = text.str();
  return false;
}

ModelOptions::ModelOptions(ProgramOptions &program, StringRef modeDefault, Calls calls)
    : BindingFlags(program.binding),
      file(cl::Positional, cl::desc("MODEL.mlir"), cl::cat(category)),
      tuning(program.tuning, category),
      mode("mode", cl::cat(category), cl::location(program.mode),
           cl::values(clEnumValN(Mode::Forward, "forward", "the results of the entry"),
                      clEnumValN(Mode::Grad, "grad", "the loss and all gradients"),
                      clEnumValN(Mode::Train, "train", "updates of all parameters"))),
      accum("accum", cl::value_desc("N"), cl::cat(category), cl::location(program.accumulation),
            cl::desc("micro-batches per update in --mode=train (default: 1)")),
      accumExchange(
          "accum-exchange", cl::cat(category), cl::location(program.update.exchange),
          cl::desc("--mesh and --accum: when ranks exchange gradients (default: each)"),
          cl::values(clEnumValN(AccumExchange::Each, "each",
                                "in every micro-batch, into what each rank has of their sum"),
                     clEnumValN(AccumExchange::Last, "last",
                                "once, before the update: every rank adds up whole f32 gradients "
                                "of its own rows; less traffic, more memory, other bits than "
                                "accumulation on one rank"))),
      average("average", cl::value_desc("ema,decay=D|swa,from=N"), cl::cat(category),
              cl::callback([&program](const std::string &text) {
                readAverage(text, program.update); // it has been parsed
              }),
              cl::desc("keep, beside every parameter that --mode=train trains, an average of the "
                       "values that updates gave it: ema, which counts the newest by 1 - D (all "
                       "alike while they are fewer than 1 / (1 - D)); swa, the mean of all from "
                       "update N on (default: none)")),
      precision(
          "precision", cl::value_desc("fp32|tf32|bf16|f16|pure_bf16|fp8"), cl::cat(category),
          cl::location(program.precision),
          cl::desc(
              "what numbers are held in: f32; f32 with matmuls in tf32; matmuls and attention of "
              "bf16 or f16 numbers, the rest f32; parameters and optimizer state in bf16 too; "
              "bf16, "
              "and linear layers on numbers of 8 bits (default: fp32)")),
      layerPrecision(
          "layer-precision", cl::value_desc("PATTERN:FORMAT"), cl::cat(category),
          cl::location(program.layerPrecision), cl::CommaSeparated,
          cl::desc("layers that multiply in more bits than --precision says, by the names of their "
                   "parameters, in fp32 or tf32: lm_head:fp32, layers.*.router:tf32; of those that "
                   "name the same parameter the first holds; repeatable")),
      logits("logits", cl::cat(category), cl::location(program.logits),
             cl::desc("what losses hold logits in that nothing else reads; maxima, sums and losses "
                      "are f32 (default: auto)"),
             cl::values(clEnumValN(LogitsFormat::Auto, "auto",
                                   "bf16 with --precision=bf16 and pure_bf16, else f32"),
                        clEnumValN(LogitsFormat::F32, "f32", "f32"),
                        clEnumValN(LogitsFormat::BF16, "bf16",
                                   "what the matmul makes in f32, rounded once"))),
      gradients("gradients", cl::cat(category), cl::location(program.gradients),
                cl::desc("what gradients of parameters are stored in that matmuls make; norms, "
                         "updates and sums of them are f32 (default: f32)"),
                cl::values(clEnumValN(GradientFormat::F32, "f32", "f32"),
                           clEnumValN(GradientFormat::BF16, "bf16",
                                      "what the matmul makes in f32, rounded once"))),
      fp8Format("fp8-format", cl::cat(category), cl::location(program.quantization.format),
                cl::desc("--precision=fp8: the formats of operands (default: hybrid)"),
                cl::values(clEnumValN(QuantizedFormat::Hybrid, "hybrid",
                                      "e4m3 for activations and weights, e5m2 for gradients"),
                           clEnumValN(QuantizedFormat::E4M3, "e4m3", "e4m3 for all"))),
      fp8Scaling("fp8-scaling", cl::cat(category), cl::location(program.quantization.scaling),
                 cl::desc("--precision=fp8: what has a scale of its own (default: tensor)"),
                 cl::values(clEnumValN(QuantizedScaling::Tensor, "tensor", "each operand"),
                            clEnumValN(QuantizedScaling::Row, "row",
                                       "each row of an operand, as it is multiplied"),
                            clEnumValN(QuantizedScaling::Block128, "block128",
                                       "each 128 numbers of a row, and of a weight each block of "
                                       "128 by 128"))),
      fp8Amax("fp8-amax", cl::cat(category), cl::location(program.quantization.amax),
              cl::desc("--precision=fp8: the largest magnitude that a scale is made of (default: "
                       "current)"),
              cl::values(clEnumValN(QuantizedAmax::Current, "current", "that of the tensor"),
                         clEnumValN(QuantizedAmax::Delayed, "delayed",
                                    "in --mode=train the largest of the steps before"))),
      fp8AmaxHistory("fp8-amax-history", cl::value_desc("N"), cl::cat(category),
                     cl::location(program.quantization.amaxHistory),
                     cl::desc("--fp8-amax=delayed: steps that are remembered (default: 16)")),
      fp8Keep(
          "fp8-keep", cl::value_desc("PATTERN"), cl::cat(category),
          cl::location(program.quantization.keep),
          cl::desc("--precision=fp8: parameters whose linear layers stay in bf16, by their names: "
                   "layers.*.wo; repeatable; none: no others than small ones; default: those of "
                   "the first and last layer, of routers, and outside of layers; auto, for hydrac: "
                   "default, and what is predicted to be faster in bf16, casts included (default: "
                   "default)")),
      fp8Least("fp8-least", cl::value_desc("N"), cl::cat(category),
               cl::location(program.quantization.least),
               cl::desc("--precision=fp8: linear layers of fewer inputs or outputs stay in bf16 "
                        "(default: 64)")),
      dumpPasses("dump-passes", cl::value_desc("DIR"), cl::cat(category),
                 cl::desc("write the program after each pass to DIR/NN-pass.mlir (default: off)")),
      modeHelp(("what the program computes (default: " + modeDefault + ")").str()) {
  mode.setDescription(modeHelp);
  if (calls == Calls::Many)
    mode.getParser().addLiteralOption("generate", Mode::Generate,
                                      "scores of next tokens, by what is kept of those before");
}

void ModelOptions::checkQuantization() const {
  if (!precisionPolicy(precision.getValue())->quantizes &&
      fp8Format.getNumOccurrences() + fp8Scaling.getNumOccurrences() + fp8Amax.getNumOccurrences() +
              fp8AmaxHistory.getNumOccurrences() + fp8Keep.getNumOccurrences() +
              fp8Least.getNumOccurrences() >
          0)
    support::fail("--fp8-format, --fp8-scaling, --fp8-amax, --fp8-amax-history, --fp8-keep and "
                  "--fp8-least are for --precision=fp8");
  const bool isDelayed = fp8Amax.getValue() == QuantizedAmax::Delayed;
  if (isDelayed && fp8Scaling.getValue() != QuantizedScaling::Tensor)
    support::fail("--fp8-amax=delayed remembers one number of a tensor; expected "
                  "--fp8-scaling=tensor with it");
  if (!isDelayed && fp8AmaxHistory.getNumOccurrences() > 0)
    support::fail("--fp8-amax-history is for --fp8-amax=delayed");
}

void ModelOptions::checkLogits() const {
  if (logits.getValue() == LogitsFormat::BF16 &&
      precisionPolicy(precision.getValue())->format != support::DType::BF16)
    support::fail("--logits=bf16 needs --precision=bf16, pure_bf16 or fp8");
}

void ModelOptions::checkGradients() const {
  if (gradients.getValue() != GradientFormat::BF16)
    return;
  if (!hasBackward(mode.getValue()))
    support::fail("--gradients=bf16 is for --mode=train and --mode=grad, which have gradients");
  const PrecisionPolicy &policy = *precisionPolicy(precision.getValue());
  if (!policy.narrowsGradients())
    support::fail("--gradients=bf16 needs --precision=bf16 or fp8{}",
                  policy.everywhere ? "; with pure_bf16 gradients have 16 bits already" : "");
}

void ModelOptions::checkExchange(bool mayCutBatch) const {
  if (accumExchange.getValue() != AccumExchange::Last)
    return;
  constexpr StringLiteral flag = "--accum-exchange=last";
  if (mode.getNumOccurrences() > 0 && mode.getValue() != Mode::Train)
    support::fail("{} is for --mode=train, which has updates", flag.str());
  if (!hasMesh())
    support::fail("{}: needs ranks; expected --mesh=NAME:SIZE", flag.str());
  if (accum.getValue() == 1 && !mayCutBatch)
    support::fail("{}: needs micro-batches; expected --accum=N with N above 1", flag.str());
}

bool ModelOptions::PrecisionParser::parse(cl::Option &option, StringRef, StringRef text,
                                          std::string &value) {
  if (!precisionPolicy(text))
    return rejectValue(option, text, precisionPolicyNames());
  value = text.str();
  return false;
}

} // namespace hydra
