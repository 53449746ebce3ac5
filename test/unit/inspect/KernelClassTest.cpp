// Classes of kernels by names that libraries, PyTorch and Triton give them.
#include "tools/hydra-inspect/KernelClass.h"

#include <gtest/gtest.h>

namespace hydra::inspect {

TEST(KernelClass, OfNames) {
  const std::pair<const char *, const char *> expected[] = {
      {"ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "nccl"},
      {"nvjet_hsh_192x192_64x4_1x2_h_bz_coopB_TNN", "gemm"},
      {"sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64", "gemm"},
      {"void cutlass::Kernel2<cutlass_80_tensorop_s1688gemm_128x64_16x6_tn_align4>", "gemm"},
      {"void cublasLt::splitKreduce_kernel<32, 16, int, float, __nv_bfloat16>", "gemm"},
      {"void gemv2T_kernel_val<int, int, float, float>", "gemm"},
      {"pytorch_flash::flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel", "attention"},
      {"fmha_cutlassF_bf16_aligned_64x64_rf_sm80", "attention"},
      {"cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16", "attention"},
      {"void at::native::(anonymous namespace)::cunn_SoftMaxForward<8, float>", "softmax"},
      {"triton_red_fused__softmax_3", "softmax"},
      {"void at::native::(anonymous namespace)::nll_loss_forward_reduce_cuda_kernel_2d", "loss"},
      {"void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<float>", "norm"},
      {"void at::native::(anonymous namespace)::GammaBetaBackwardCUDAKernel", "norm"},
      {"triton_per_fused__to_copy_rms_norm_4", "norm"},
      {"void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, "
       "at::native::(anonymous namespace)::launch(at::TensorIteratorBase&)::{lambda(int)#1}>",
       "elementwise"},
      {"triton_poi_fused_add_mul_silu_7", "elementwise"},
      {"void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>>",
       "copy_cast"},
      {"void at::native::(anonymous namespace)::CatArrayBatchedCopy<float, 2>", "copy_cast"},
      {"void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float>>", "reduce"},
      {"triton_red_fused_sum_9", "reduce"},
      {"void at::native::reduce_kernel<128, 4, at::native::ReduceOp<c10::BFloat16, "
       "at::native::sum_functor<c10::BFloat16>::operator()(at::TensorIterator&)::{lambda(float)#1}>"
       ">",
       "reduce"},
      {"void at::native::(anonymous namespace)::fused_dropout_kernel_vec<c10::BFloat16>",
       "elementwise"},
      {"void cudnn::fusion::convert_dq_to_16bits<true>(void const*)", "attention"},
      {"void at::native::(anonymous namespace)::indexSelectLargeIndex<float>", "gather_scatter"},
      {"void at::native::(anonymous namespace)::multi_tensor_apply_kernel<FusedAdamMath>",
       "optimizer"},
      {"void cudnn::winograd_nonfused::winogradForwardData4x4<float>", "conv"},
      {"void vector_fft<1024u, EPT<8u>>", "fft"},
      {"void at_cuda_detail::cub::DeviceScanKernel<float>", "scan"},
      {"Memcpy DtoD (Device -> Device)", "memcpy"},
      {"aten::addmm", "gemm"},
      {"aten::scaled_dot_product_attention", "attention"},
      {"aten::native_layer_norm_backward", "norm"},
      {"aten::copy_", "copy_cast"},
      {"aten::t", "copy_cast"},
      {"aten::mul_", "elementwise"},
      {"aten::_to_copy", "copy_cast"},
      {"aten::tanh", "elementwise"},
      {"aten::mm", "gemm"},
      {"aten::sum", "reduce"},
      {"my_kernel", "other"},
  };
  for (const auto &[name, kind] : expected)
    EXPECT_EQ(kernelClass(name), kind) << name;
}

} // namespace hydra::inspect
