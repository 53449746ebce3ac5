// The flags of hydrac, bound to the options of the compilation.
#pragma once

#include "compiler/PlanPipeline.h"
#include "compiler/codegen/files/CodeFolder.h"
#include "compiler/driver/ModelOptions.h"
#include "runtime/plan/Schedule.h"
#include "runtime/plan/plan_generated.h"

#include <map>

namespace hydra {

namespace cl = llvm::cl;

/// Of a sequence: no process can address more elements, and sums of two such numbers are far from
/// the end of their type.
inline constexpr int64_t kMostTokens = int64_t{1} << 45;

/// Lives in main from before parseCommandLine to the end.
struct HydracOptions {
  CompileOptions compile;
  ModelOptions model{compile, "train", ModelOptions::Calls::Many};
  cl::OptionCategory &category = model.category;

  cl::opt<std::string> output{"o", cl::value_desc("FILE"), cl::cat(category),
                              cl::desc("where the plan goes (default: plan.fb; with a report: "
                                       "no plan)"),
                              cl::init("plan.fb")};
  cl::opt<std::string> target{
      "target", cl::value_desc("NAME|FILE.json"), cl::cat(category),
      cl::desc(
          "what the plan is for: cpu (this machine), x86-64-v3, x86-64-v4, h200, h100, b200, a100, "
          "rtx5090, null (reports alone), or a description (default: cpu)"),
      cl::init("cpu")};
  BoundChoice<CompilePhase> until{
      "compile-to", cl::cat(category), cl::location(compile.until),
      cl::desc("stop after a phase and write the program as text (default: compile to the end)"),
      cl::values(
          clEnumValN(CompilePhase::Bind, "bind", "static types, straight-line layers"),
          clEnumValN(CompilePhase::Differentiate, "differentiate", "backward pass and updates"),
          clEnumValN(CompilePhase::Group, "group", "groups of row-wise operations"),
          clEnumValN(CompilePhase::Place, "place", "views, copies and order"),
          clEnumValN(CompilePhase::Plan, "plan", "buffers, steps and offsets"))};
  cl::list<std::string> disabled{"disable-pass", cl::value_desc("NAME,..."), cl::cat(category),
                                 cl::CommaSeparated,
                                 cl::desc("leave passes out (default: none); see --list-passes")};
  SwitchOption listPasses{"list-passes", cl::cat(category),
                          cl::desc("print all passes in order and end")};
  BoundInteger<0, 2> level{"O",
                           cl::Prefix,
                           cl::value_desc("0|1|2"),
                           cl::cat(category),
                           cl::location(compile.level),
                           cl::desc("0: only what is needed, 1: simplification and views, 2: "
                                    "everything (default: 2)")};
  SwitchOption noClip{"no-clip", cl::cat(category),
                      cl::desc("leave the global norm of gradients out of the program; "
                               "--clip is then impossible, here and in hydra-run")};
  BoundSwitch reducedReduction{
      "bf16-reduced-precision-reduction", cl::cat(category), cl::location(compile.reducedReduction),
      cl::desc("matmuls of bf16 numbers may add partial sums in bf16 where the library then is "
               "faster (default: sums in f32)")};
  BoundChoice<Sharding> sharding{
      "shard", cl::cat(category), cl::location(compile.sharding),
      cl::desc("what the ranks of the innermost axis of --mesh share out beside the batch "
               "(default: ddp)"),
      cl::values(
          clEnumValN(Sharding::Ddp, "ddp", "nothing: each has all parameters"),
          clEnumValN(Sharding::Zero1, "zero1",
                     "moments, f32 parameters and their update; all have what they compute "
                     "with"),
          clEnumValN(Sharding::Fsdp, "fsdp", "parameters too: gathered where they are needed"))};
  BoundChoice<Resharding> resharding{
      "reshard", cl::cat(category), cl::location(compile.resharding),
      cl::desc("--shard=fsdp: whether the backward pass gathers again (default: auto)"),
      cl::values(clEnumValN(Resharding::Auto, "auto", "but for what was needed just before"),
                 clEnumValN(Resharding::Always, "always", "all but the last"),
                 clEnumValN(Resharding::Never, "never", "what the forward pass gathered is kept"))};
  BoundChoice<WireFormat> reduce{
      "reduce", cl::cat(category), cl::location(compile.wire),
      cl::desc("--mesh: what ranks send of gradients, which are summed up in f32 (default: f32)"),
      cl::values(clEnumValN(WireFormat::F32, "f32", "all of it"),
                 clEnumValN(WireFormat::BF16, "bf16", "rounded: half the bytes"))};
  BoundChoice<TwoLevel> twoLevel{
      "two-level", cl::cat(category), cl::location(compile.twoLevel),
      cl::desc("--mesh: whether the ranks of a node exchange among themselves first, where an axis "
               "crosses nodes: it becomes two then (default: auto)"),
      cl::values(clEnumValN(TwoLevel::Auto, "auto",
                            "where what crosses nodes is predicted to be exchanged sooner"),
                 clEnumValN(TwoLevel::Always, "always", "yes"),
                 clEnumValN(TwoLevel::Never, "never", "no: one chain of adds over all ranks"))};
  BoundInteger<1, 65536> nodeRanks{
      "node-ranks", cl::value_desc("N"), cl::cat(category), cl::location(compile.nodeRanks),
      cl::desc("--mesh: ranks that share a node, which then follow each other (default: as the "
               "target has it)")};
  BoundInteger<0> exchangeBytes{
      "exchange-bytes", cl::value_desc("BYTES"), cl::cat(category),
      cl::location(compile.exchangeBytes),
      cl::desc("--mesh: what a rank receives at most by one exchange of gradients: larger ones are "
               "made in slices; 0: no bound (default: 268435456, on GPUs only where the plan else "
               "takes more than the memory)")};
  BoundInteger<0> wholeBelow{"whole-below", cl::value_desc("N"), cl::cat(category),
                             cl::location(compile.wholeBelow),
                             cl::desc("--shard: parameters of fewer elements are not cut "
                                      "(default: 65536)")};
  BoundChoice<AttentionForm> attention{
      "attention", cl::cat(category), cl::location(compile.attention),
      cl::desc("how attention is computed (default: flash)"),
      cl::values(
          clEnumValN(AttentionForm::Flash, "flash", "without ever holding the scores"),
          clEnumValN(AttentionForm::Naive, "naive", "by matmuls and a softmax over all scores"))};
  BoundInteger<0> sideMultiprocessors{
      "side-multiprocessors", cl::value_desc("N"), cl::cat(category),
      cl::location(compile.sideMultiprocessors),
      cl::desc(
          "for a GPU: multiprocessors that gradients of parameters, which are computed beside the "
          "backward pass, may count on; 0: all (default: 0)")};
  struct KernelTilesParser : cl::parser<std::string> {
    using parser::parser;
    bool parse(cl::Option &option, llvm::StringRef name, llvm::StringRef text, std::string &value);
  };
  cl::list<std::string, bool, KernelTilesParser> kernelTiles{
      "kernel-tiles", cl::value_desc("KERNEL:SIZE=N[,SIZE=N]..."), cl::cat(category),
      cl::desc("for a GPU: how a kernel cuts its work, instead of what it chooses by itself: "
               "attention_forward, attention_query_gradients and attention_key_gradients have "
               "rows, tile and stages (of heads of one width: width=N), few_rows_matmul depth and "
               "stages, or warps, row_kernels threads and long_threads; repeatable (default: what "
               "the target says)")};
  BoundInteger<0> ceChunk{"ce-chunk", cl::value_desc("ROWS"), cl::cat(category),
                          cl::location(compile.ceChunk),
                          cl::desc("rows whose logits exist at a time; 0: as many as 64 MiB hold, "
                                   "on a GPU 1 GiB (default: 0)")};
  cl::opt<std::string> recompute{
      "recompute", cl::value_desc("auto|none|light|rowwise|[rowwise,]every=N|[rowwise,]layers=K"),
      cl::cat(category), cl::init("light"),
      cl::desc("what the backward pass recomputes instead of keeping it: nothing; rotary "
               "positions; also norms and gated activations, for some more traffic; all of each "
               "N-th layer, or of K layers, for their forward pass once more, in the others rotary "
               "positions or as rowwise does; auto: what makes the fastest plan that fits "
               "--memory-budget, with all flags that are left out (default: light)")};
  BoundChoice<RoundedCopies> roundedCopies{
      "rounded-copies", cl::cat(category), cl::location(compile.roundedCopies),
      cl::desc("--precision=bf16 and f16: where the copies of parameters that matmuls read live "
               "(default: held, with --recompute=rowwise step)"),
      cl::values(
          clEnumValN(RoundedCopies::Held, "held", "from step to step, beside the parameters"),
          clEnumValN(RoundedCopies::Step, "step",
                     "from the forward pass of a step to its backward pass"),
          clEnumValN(RoundedCopies::Layer, "layer",
                     "where a layer reads them: rounded in both passes"))};
  cl::opt<bool, true> splitMaster{
      "split-master", cl::cat(category), cl::location(compile.splitMaster),
      cl::desc("--mode=train with --precision=bf16 or fp8: parameters are held as the bf16 that "
               "matmuls read and 16 bits of rest, which together are all of their f32: 4 bytes "
               "instead of 6")};
  BoundChoice<Offload> offload{
      "offload", cl::cat(category), cl::location(compile.offload),
      cl::desc("--mode=train: what lives in the host's memory and visits the device; with "
               "--recompute=auto only where nothing else fits (default: none)"),
      cl::values(clEnumValN(Offload::None, "none", "nothing"),
                 clEnumValN(Offload::Optimizer, "optimizer", "moments of the optimizer"))};
  BoundInteger<0> offloadLeast{"offload-least", cl::value_desc("BYTES"), cl::cat(category),
                               cl::location(compile.offloadLeast),
                               cl::desc("--offload=optimizer: smaller moments stay on the device "
                                        "(default: 16384)")};
  SwitchOption splitBatch{
      "split-batch", cl::cat(category),
      cl::desc("--recompute=auto may also cut --batch into micro-batches (--accum), which "
               "sums gradients in another order, and means over a batch by parts")};
  BoundInteger<1> scanCheckpoint{
      "scan-checkpoint", cl::value_desc("K"), cl::cat(category),
      cl::location(compile.scanCheckpoint),
      cl::desc(
          "keep what a scan carries for the backward pass only every K chunks, and carry it again "
          "between (default: 1, all of it)")};
  cl::list<std::string> programs{
      "program", cl::value_desc("NAME:ENTRY[,DIM=VALUE]..."), cl::cat(category),
      cl::desc("a program of the plan and the entry it runs, with entry dimensions of its own; "
               "repeatable (default: what --mode needs; with train also logits:logits,B=1)")};
  BoundInteger<2, kMostTokens> context{
      "context", cl::value_desc("N"), cl::cat(category), cl::location(compile.context),
      cl::desc("--mode=generate: the most tokens of a sequence, prompt and text; "
               "required there")};
  cl::list<int64_t, bool, IntegerParser<1, kMostTokens>> prefill{
      "prefill", cl::value_desc("N,..."), cl::cat(category), cl::CommaSeparated,
      cl::desc(
          "--mode=generate: how many tokens of a prompt a call reads; what is left goes by the "
          "smaller numbers, and in the end token by token (default: 128,16)")};
  BoundChoice<WeightFormat> weightFormat{
      "weight-format", cl::cat(category), cl::location(compile.weightFormat),
      cl::desc("--mode=generate: what weights of linear layers are held in (default: rounded)"),
      cl::values(clEnumValN(WeightFormat::Rounded, "rounded", "what --precision multiplies in"),
                 clEnumValN(WeightFormat::Int8, "int8",
                            "integers of 8 bits, with a scale for each output"),
                 clEnumValN(WeightFormat::Int4, "int4",
                            "integers of 4 bits, with a scale for each 32 inputs of an output"))};
  cl::list<std::string, std::vector<std::string>> weightKeep{
      "weight-keep", cl::value_desc("PATTERN"), cl::cat(category), cl::location(compile.weightKeep),
      cl::desc("--weight-format=int8 or int4: parameters that are held as --precision says, by "
               "their names: layers.*.wo; repeatable (default: none)")};
  cl::list<std::string> phases{
      "phase", cl::value_desc("STEPS:SETTING[,SETTING]..."), cl::cat(category),
      cl::desc(
          "so many first steps of training with other choices and flags of the model, as a program "
          "of its own; repeatable, one phase after the other (default: none)")};
  cl::opt<std::string> safe{
      "safe", cl::ValueOptional, cl::value_desc("SETTING[,SETTING]..."), cl::cat(category),
      cl::desc(
          "--mode=train: all programs a second time in a safe form, which hydra-run compares them "
          "with and falls back to; settings, such as attention=flash, O=2, precision=bf16 or a "
          "choice of the model, say what differs less, or more; off: none (default: off, but of "
          "--precision=fp8 the same in bf16; without settings O=1,attention=naive,routing=masked,"
          "reduce=f32, and precision=fp32 where parameters allow it)")};
  cl::opt<std::string> pretests{
      "pretests", cl::value_desc("all|NAME,..."), cl::cat(category),
      cl::desc(
          "with a safe form: all programs once more without each of these optimizations alone, "
          "which hydra-run compares as well, so that one that fails is named and given up alone; "
          "names as hydra-inspect lists them (default: none)")};
  cl::list<std::string> scalars{
      "scalar", cl::value_desc("NAME=VALUE[,after=STEPS][,over=STEPS][,levels=N]"),
      cl::cat(category),
      cl::desc(
          "a number that the model takes every step: 0 for so many steps, then VALUE, over so many "
          "steps by so many levels; repeatable (default: what the model says)")};
  ChoiceOption<planfile::ScheduleKind> schedule{
      "schedule", cl::cat(category), cl::init(planfile::ScheduleKind::constant),
      cl::desc("how the learning rate goes in --mode=train (default: constant)"),
      cl::values(clEnumValN(planfile::ScheduleKind::constant, "constant", "the same at every step"),
                 clEnumValN(planfile::ScheduleKind::linear, "linear", "constant after a warm-up"),
                 clEnumValN(planfile::ScheduleKind::cosine, "cosine", "falls to --min-lr"),
                 clEnumValN(planfile::ScheduleKind::wsd, "wsd",
                            "stays for --stable steps, then falls to --min-lr"))};
  MagnitudeOption lr{"lr", cl::value_desc("RATE"), cl::cat(category), cl::init(1e-3),
                     cl::desc("largest learning rate (default: 0.001)")};
  MagnitudeOption minLr{"min-lr", cl::value_desc("RATE"), cl::cat(category), cl::init(0.0),
                        cl::desc("learning rate at the end of cosine and wsd (default: 0)")};
  IntegerOption<0, kMostSteps> warmup{"warmup", cl::value_desc("N"), cl::cat(category), cl::init(0),
                                      cl::desc("steps of linear warm-up (default: 0)")};
  IntegerOption<0, kMostSteps> stable{
      "stable", cl::value_desc("N"), cl::cat(category), cl::init(-1),
      cl::desc("wsd: steps at the largest rate (default: 85% of those after "
               "the warm-up)")};
  IntegerOption<1, kMostSteps> scheduleSteps{
      "schedule-steps", cl::value_desc("N"), cl::cat(category), cl::init(0),
      cl::desc("last step of cosine and wsd (default: that of the "
               "run)")};
  MagnitudeOption clip{"clip", cl::value_desc("NORM"), cl::cat(category), cl::init(0.0),
                       cl::desc("bound of the global norm of gradients; 0: none (default: 0)")};
  MagnitudeOption normSpike{
      "norm-spike", cl::value_desc("NORM"), cl::cat(category), cl::init(0.0),
      cl::desc("steps whose gradients have a larger norm have half their learning rate; 0: none, "
               "but hydra-run may set a bound (default: the program knows no bound)")};
  SwitchOption batchFilter{"batch-filter", cl::cat(category),
                           cl::desc("let hydra-run --batch-filter leave out batches whose loss is "
                                    "far above those before")};
  SwitchOption groupNorms{"group-norms", cl::cat(category),
                          cl::desc("tell the norm of the gradients of every optimizer group, "
                                   "beside that of all")};
  SwitchOption gradHistograms{"grad-histograms", cl::cat(category),
                              cl::desc("tell how many gradients of every optimizer group have "
                                       "which magnitude")};
  cl::opt<std::string> memoryReport{
      "memory-report", cl::ValueOptional, cl::value_desc("json"), cl::cat(category),
      cl::desc("print the peak of memory, what for, and the largest buffers, as text or JSON")};
  cl::opt<std::string> memoryTimeline{
      "memory-timeline", cl::value_desc("FILE.csv|FILE.json"), cl::cat(category),
      cl::desc("write the live bytes of every block of every program (default: off)")};
  cl::opt<std::string> costReport{
      "cost-report", cl::ValueOptional, cl::value_desc("markdown|json"), cl::cat(category),
      cl::desc("print FLOPs, bytes and roofline time by phase, class and layer, and what ranks "
               "exchange, as text, Markdown or JSON")};
  cl::opt<std::string> kernelReport{
      "kernel-report", cl::ValueOptional, cl::value_desc("markdown|json"), cl::cat(category),
      cl::desc("for a GPU: print registers, spills, shared memory, threads and launches of every "
               "kernel, and what ptxas warns of, as text, Markdown or JSON")};
  cl::opt<std::string> memoryBudget{
      "memory-budget", cl::value_desc("SIZE"), cl::cat(category),
      cl::desc(
          "memory that the plan may take, such as 32GiB: gathers of parameters begin later where "
          "else it would not fit, and --recompute=auto chooses (default: that of the target)")};
  cl::opt<std::string> budgetReport{
      "budget-report", cl::ValueOptional, cl::value_desc("markdown|json"), cl::cat(category),
      cl::desc(
          "--recompute=auto: print what is chosen, what each choice costs and saves, and the plans "
          "compared, as text, Markdown or JSON")};
  cl::opt<std::string> budgetPicture{
      "budget-svg", cl::value_desc("FILE.svg"), cl::cat(category),
      cl::desc("--recompute=auto: draw time over memory of the plans compared (default: off)")};
  SwitchOption allowOversize{"allow-oversize", cl::cat(category),
                             cl::desc("write a plan that does not fit the memory of its target")};
  SwitchOption explain{"explain", cl::cat(category),
                       cl::desc("print what steps, memory and predicted time would be without "
                                "each pass, and end")};
  cl::opt<std::string> kernelCache{
      "kernel-cache", cl::value_desc("DIR"), cl::cat(category),
      cl::desc("where compiled kernels are kept; empty: nowhere (default: hydra in the user's "
               "folder of caches)")};
  cl::opt<std::string> kernelCacheLimit{
      "kernel-cache-limit", cl::value_desc("SIZE"), cl::cat(category), cl::init("2GiB"),
      cl::desc("how much --kernel-cache holds at most; the least recently used kernels go "
               "(default: 2GiB)")};
  SwitchOption timing{"timing", cl::cat(category), cl::desc("print where compile time went")};

  /// Throws Error for flags that mean nothing, or not together, before any work.
  void check() const;
  /// What the flags ask for, with the programs that a model then has. Throws Error for what this
  /// one cannot be.
  CompileOptions compileOptions(ModelOp source) const;

  /// What --scalar says. Throws Error for what is no schedule.
  std::vector<runtime::NamedSchedule> givenScalars() const;
  /// Schedules of the scalars that the plan has.
  std::map<std::string, planfile::ScheduleT> schedules() const;
  /// Throws Error for a number given to a plan that takes none of that name.
  void checkScalars(const planfile::PlanT &plan) const;

  /// Whether --recompute=auto is given.
  bool chooses() const;
  /// Whether the plan has programs in a safe form too.
  bool hasSafeForm() const;
  /// Whether it does without --safe: numbers of 8 bits are tried before they are trusted.
  bool impliesSafeForm() const;
  /// Bytes that the plan may take. Throws Error for a size that is none.
  uint64_t memoryBudgetBytes() const;
  /// Where compiled kernels are kept.
  CodeFolder codeFolder() const;
  /// Whether what ranks add up is exchanged in slices where memory does not allow more.
  bool choosesSlices() const;
  /// Bytes that a rank receives at most at a time then.
  uint64_t sliceBytes() const { return static_cast<uint64_t>(compile.exchangeBytes); }
  /// Whether reports of a plan are asked for.
  bool reports() const;
};

/// Throws Error, naming the flag, for a name that is no pass, or one that cannot be left out.
void checkCanBeLeftOut(llvm::StringRef flag, const std::string &pass);

/// Throws Error for a precision in which the target multiplies nothing.
void checkRate(const CompileOptions &compile);

/// Whether a flag is on the command line, with a value or without.
inline bool isGiven(const cl::Option &flag) { return flag.getNumOccurrences() > 0; }

} // namespace hydra
