// What ptxas says of kernels: what is read of it, and that NVIDIA's compilers really say it.
#include "compiler/codegen/cuda/AssemblerLog.h"
#include "compiler/codegen/cuda/KernelCache.h"

#include "gtest/gtest.h"

#include <algorithm>
#include <filesystem>

using namespace hydra;
using cuda::AssemblerLog;
using cuda::readAssemblerLog;

namespace {

constexpr const char *kArchitecture = "sm_90a";

/// `spills` has more live numbers than a thread has registers; `waits` uses the sums of a wgmma
/// before it has waited for them; `fits` has nothing wrong with it.
constexpr const char *kSource = R"cuda(
extern "C" __global__ void spills(float *a, int n) {
  float v[200];
#pragma unroll
  for (int i = 0; i < 200; ++i)
    v[i] = a[i * n + threadIdx.x];
  __syncthreads();
#pragma unroll
  for (int i = 0; i < 200; ++i)
    v[i] = v[i] * v[(i + 7) % 200] + v[(i + 13) % 200];
#pragma unroll
  for (int i = 0; i < 200; ++i)
    a[i * n + threadIdx.x] = v[i];
}
__device__ void multiply(float (&d)[4], unsigned long long a, unsigned long long b) {
  asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%0, %1, %2, %3}, %4, %5, 1, 1, 1, 0, 0;"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "l"(a), "l"(b));
}
extern "C" __global__ void __launch_bounds__(128) waits(unsigned long long a, unsigned long long b, float *out) {
  float d[4] = {};
  asm volatile("wgmma.fence.sync.aligned;");
  multiply(d, a, b);
  d[0] *= 2;
  multiply(d, a, b);
  asm volatile("wgmma.commit_group.sync.aligned;");
  asm volatile("wgmma.wait_group.sync.aligned 0;");
  for (int i = 0; i < 4; ++i)
    out[i * 128 + threadIdx.x] = d[i];
}
extern "C" __global__ void fits(float *a) {
  __shared__ float turned[100];
  turned[threadIdx.x % 100] = a[threadIdx.x];
  __syncthreads();
  a[threadIdx.x] = turned[99 - threadIdx.x % 100];
}
)cuda";

bool mentions(const KernelResources &kernel, const std::string &text) {
  return std::ranges::any_of(kernel.warnings, [&](const std::string &warning) {
    return warning.find(text) != std::string::npos;
  });
}

/// Of the source above.
void checkKernels(const std::string &text) {
  const AssemblerLog log = readAssemblerLog(text);
  ASSERT_EQ(log.kernels.size(), 3u) << text;
  EXPECT_TRUE(log.warnings.empty()) << log.warnings.front();
  const KernelResources &spills = log.kernels.find("spills")->second;
  EXPECT_EQ(spills.registers, 255u);
  EXPECT_GT(spills.stackBytes, 0u);
  EXPECT_GT(spills.spillStores, 0u);
  EXPECT_GT(spills.spillLoads, 0u);
  EXPECT_TRUE(spills.warnings.empty());
  const KernelResources &waits = log.kernels.find("waits")->second;
  EXPECT_TRUE(mentions(waits, "Potential Performance Loss: wgmma.mma_async instructions are "
                              "serialized"))
      << text;
  EXPECT_FALSE(waits.spills());
  const KernelResources &fits = log.kernels.find("fits")->second;
  EXPECT_GT(fits.registers, 0u);
  EXPECT_EQ(fits.stackBytes, 0u);
  EXPECT_EQ(fits.sharedBytes, 400u);
  EXPECT_FALSE(fits.spills());
  EXPECT_TRUE(fits.warnings.empty());
}

} // namespace

TEST(AssemblerLog, HasNumbersOfEveryKernel) {
  const AssemblerLog log = readAssemblerLog(
      "ptxas info    : 250 bytes gmem\n"
      "ptxas info    : (C7511) Potential Performance Loss: wgmma.mma_async instructions are "
      "serialized due to insufficient register resources for the wgmma pipeline in the function "
      "'b'\n"
      "ptxas warning : Local memory used for function 'a', size of stack frame: 16 bytes\n"
      "ptxas warning : Local memory used for function 'a', size of stack frame: 16 bytes\n"
      "ptxas info    : Compiling entry function 'a' for 'sm_90a'\n"
      "ptxas info    : Function properties for a\n"
      "ptxas         .     16 bytes stack frame, 12 bytes spill stores, 20 bytes spill loads\n"
      "ptxas info    : Used 168 registers, used 1 barriers, 16 bytes cumulative stack size\n"
      "ptxas info    : Compile time = 106.004 ms\n"
      "ptxas info    : Compiling entry function 'b' for 'sm_90a'\n"
      "ptxas info    : Function properties for b\n"
      "    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
      "ptxas info    : Used 40 registers, used 1 barriers, 9216 bytes smem, 400 bytes cmem[0]\n");
  ASSERT_EQ(log.kernels.size(), 2u);
  const KernelResources &a = log.kernels.find("a")->second, &b = log.kernels.find("b")->second;
  EXPECT_EQ(a.registers, 168u);
  EXPECT_EQ(a.stackBytes, 16u);
  EXPECT_EQ(a.spillStores, 12u);
  EXPECT_EQ(a.spillLoads, 20u);
  EXPECT_EQ(a.sharedBytes, 0u);
  EXPECT_EQ(a.warnings.size(), 1u);
  EXPECT_TRUE(a.spills());
  EXPECT_EQ(b.registers, 40u);
  EXPECT_EQ(b.sharedBytes, 9216u);
  EXPECT_TRUE(mentions(b, "(C7511)"));
  EXPECT_FALSE(b.spills());
  EXPECT_TRUE(log.warnings.empty());
}

TEST(AssemblerLog, TellsWhatBelongsToNoKernel) {
  const AssemblerLog log = readAssemblerLog(
      "ptxas warning : Unknown option\n"
      "ptxas info    : Function properties for _Z1fPfi\n"
      "ptxas         .     408 bytes stack frame, 404 bytes spill stores, 408 bytes spill loads\n"
      "ptxas info    : Compiling entry function 'one' for 'sm_90a'\n"
      "ptxas info    : Function properties for one\n"
      "ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
      "ptxas info    : Used 24 registers, used 0 barriers\n");
  EXPECT_EQ(log.kernels.size(), 1u);
  EXPECT_EQ(log.warnings, (std::vector<std::string>{
                              "Unknown option",
                              "function '_Z1fPfi' spills: 404 bytes stored, 408 bytes loaded"}));
  EXPECT_TRUE(readAssemblerLog("").kernels.empty());
  EXPECT_TRUE(readAssemblerLog("ptxas\nregisters\nptxas info : Used registers").kernels.empty());
}

TEST(AssemblerLog, BothCompilersSayWhatIsBad) {
  if (cuda::sourceCompilerVersion().empty())
    GTEST_SKIP() << "NVRTC is not installed";
  auto source = cuda::sourceLog(kSource, kArchitecture);
  ASSERT_TRUE(!!source) << llvm::toString(source.takeError());
  checkKernels(*source);
  if (cuda::assemblerVersion().empty())
    GTEST_SKIP() << "nvJitLink is not installed";
  auto compiled = cuda::compileSource(kSource, kArchitecture);
  ASSERT_TRUE(!!compiled) << llvm::toString(compiled.takeError());
  const std::string ptx(compiled->ptx.begin(), compiled->ptx.end());
  auto assembled = cuda::assemblerLog(ptx.substr(0, ptx.find('\0')), kArchitecture);
  ASSERT_TRUE(!!assembled) << llvm::toString(assembled.takeError());
  checkKernels(*assembled);
}

TEST(AssemblerLog, IsTheSameFromTheCache) {
  if (cuda::sourceCompilerVersion().empty())
    GTEST_SKIP() << "NVRTC is not installed";
  const std::filesystem::path directory =
      std::filesystem::path(testing::TempDir()) / "hydra-assembler-log";
  std::filesystem::remove_all(directory);
  const cuda::KernelCache cache({directory});
  auto made = cache.compileSource(kSource, kArchitecture);
  auto first = cache.sourceLog(kSource, kArchitecture); // beside the entry of the code
  auto second = cache.sourceLog(kSource, kArchitecture);
  auto again = cache.compileSource(kSource, kArchitecture);
  ASSERT_TRUE(made && first && second && again);
  EXPECT_EQ(*first, *second); // compile times too
  EXPECT_EQ(made->cubin, again->cubin);
  checkKernels(*second);
  std::filesystem::remove_all(directory);
}
