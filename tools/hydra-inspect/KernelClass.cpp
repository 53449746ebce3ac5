// Words that names of kernels have in them.
#include "tools/hydra-inspect/KernelClass.h"

#include <algorithm>
#include <cctype>
#include <initializer_list>

namespace {

struct ClassWords {
  const char *name;
  std::initializer_list<std::string_view> words;
};

/// The first class one of whose words is in a name has it: what says more stands first.
const ClassWords kClasses[] = {
    {"nccl",
     {"nccl", "allreduce", "all_reduce", "allgather", "all_gather", "reducescatter",
      "reduce_scatter", "alltoall", "all_to_all"}},
    {"memcpy", {"memcpy", "memset"}},
    {"attention", {"flash", "fmha", "attention", "sdpa", "compute_dot_do_o", "convert_dq"}},
    {"loss", {"nll_loss", "cross_entropy", "crossentropy"}},
    {"softmax", {"softmax"}},
    {"optimizer", {"adam", "multi_tensor", "sgd", "adagrad", "lion_", "_foreach_"}},
    {"conv",
     {"convolution", "conv1d", "conv2d", "conv3d", "conv_depthwise", "winograd", "fprop", "dgrad",
      "wgrad"}},
    {"fft", {"fft"}},
    {"norm",
     {"layer_norm", "layernorm", "rms_norm", "rmsnorm", "batch_norm", "batchnorm", "group_norm",
      "gammabeta", "bn_fw", "bn_bw"}},
    {"gemm",
     {"gemm", "gemv", "cutlass", "xmma", "wgmma", "nvjet", "cublas", "cijk_", "matmul", "addmm",
      "bmm", "linear", "einsum", "splitkreduce", "splitk_reduce"}},
    {"scan", {"scan", "cumsum", "cumprod"}},
    {"gather_scatter", {"gather", "scatter", "index", "embedding", "topk", "sort"}},
    {"copy_cast", {"copy", "transpose", "catarray", "contiguous", "clone", "fill", "permute"}},
    {"reduce", {"reduce", "triton_red", "triton_per", "vector_norm", "argmax"}},
    {"elementwise", {"elementwise", "pointwise", "triton_poi", "dropout"}},
};

/// Of operations of PyTorch, whose whole names they are.
const ClassWords kOperations[] = {
    {"gemm", {"mm", "dot", "mv"}},
    {"copy_cast",
     {"to",         "t",       "cat",       "stack",       "zero",          "zeros",
      "zeros_like", "ones",    "ones_like", "empty",       "empty_like",    "empty_strided",
      "view",       "reshape", "expand",    "slice",       "as_strided",    "select",
      "unsqueeze",  "squeeze", "detach",    "unsafe_view", "reshape_alias", "resolve_conj",
      "split",      "chunk",   "flatten",   "pad"}},
    {"reduce", {"sum", "mean", "norm", "max", "min", "amax", "amin", "var", "std"}},
    {"elementwise", {"add",    "mul", "sub",  "div",     "silu",    "gelu",  "relu",      "sigmoid",
                     "tanh",   "exp", "log",  "pow",     "sqrt",    "rsqrt", "neg",       "where",
                     "cos",    "sin", "lerp", "addcmul", "addcdiv", "clamp", "bernoulli", "uniform",
                     "normal", "eq",  "ne",   "lt",      "gt",      "le",    "ge",        "abs"}},
};

/// `aten::mul_` is `mul`, `aten::_to_copy` is `to_copy`.
std::string_view operationOf(std::string_view name) {
  name.remove_prefix(std::string_view("aten::").size());
  while (name.starts_with('_'))
    name.remove_prefix(1);
  while (name.ends_with('_'))
    name.remove_suffix(1);
  return name;
}

} // namespace

std::string hydra::inspect::kernelClass(std::string_view name) {
  std::string text(name);
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return std::tolower(c); });
  if (text.starts_with("aten::"))
    for (const ClassWords &one : kOperations)
      if (std::ranges::find(one.words, operationOf(text)) != one.words.end())
        return one.name;
  for (const ClassWords &one : kClasses)
    if (std::ranges::any_of(one.words,
                            [&](std::string_view w) { return text.find(w) != text.npos; }))
      return one.name;
  return "other";
}
