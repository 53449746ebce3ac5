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
    {"attention", {"flash", "fmha", "attention", "sdpa"}},
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
      "bmm", "::mm", "linear", "einsum", "splitkreduce", "splitk_reduce"}},
    {"scan", {"scan", "cumsum", "cumprod"}},
    {"gather_scatter", {"gather", "scatter", "index", "embedding", "topk", "sort"}},
    {"copy_cast",
     {"copy",      "transpose", "catarray", "::cat",        "contiguous",  "clone",    "fill",
      "permute",   "::to",      "::t",      "::zero",       "::ones",      "::empty",  "::view",
      "::reshape", "::expand",  "::slice",  "::as_strided", "::unsqueeze", "::select", "::stack"}},
    {"reduce",
     {"reduce", "triton_red", "triton_per", "::sum", "::mean", "::norm", "vector_norm", "::max",
      "argmax"}},
    {"elementwise",
     {"elementwise", "pointwise", "triton_poi", "::add",  "::mul", "::sub",    "::div", "::silu",
      "::gelu",      "::relu",    "::sigmoid",  "::tanh", "::exp", "::log",    "::pow", "::sqrt",
      "::rsqrt",     "::neg",     "::where",    "::cos",  "::sin", "::dropout"}},
};

/// What a template does to its operands says nothing about the work.
void removeAll(std::string &text, std::string_view word) {
  for (size_t at = text.find(word); at != text.npos; at = text.find(word, at))
    text.erase(at, word.size());
}

} // namespace

std::string hydra::inspect::kernelClass(std::string_view name) {
  std::string text(name);
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return std::tolower(c); });
  removeAll(text, "tensoriteratorbase");
  for (const ClassWords &one : kClasses)
    if (std::ranges::any_of(one.words,
                            [&](std::string_view w) { return text.find(w) != text.npos; }))
      return one.name;
  return "other";
}
