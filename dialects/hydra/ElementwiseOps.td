// Elementwise operations, constants and casts.
#ifndef HYDRA_ELEMENTWISE_OPS_TD
#define HYDRA_ELEMENTWISE_OPS_TD

include "dialects/hydra/HydraBase.td"

class Hydra_SourceOp<string mnemonic>
    : Hydra_LeafOp<mnemonic, [DeclareOpInterfaceMethods<ReferenceOpInterface>, CostOpInterface,
                              StorageOpInterface, PrecisionOpInterface,
                              DeclareOpInterfaceMethods<RowWiseOpInterface>]> {
  let results = (outs Hydra_Value:$result);
  let hasCustomAssemblyFormat = 1;
  let extraClassDefinition = [{
    ::mlir::ParseResult $cppClass::parse(::mlir::OpAsmParser &parser,
                                         ::mlir::OperationState &state) {
      return ::hydra::parseLeafOp(parser, state, getAttributeNames());
    }
    void $cppClass::print(::mlir::OpAsmPrinter &printer) { ::hydra::printLeafOp(printer, *this); }
  }];
}

def ConstantOp : Hydra_SourceOp<"constant"> {
  let summary = "one number in every element";
  let description = [{
    `%c = hydra.constant value = 0.5 shape = [B, S] dtype = f32`; the shape defaults to `[]`, the
    element type to f32.
  }];
  let arguments = (ins Hydra_Real:$value, Hydra_Optional<Hydra_IntList>:$shape,
                       OptionalAttr<TypeAttr>:$dtype);
  let builders = [OpBuilder<(ins "::mlir::RankedTensorType":$type, "double":$value)>];
}

def IotaOp : Hydra_SourceOp<"iota"> {
  let summary = "the index of each element along one axis";
  let description = [{
    `%i = hydra.iota shape = [S, S] axis = 1 dtype = i32` (dtype defaults to i32). With `positions` the
    indices are positions in the sequence of tokens: in a program that reads on (the role `decode`)
    they count from the sequence's first token, not from the first of the call.
  }];
  let arguments = (ins Hydra_IntList:$shape, Hydra_Int:$axis, OptionalAttr<TypeAttr>:$dtype,
                       UnitAttr:$positions);
}

class Hydra_ElementwiseOp<string mnemonic, list<Trait> traits = []>
    : Hydra_ValueOp<mnemonic, traits # [ElementwiseTrait, CostOpInterface, PrecisionOpInterface,
        DeclareOpInterfaceMethods<RowWiseOpInterface>,
        DeclareOpInterfaceMethods<StorageOpInterface, ["overwritableOperands", "operandLayout"]>]>;

class Hydra_UnaryOp<string mnemonic, string text, list<Trait> traits = []>
    : Hydra_ElementwiseOp<mnemonic, traits # [DeclareOpInterfaceMethods<DifferentiableOpInterface, ["vjp"]>]> {
  let summary = text;
  let description = "`%y = hydra." # mnemonic # " %x`: " # text # ", element by element; floating point.";
  let arguments = (ins Hydra_Value:$x);
  let results = (outs Hydra_Value:$y);
}
def NegOp : Hydra_UnaryOp<"neg", "y = -x", [ZeroOpInterface]> { let hasFolder = 1; }
def ExpOp : Hydra_UnaryOp<"exp", "y = e^x">;
def LogOp : Hydra_UnaryOp<"log", "y = ln x">;
def SqrtOp : Hydra_UnaryOp<"sqrt", "y = x^(1/2)">;
def RsqrtOp : Hydra_UnaryOp<"rsqrt", "y = x^(-1/2)">;
def SinOp : Hydra_UnaryOp<"sin", "y = sin x, x in radians; as exact as others up to 2^30">;
def CosOp : Hydra_UnaryOp<"cos", "y = cos x, x in radians; as exact as others up to 2^30">;
def TanhOp : Hydra_UnaryOp<"tanh", "y = tanh x">;
def ErfOp : Hydra_UnaryOp<"erf", "y = erf x = 2/sqrt(pi) times the integral of e^(-t²) from 0 to x">;
def SigmoidOp : Hydra_UnaryOp<"sigmoid", "y = 1 / (1 + e^-x)", [RecomputeOpInterface]>;
def SiluOp : Hydra_UnaryOp<"silu", "y = x * sigmoid(x)", [RecomputeOpInterface]>;
def GeluOp : Hydra_UnaryOp<"gelu", "y = x/2 * (1 + tanh(sqrt(2/pi) * (x + 0.044715 x^3)))",
                           [RecomputeOpInterface]>;

def DetachOp : Hydra_UnaryOp<"detach", "y = x, and no gradient flows back">;

class Hydra_BinaryOp<string mnemonic, string text, list<Trait> traits = []>
    : Hydra_ElementwiseOp<mnemonic, traits # [DeclareOpInterfaceMethods<DifferentiableOpInterface, ["vjp"]>]> {
  let summary = text;
  let description = "`%y = hydra." # mnemonic # " %a, %b`: " # text # [{, element by element. Operands
    have one shape and type once bound; in a model file trailing dimensions broadcast as in NumPy,
    and binding makes each broadcast explicit.}];
  let arguments = (ins Hydra_Value:$a, Hydra_Value:$b);
  let results = (outs Hydra_Value:$y);
}
def AddOp : Hydra_BinaryOp<"add", "y = a + b">;
def SubOp : Hydra_BinaryOp<"sub", "y = a - b"> { let hasFolder = 1; }
def MulOp : Hydra_BinaryOp<"mul", "y = a * b", [DeclareOpInterfaceMethods<ZeroOpInterface, ["givesZero"]>,
                                             RecomputeOpInterface]> { let hasFolder = 1; }
def DivOp : Hydra_BinaryOp<"div", "y = a / b (floating point)"> { let hasFolder = 1; }
def MaxOp : Hydra_BinaryOp<"max", "y = the larger of a and b; the gradient of a tie goes to a">;
def MinOp : Hydra_BinaryOp<"min", "y = the smaller of a and b; the gradient of a tie goes to a">;

def CompareOp : Hydra_ElementwiseOp<"compare"> {
  let summary = "y = a <predicate> b as truth values (i1)";
  let description = [{ `%c = hydra.compare %a, %b is = "lt"`; predicates `eq ne lt le gt ge`. }];
  let arguments = (ins Hydra_Value:$a, Hydra_Value:$b, StrAttr:$is);
  let results = (outs Hydra_Value:$y);
  let builders = [OpBuilder<(ins "::mlir::Value":$a, "::mlir::Value":$b, "::hydra::Predicate":$is), [{
    build($_builder, $_state, a, b, $_builder.getStringAttr(stringifyPredicate(is)));
  }]>];
  let extraClassDeclaration = inferDeclaration # [{
    /// What `is` names; once types are inferred, which refuses other names.
    ::hydra::Predicate getPredicate() { return *symbolizePredicate(getIs()); }
  }];
}

def SelectOp : Hydra_ElementwiseOp<"select", [DeclareOpInterfaceMethods<DifferentiableOpInterface, ["vjp"]>]> {
  let summary = "y = c ? a : b";
  let description = [{ `%y = hydra.select %c, %a, %b`; `%c` holds truth values (i1). }];
  let arguments = (ins Hydra_Value:$c, Hydra_Value:$a, Hydra_Value:$b);
  let results = (outs Hydra_Value:$y);
}

def CastOp : Hydra_ElementwiseOp<"cast", [EightBitOperandsTrait, ZeroOpInterface,
    DeclareOpInterfaceMethods<RecomputeOpInterface, ["recomputeWhen"]>,
    DeclareOpInterfaceMethods<DifferentiableOpInterface, ["vjp"]>]> {
  let summary = "the same numbers in another element type";
  let description = [{
    `%y = hydra.cast %x to = bf16`. To a narrower float: round to nearest even. To an integer:
    towards zero. Integers of i8 are cast to floats, which have all of them.
  }];
  let arguments = (ins Hydra_Value:$x, TypeAttr:$to);
  let results = (outs Hydra_Value:$y);
  let hasFolder = 1;
}

#endif // HYDRA_ELEMENTWISE_OPS_TD
