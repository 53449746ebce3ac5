// The plan dialect: a scheduled program over buffers, just above the bytes of a plan file.
#ifndef HYDRA_PLAN_OPS_TD
#define HYDRA_PLAN_OPS_TD

include "dialects/hydra/HydraBase.td"
include "dialects/plan/PlanEnums.td"
include "dialects/plan/PlanInterfaces.td"

def Plan_Dialect : Dialect {
  let name = "plan";
  let cppNamespace = "::hydra::plan";
  let summary = "Buffers, launches, library calls, loops and switches, with streams and events";
  let description = [{
    ```
     hydra ──hydra-to-plan──► plan (buffers) ──hydra-plan-memory──► plan (offsets) ──► plan.fb
     values                   who reads and writes what,            one arena
                              in which order
    ```

    A buffer is a memref value: `plan.buffer` owns bytes of a segment, `plan.view` names some of
    them under other strides. Steps read and write buffers. The blocks of one list (a program, a
    loop body, a case) are ordered by their streams and events alone; their order in the text is one
    valid serial order. runtime/plan/plan.fbs is the file form of the same things.
  }];
  let dependentDialects = ["::hydra::HydraDialect"];
  let useDefaultAttributePrinterParser = 1;
}

def Plan_SegmentAttr : EnumAttr<Plan_Dialect, Plan_Segment, "segment">;
def Plan_InputKindAttr : EnumAttr<Plan_Dialect, Plan_InputKind, "input_kind">;
def Plan_ScalarSourceAttr : EnumAttr<Plan_Dialect, Plan_ScalarSource, "scalar_source">;
def Plan_CategoryAttr : EnumAttr<Plan_Dialect, Hydra_Category, "category"> {
  let cppNamespace = "::hydra::plan";
  let constBuilderCall = "::hydra::plan::CategoryAttr::get($_builder.getContext(), $0)";
}

def Plan_SubstituteAttr : AttrDef<Plan_Dialect, "Substitute"> {
  let mnemonic = "substitute";
  let summary = "a library's function that can run instead of a launch";
  let description = [{
    `nothing`: what the launch does is done by the function that replaces an earlier one.
  }];
  let parameters = (ins EnumParameter<Plan_LibraryFunction>:$function,
                        OptionalParameter<"::mlir::FloatAttr">:$scale,
                        DefaultValuedParameter<"bool", "false">:$causal);
  let assemblyFormat = "`<` $function (`,` struct($scale, $causal)^)? `>`";
}

class Plan_Op<string mnemonic, list<Trait> traits = []> : Op<Plan_Dialect, mnemonic, traits>;

def Plan_Buffer : MemRefRankOf<[AnyType], [0, 1, 2, 3, 4, 5, 6, 7, 8]>;

def PlanModuleOp : Plan_Op<"module", [IsolatedFromAbove, Symbol, SymbolTable, NoTerminator,
                                      SingleBlock, NoRegionArguments]> {
  let summary = "everything a plan file holds";
  let description = [{
    `bound` is that of the model (symbols, preset). The segment sizes are known once
    `hydra-plan-memory` has run.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, OptionalAttr<DictionaryAttr>:$bound,
                       OptionalAttr<I64Attr>:$persistent_bytes,
                       OptionalAttr<I64Attr>:$transient_bytes,
                       OptionalAttr<I64Attr>:$host_bytes);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $sym_name (`bound` $bound^)? (`persistent` $persistent_bytes^)? (`transient` $transient_bytes^)?
    (`host` $host_bytes^)? $body attr-dict
  }];
}

def BufferOp : Plan_Op<"buffer"> {
  let summary = "bytes of a segment";
  let description = [{
    `%x = plan.buffer transient act.norm at 4096 : memref<4x128x768xf32>`: dense. In a module:
    persistent, or `host`, where only `plan.transfer` touches it; in a program, loop or case: transient,
    alive from its first write to its last read. The offset (bytes) is set by `hydra-plan-memory`.
  }];
  let arguments = (ins Plan_SegmentAttr:$segment, Plan_CategoryAttr:$category,
                       OptionalAttr<I64Attr>:$offset);
  let results = (outs Plan_Buffer:$buffer);
  let assemblyFormat = "$segment $category (`at` $offset^)? attr-dict `:` type($buffer)";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    bool isTransient() { return getSegment() == Segment::transient; }
    bool isOnHost() { return getSegment() == Segment::host; }
  }];
}

def ViewOp : Plan_Op<"view", [Pure]> {
  let summary = "other strides over the bytes of a buffer";
  let description = [{
    `%v = plan.view %x plus 64 : memref<…> to memref<…, strided<[…]>>`: the first element lies 64
    elements after that of `%x`. With `as act.softmax` it is a value of its own, which took the bytes of
    an earlier one; reports tell them apart.
  }];
  let arguments = (ins Plan_Buffer:$source, I64Attr:$plus,
                       OptionalAttr<Plan_CategoryAttr>:$category);
  let results = (outs Plan_Buffer:$view);
  let assemblyFormat = [{
    $source `plus` $plus (`as` $category^)? attr-dict `:` type($source) `to` type($view)
  }];
  let builders = [OpBuilder<(ins "::mlir::Type":$view, "::mlir::Value":$source,
                                 "::mlir::IntegerAttr":$plus),
                            "build($_builder, $_state, view, source, plus, CategoryAttr());">];
  let hasVerifier = 1;
}

def Plan_MemberAttr : AttrDef<Plan_Dialect, "Member"> {
  let mnemonic = "member";
  let summary = "where a variable lies in a unit, which others share";
  let description = [{
    `<[64, 64] at 4096 over "data">`: its shape, how many elements of the unit come before its first, and
    the axis of the mesh along which the unit is cut into equal pieces, or several, `data*data.node`
    (`MeshAttr`). Without an axis every rank has the whole unit.
  }];
  let parameters = (ins ArrayRefParameter<"int64_t">:$shape, "int64_t":$offset,
                        OptionalParameter<"::mlir::StringAttr">:$axis);
  let assemblyFormat = "`<` custom<Dimensions>($shape) `at` $offset (`over` $axis^)? `>`";
}

def VariableOp : Plan_Op<"variable", [HasParent<"PlanModuleOp">]> {
  let summary = "a parameter or state: named, initialised, saved in checkpoints";
  let description = [{
    `plan.variable moment "wq.m" = %m init #hydra.init<zeros> of "wq" : memref<…>`: its role, and the
    variable that it belongs to. With `member`, the buffer is a unit, or the piece of it that each rank has
    (`Member` in plan.fbs), and others lie in it too:
    `plan.variable parameter "wq" = %u member <[64, 64] at 4096 over "data"> init … : memref<8x1024xf32>`.
    A parameter that is not trained is `frozen`; `adapter` as for `hydra.param`. One that is `packed` has two numbers of its
    last dimension in each byte of the buffer, of i8 (`hydra.param` of i4).
  }];
  let arguments = (ins StrAttr:$name, Hydra_VariableRole:$role, Plan_Buffer:$buffer,
                       Hydra_InitAttr:$init, OptionalAttr<StrAttr>:$group,
                       OptionalAttr<StrAttr>:$owner, OptionalAttr<Plan_MemberAttr>:$member,
                       UnitAttr:$frozen, UnitAttr:$packed, OptionalAttr<Hydra_AdapterAttr>:$adapter);
  let assemblyFormat = [{
    $role $name `=` $buffer (`member` $member^)? `init` $init (`group` $group^)? (`of` $owner^)?
    (`frozen` $frozen^)? (`packed` $packed^)? (`adapter` $adapter^)? attr-dict `:` type($buffer)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// Numbers of the variable, whatever lies beside it.
    int64_t getNumElements();
  }];
}

def ScalarOp : Plan_Op<"scalar", [HasParent<"PlanModuleOp">]> {
  let summary = "a rank-0 tensor that the executor writes before each step";
  let description = [{
    `source` is `constant` (with `value`), `step` (counting from 1), `draw_low` or `draw_high` (the words of a key,
    drawn for each step), or `micro_batch` (counting from 0 in each step, and written before each micro-batch).
  }];
  let arguments = (ins StrAttr:$name, Plan_ScalarSourceAttr:$source, F64Attr:$value, Plan_Buffer:$buffer);
  let assemblyFormat = "$name `=` $buffer $source $value attr-dict `:` type($buffer)";
}

def MeshAxisOp : Plan_Op<"mesh_axis", [HasParent<"PlanModuleOp">]> {
  let summary = "ranks that run the plan together, each with its part of the batch";
  let description = [{
    `plan.mesh_axis "data" 2 rank %r : memref<i32>`: the executor sets `%r` once to where this rank is
    along the axis. The first one of a module is the outermost; collectives number them in this order.
  }];
  let arguments = (ins StrAttr:$name, I64Attr:$size, Optional<Plan_Buffer>:$rank);
  let assemblyFormat = "$name $size (`rank` $rank^ `:` type($rank))? attr-dict";
}

def KernelOp : Plan_Op<"kernel", [HasParent<"PlanModuleOp">, Symbol, SingleBlock, NoTerminator,
                                  NoRegionArguments]> {
  let summary = "a generated kernel: its group of row-wise operations and the layouts it is for";
  let description = [{
    Holds one `hydra.fused` on `plan.outer` values. `layouts` are the memref types of the group's
    operands and results, then of the partial sums of its sums over rows. `combines N` is a kernel
    without group that adds N rows of partial sums; one of its rows is a column. Launches name it.
    `instances N`: launches may hold up to N lists of arguments, for which the kernel runs side by side.
    A kernel of a backend's own (`hydra-expand-kernels`) has an empty body, its text as `source`, and
    as `launch` the blocks along x, y and z, the threads of a block and the bytes of its shared memory.
    `counted N`: the last argument is an i32; the kernel works on N times so many of its rows, on no other.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, TypeArrayAttr:$layouts, I64Attr:$rows,
                       I64Attr:$grain, OptionalAttr<I64Attr>:$combines,
                       OptionalAttr<I64Attr>:$instances, OptionalAttr<StrAttr>:$source,
                       OptionalAttr<DenseI64ArrayAttr>:$launch, OptionalAttr<I64Attr>:$counted);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $sym_name `rows` $rows `grain` $grain (`combines` $combines^)? (`instances` $instances^)?
    (`counted` $counted^)? (`launch` $launch^)? (`source` $source^)? $layouts $body attr-dict
  }];
  let hasVerifier = 1;
}

def OuterOp : Plan_Op<"outer", [Pure, HasParent<"KernelOp">]> {
  let summary = "stands for an operand of a kernel";
  let results = (outs AnyTensor:$value);
  let assemblyFormat = "attr-dict `:` type($value)";
}

def ProgramOp : Plan_Op<"program", [HasParent<"PlanModuleOp">, Symbol, SingleBlock, NoTerminator,
                                    NoRegionArguments]> {
  let summary = "a sequence of blocks that runs as a whole";
  let description = [{
    A program of role `count` stands in front of the one of role `accumulate` whose labels it counts.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name,
                       DefaultValuedAttr<Hydra_ProgramRole, "::hydra::ProgramRole::custom">:$role,
                       DefaultValuedAttr<I64Attr, "1">:$streams,
                       OptionalAttr<I64Attr>:$live_bytes, OptionalAttr<I64Attr>:$transient_bytes);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $sym_name (`role` $role^)? (`streams` $streams^)? (`live` $live_bytes^)? (`transient` $transient_bytes^)?
    $body attr-dict
  }];
  let hasRegionVerifier = 1;
}

def InputOp : Plan_Op<"input", [HasParent<"ProgramOp">]> {
  let summary = "a buffer that is filled before the program begins";
  let description = [{
    `plan.input "tokens" = %t tokens 10000`: kinds `tokens`, `labels` (ids below the limit; labels
    may also be -100) and `values`. `batch`: the dimension along which each rank has its part.
  }];
  let arguments = (ins StrAttr:$name, Plan_Buffer:$buffer, Plan_InputKindAttr:$kind, I64Attr:$limit,
                       OptionalAttr<I64Attr>:$batch);
  let assemblyFormat = [{
    $name `=` $buffer $kind $limit (`batch` $batch^)? attr-dict `:` type($buffer)
  }];
}

def OutputOp : Plan_Op<"output", [HasParent<"ProgramOp">]> {
  let summary = "a buffer that is valid when the program has ended";
  let description = [{
    `of "wq"`: it is the gradient of that parameter. `batch`: the dimension along which each rank has its
    part; without, it is the same on every rank.
  }];
  let arguments = (ins StrAttr:$name, Plan_Buffer:$buffer, OptionalAttr<StrAttr>:$gradient_of,
                       OptionalAttr<I64Attr>:$batch);
  let assemblyFormat = [{
    $name `=` $buffer (`of` $gradient_of^)? (`batch` $batch^)? attr-dict `:` type($buffer)
  }];
}

//===-- Blocks ------------------------------------------------------------------------------===//

class Plan_BlockOp<string mnemonic, list<Trait> traits = []>
    : Plan_Op<mnemonic, traits # [BlockInterface]> {
  dag order = (ins DefaultValuedAttr<I64Attr, "0">:$stream,
                      DefaultValuedAttr<DenseI64ArrayAttr, "{}">:$waits,
                      DefaultValuedAttr<I64Attr, "-1">:$signals);
}

/// A block that works on buffers.
class Plan_StepOp<string mnemonic, list<Trait> traits = []>
    : Plan_BlockOp<mnemonic, [DeclareOpInterfaceMethods<StepInterface, ["getAccesses"]>] # traits> {
  /// For reports and the cost model.
  dag work = (ins DefaultValuedAttr<I64Attr, "0">:$flops, DefaultValuedAttr<I64Attr, "0">:$bytes,
                  DefaultValuedAttr<Hydra_OpClassAttr, "::hydra::OpClass::other">:$op_class,
                  DefaultValuedAttr<StrAttr, "\"\"">:$label);
}

def LaunchOp : Plan_StepOp<"launch",
                           [DeclareOpInterfaceMethods<StepInterface, ["slicedDimensions"]>,
                            DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "runs a generated kernel, on one list of arguments or several";
  let description = [{
    What it reads (0), writes (1) or updates (2) in the order of its arguments is `access`. With
    `limit` only the first of the kernel's rows. `substitute`: the library's function that can do
    the work on the same arguments instead. `phase_flops`: how many of its FLOPs are of each phase,
    where operations of several are in it; for reports.
  }];
  let arguments = !con((ins FlatSymbolRefAttr:$kernel, Variadic<Plan_Buffer>:$args,
                            DenseI64ArrayAttr:$access), work, order,
                       (ins OptionalAttr<I64Attr>:$limit,
                            OptionalAttr<Plan_SubstituteAttr>:$substitute,
                            OptionalAttr<DenseI64ArrayAttr>:$phase_flops));
  let assemblyFormat = "$kernel `` custom<Args>($args, type($args), $access) attr-dict";
}

def MatmulOp : Plan_StepOp<"matmul", [AttrSizedOperandSegments,
    DeclareOpInterfaceMethods<StepInterface, ["slicedDimensions", "countOnMultiprocessors",
                                              "computedIn"]>]> {
  let summary = "c = a b (+ bias) (+ c), or gelu of it";
  let description = [{
    runtime/calls/MatmulCall.cpp lists the shapes. `accumulate`: adds to c. With `gelu`, c is gelu of
    the sums, which `sums` saves. `weight_scale`, of a weight b of i8: f32 numbers, one for each column of c, that
    sums are multiplied by before the bias is added, or bf16 numbers of groups of b, whose bytes are then packed. `scales`, of operands of 8 bits: f32 numbers that sums are multiplied by,
    or of blocks parts of them. `reduced_reduction`: sums of parts may be in the type of the
    operands. `compute`: the format that the operands are rounded to before they are multiplied, where
    that is not their own. `multiprocessors`: what to count on having; 0: all.
  }];
  let arguments = !con((ins Plan_Buffer:$a, Plan_Buffer:$b, Optional<Plan_Buffer>:$bias,
                            Optional<Plan_Buffer>:$weight_scale, Optional<Plan_Buffer>:$scale_a,
                            Optional<Plan_Buffer>:$scale_b,
                            Plan_Buffer:$c, Optional<Plan_Buffer>:$sums, UnitAttr:$transpose_a,
                            UnitAttr:$transpose_b, UnitAttr:$accumulate, UnitAttr:$gelu,
                            UnitAttr:$reduced_reduction, OptionalAttr<TypeAttr>:$compute,
                            DefaultValuedAttr<I64Attr, "0">:$multiprocessors), work, order);
  let assemblyFormat = [{
    `(` $a `:` type($a) `,` $b `:` type($b) ``
    custom<BesideFactors>($bias, type($bias), $weight_scale, type($weight_scale),
                          $scale_a, type($scale_a), $scale_b, type($scale_b)) `` `)` `->`
    `(` $c `:` type($c) (`,` `sums` $sums^ `:` type($sums))? `)` attr-dict
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// Whether bytes of b have two numbers of 4 bits each (support::packInt4).
    bool isPacked();
  }];
}

class Plan_AttentionOp<string mnemonic> : Plan_StepOp<mnemonic> {
  dag mask = (ins F64Attr:$scale, OptionalAttr<F64Attr>:$cap, UnitAttr:$causal, DefaultValuedAttr<I64Attr, "0">:$chunk,
                  DefaultValuedAttr<I64Attr, "0">:$window);
}

def AttentionOp : Plan_AttentionOp<"attention"> {
  let summary = "o = softmax(scale q kᵀ, masked) v, and the logarithms of its denominators";
  let description = [{ runtime/calls/AttentionCall.h says which query sees which key. }];
  let arguments = !con((ins Plan_Buffer:$q, Plan_Buffer:$k, Plan_Buffer:$v, Plan_Buffer:$o,
                            Optional<Plan_Buffer>:$lse), mask, work, order);
  let assemblyFormat = [{
    `(` $q `:` type($q) `,` $k `:` type($k) `,` $v `:` type($v) `)` `->`
    `(` $o `:` type($o) (`,` `lse` $lse^ `:` type($lse))? `)` attr-dict
  }];
}

def AttentionGradOp : Plan_AttentionOp<"attention_grad"> {
  let summary = "gradients of attention";
  let description = [{
    `hydra-expand-kernels` gives it the buffer that the target's function works in, if it needs one.
  }];
  let arguments = !con((ins Plan_Buffer:$d_o, Plan_Buffer:$q, Plan_Buffer:$k, Plan_Buffer:$v,
                            Plan_Buffer:$o, Plan_Buffer:$lse, Plan_Buffer:$dq, Plan_Buffer:$dk,
                            Plan_Buffer:$dv, Optional<Plan_Buffer>:$workspace), mask, work, order);
  let assemblyFormat = [{
    `(` $d_o `:` type($d_o) `,` $q `:` type($q) `,` $k `:` type($k) `,` $v `:` type($v) `,`
    $o `:` type($o) `,` $lse `:` type($lse) `)` `->` `(` $dq `:` type($dq) `,` $dk `:` type($dk)
    `,` $dv `:` type($dv) (`,` `workspace` $workspace^ `:` type($workspace))? `)` attr-dict
  }];
}

def CachedAttentionOp : Plan_StepOp<"cached_attention"> {
  let summary = "attention over rows in slots, behind those of the call, which it stores there";
  let description = [{
    runtime/calls/AttentionCall.h says which query sees which slot. `hydra-expand-kernels` gives the kernels of a
    target what they work in.
  }];
  let arguments = !con((ins Plan_Buffer:$q, Plan_Buffer:$k, Plan_Buffer:$v, Plan_Buffer:$position,
                            Plan_Buffer:$o, Plan_Buffer:$keys, Plan_Buffer:$values,
                            F64Attr:$scale, OptionalAttr<F64Attr>:$cap,
                            DefaultValuedAttr<I64Attr, "0">:$chunk,
                            DefaultValuedAttr<I64Attr, "0">:$window), work, order);
  let assemblyFormat = [{
    `(` $q `:` type($q) `,` $k `:` type($k) `,` $v `:` type($v) `,` $position `:` type($position) `)`
    `->` `(` $o `:` type($o) `,` $keys `:` type($keys) `,` $values `:` type($values) `)` attr-dict
  }];
}

def SampleOp : Plan_StepOp<"sample"> {
  let summary = "ids drawn from scores, and the ids that sequences have";
  let description = [{ runtime/calls/SampleCall.h says how. `seen` is read and written. }];
  let arguments = !con((ins Plan_Buffer:$scores, Plan_Buffer:$tokens, Plan_Buffer:$position,
                            Plan_Buffer:$settings, Plan_Buffer:$draw, Plan_Buffer:$token,
                            Plan_Buffer:$seen), work, order);
  let assemblyFormat = [{
    `(` $scores `:` type($scores) `,` $tokens `:` type($tokens) `,` $position `:` type($position) `,`
    $settings `:` type($settings) `,` $draw `:` type($draw) `)` `->`
    `(` $token `:` type($token) `,` $seen `:` type($seen) `)` attr-dict
  }];
}

def CopyOp : Plan_StepOp<"copy",
                         [DeclareOpInterfaceMethods<StepInterface, ["slicedDimensions"]>]> {
  let summary = "the same elements in another place, under other strides";
  let arguments = !con((ins Plan_Buffer:$from, Plan_Buffer:$to), work, order);
  let assemblyFormat = "`(` $from `:` type($from) `)` `->` `(` $to `:` type($to) `)` attr-dict";
  let hasVerifier = 1;
}

def TransferOp : Plan_StepOp<"transfer", [DeclareOpInterfaceMethods<StepInterface, ["getLink"]>]> {
  let summary = "the same elements in memory of the other side";
  let description = [{
    Between the host's memory and the device's: exactly one of the two buffers is of the segment `host`. Both
    are dense.
  }];
  let arguments = !con((ins Plan_Buffer:$from, Plan_Buffer:$to), work, order);
  let assemblyFormat = "`(` $from `:` type($from) `)` `->` `(` $to `:` type($to) `)` attr-dict";
  let hasVerifier = 1;
}

def FillOp : Plan_StepOp<"fill"> {
  let summary = "one number everywhere";
  let arguments = !con((ins Plan_Buffer:$to, F64Attr:$value), work, order);
  let assemblyFormat = "$value `->` `(` $to `:` type($to) `)` attr-dict";
}

def EmbeddingGradOp : Plan_StepOp<"embedding_grad"> {
  let summary = "grad[v] = sum of dx[t] over tokens[t] == v";
  let arguments = !con((ins Plan_Buffer:$tokens, Plan_Buffer:$dx, Plan_Buffer:$grad), work, order);
  let assemblyFormat = [{
    `(` $tokens `:` type($tokens) `,` $dx `:` type($dx) `)` `->` `(` $grad `:` type($grad) `)`
    attr-dict
  }];
}

def CompactOp : Plan_StepOp<"compact"> {
  let summary = "the numbers of rows whose mask is true, and how many there are";
  let arguments = !con((ins Plan_Buffer:$mask, Plan_Buffer:$index, Plan_Buffer:$place,
                            Plan_Buffer:$count), work, order);
  let assemblyFormat = [{
    `(` $mask `:` type($mask) `)` `->` `(` $index `:` type($index) `,` $place `:` type($place) `,`
    $count `:` type($count) `)` attr-dict
  }];
}

def RouteOp : Plan_StepOp<"route"> {
  let summary = "rows sorted by the groups that they are in, and where groups begin";
  let arguments = !con((ins Plan_Buffer:$mask, Plan_Buffer:$index, Plan_Buffer:$group,
                            Plan_Buffer:$place, Plan_Buffer:$offsets), work, order);
  let assemblyFormat = [{
    `(` $mask `:` type($mask) `)` `->` `(` $index `:` type($index) `,` $group `:` type($group) `,`
    $place `:` type($place) `,` $offsets `:` type($offsets) `)` attr-dict
  }];
}

def CountExponentsOp : Plan_StepOp<"count_exponents"> {
  let summary = "adds to counters how many elements of tensors are nearest to which power of two";
  let description = [{
    runtime/calls/CountCall.h says which counter has a number. With `scaled` the first tensor is a factor.
  }];
  let arguments = !con((ins Variadic<Plan_Buffer>:$tensors, Plan_Buffer:$counts, I64Attr:$first,
                            UnitAttr:$scaled), work, order);
  let assemblyFormat = [{
    `(` $tensors `:` type($tensors) `)` `->` `(` $counts `:` type($counts) `)` attr-dict
  }];
}

class Plan_GroupedOp<string mnemonic>
    : Plan_StepOp<mnemonic, [DeclareOpInterfaceMethods<StepInterface, ["computedIn"]>]>;

def GroupedLinearOp : Plan_GroupedOp<"grouped_linear"> {
  let summary = "y = x wᵀ, with a weight for each group of rows";
  let description = [{ runtime/calls/GroupedCalls.h says which rows a group has. }];
  let arguments = !con((ins Plan_Buffer:$x, Plan_Buffer:$w, Plan_Buffer:$offsets, Plan_Buffer:$y,
                            UnitAttr:$transposed, OptionalAttr<TypeAttr>:$compute), work, order);
  let assemblyFormat = [{
    `(` $x `:` type($x) `,` $w `:` type($w) `,` $offsets `:` type($offsets) `)` `->`
    `(` $y `:` type($y) `)` attr-dict
  }];
}

def GroupedOuterOp : Plan_GroupedOp<"grouped_outer"> {
  let summary = "c[e] = aᵀ b over the rows of group e";
  let arguments = !con((ins Plan_Buffer:$a, Plan_Buffer:$b, Plan_Buffer:$offsets, Plan_Buffer:$c,
                            OptionalAttr<TypeAttr>:$compute), work, order);
  let assemblyFormat = [{
    `(` $a `:` type($a) `,` $b `:` type($b) `,` $offsets `:` type($offsets) `)` `->`
    `(` $c `:` type($c) `)` attr-dict
  }];
}

def FftOp : Plan_StepOp<"fft"> {
  let summary = "spectra of rows of real numbers, or rows from their spectra";
  let description = [{ runtime/calls/FftCall.h says what the arguments of each direction are. }];
  let arguments = !con((ins Plan_Buffer:$from, Plan_Buffer:$to, UnitAttr:$inverse), work, order);
  let assemblyFormat = "`(` $from `:` type($from) `)` `->` `(` $to `:` type($to) `)` attr-dict";
}

def LinearRecurrenceOp : Plan_StepOp<"linear_recurrence", [AttrSizedOperandSegments]> {
  let summary = "linear recurrences along rows, or their gradients";
  let description = [{ runtime/calls/RecurrenceCall.h says what the arguments of each direction are. }];
  let arguments = !con((ins Variadic<Plan_Buffer>:$reads, Variadic<Plan_Buffer>:$writes, UnitAttr:$backward), work,
                       order);
  let assemblyFormat = "`(` $reads `:` type($reads) `)` `->` `(` $writes `:` type($writes) `)` attr-dict";
}

class Plan_CollectiveOp<string mnemonic>
    : Plan_StepOp<mnemonic, [DeclareOpInterfaceMethods<
          StepInterface, ["meetsRanks", "getMeshAxis", "getSentBytes"]>]> {
  let description = [{ `wire_bytes`: what each rank sends to others, as `CollectiveOpInterface` says it. }];
  let arguments = !con((ins Plan_Buffer:$x, Plan_Buffer:$y, I64Attr:$axis,
                            DefaultValuedAttr<I64Attr, "0">:$wire_bytes), work, order);
  let assemblyFormat = "`(` $x `:` type($x) `)` `->` `(` $y `:` type($y) `)` `along` $axis attr-dict";
  let hasVerifier = 1;
}

def AllGatherOp : Plan_CollectiveOp<"all_gather"> {
  let summary = "the elements of all ranks along an axis of the mesh, one after the other";
}

def AllToAllOp : Plan_CollectiveOp<"all_to_all"> {
  let summary = "every rank along an axis of the mesh gives each an equal piece of its elements";
}

def LoopOp : Plan_BlockOp<"loop", [SingleBlock, NoTerminator, NoRegionArguments]> {
  let summary = "runs its body several times, one iteration after the other";
  let description = [{
    `plan.loop 4 (%x by 1024 : memref<…>) { … }`: in iteration i, `%x` lies i * 1024 bytes further.
    `slices 16`, set by `hydra-fuse-loops`: a kernel with a block for each of 16 slices of all tensors,
    or a thread where these are single numbers, replaces the loop (Slices.h).
  }];
  let arguments = !con((ins I64Attr:$count, Variadic<Plan_Buffer>:$moving,
                            DenseI64ArrayAttr:$strides), order, (ins OptionalAttr<I64Attr>:$slices));
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $count `` custom<Moving>($moving, type($moving), $strides) (`slices` $slices^)? $body attr-dict
  }];
  let hasVerifier = 1;
}

def SwitchOp : Plan_BlockOp<"switch", [SingleBlock, NoTerminator, NoRegionArguments]> {
  let summary = "runs the case whose number a device scalar holds; none for any other value";
  let description = [{
    With `by N` the number is the scalar divided by N, rounded up. `kernel`: what tells a captured
    graph the number, where the target needs that.
  }];
  let arguments = !con((ins Plan_Buffer:$selector, DefaultValuedAttr<I64Attr, "1">:$divisor,
                            OptionalAttr<FlatSymbolRefAttr>:$kernel), order);
  let regions = (region VariadicRegion<SizedRegion<1>>:$cases);
  let assemblyFormat = "$selector (`by` $divisor^)? `:` type($selector) $cases attr-dict";
  let hasVerifier = 1;
}

#endif // HYDRA_PLAN_OPS_TD
