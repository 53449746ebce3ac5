// Data that any rank can name without seeing it (a hash of seed, rank and index), its checks, and
// the adds of a reduction. All kernels stride over their grid; sizes are multiples of 16 bytes.
#pragma once

#include "tools/gpu/probe/Ranks.h"

#include <cuda_bf16.h>

#include <cstdint>

__host__ __device__ inline uint32_t mixed(uint32_t seed, uint32_t rank, uint32_t index) {
  uint32_t x = index * 0x9e3779b1u ^ (seed * 0x85ebca77u + rank * 0xc2b2ae3du);
  x = (x ^ x >> 16) * 0x7feb352du;
  x = (x ^ x >> 15) * 0x846ca68bu;
  return x ^ x >> 16;
}

/// An element of a summand: in [-1, 1), rounded to T.
template <typename T>
__host__ __device__ inline T summand(uint32_t seed, uint32_t rank, uint32_t index) {
  return static_cast<T>((static_cast<int>(mixed(seed, rank, index) >> 8) - (1 << 23)) * 0x1p-23f);
}

__device__ inline size_t firstIndex() { return blockIdx.x * size_t(blockDim.x) + threadIdx.x; }
__device__ inline size_t stride() { return size_t(gridDim.x) * blockDim.x; }

/// out[i] = the hash of i, i < words. The seed is seed + *step where there is a step.
__global__ void fillWords(uint32_t *out, size_t words, uint32_t seed, const uint32_t *step,
                          uint32_t rank) {
  if (step)
    seed += *step;
  for (size_t i = firstIndex(); i < words; i += stride())
    out[i] = mixed(seed, rank, static_cast<uint32_t>(i));
}

/// Counts the words of [source rank, piece] that are not what the ranks sent from word `first` of
/// their buffers on.
__global__ void checkWords(const uint32_t *data, size_t words, size_t piece, uint32_t seed,
                           uint32_t first, unsigned long long *wrong) {
  unsigned long long found = 0;
  for (size_t i = firstIndex(); i < words; i += stride())
    found += data[i] != mixed(seed, static_cast<uint32_t>(i / piece),
                              first + static_cast<uint32_t>(i % piece));
  if (found)
    atomicAdd(wrong, found);
}

__global__ void nextStep(uint32_t *step) { ++*step; }

template <typename T>
__global__ void fillSummands(T *out, size_t count, uint32_t seed, uint32_t rank) {
  for (size_t i = firstIndex(); i < count; i += stride())
    out[i] = summand<T>(seed, rank, static_cast<uint32_t>(i));
}

/// Counts elements further than `tolerance` from the sum over ranks, in rank order and f32, of
/// elements `first + i`.
template <typename T, typename Out>
__global__ void checkSums(const Out *sums, size_t count, uint32_t seed, int ranks, uint32_t first,
                          float tolerance, unsigned long long *wrong) {
  unsigned long long found = 0;
  for (size_t i = firstIndex(); i < count; i += stride()) {
    float sum = 0;
    for (int rank = 0; rank < ranks; ++rank)
      sum += static_cast<float>(summand<T>(seed, rank, first + static_cast<uint32_t>(i)));
    found += !(fabsf(static_cast<float>(sums[i]) - sum) <= tolerance); // a NaN is wrong
  }
  if (found)
    atomicAdd(wrong, found);
}

struct Pieces {
  const void *of[maxRanks];
};

/// out[i] = ((pieces[0][i] + pieces[1][i]) + pieces[2][i]) ..., in f32. Reads every piece once in
/// words of 16 bytes and writes f32: for N pieces of bf16, 2N + 4 bytes an element, at the rate of
/// memory, or of the links where pieces lie in the memory of peers.
template <typename T>
__global__ void addInRankOrder(Pieces pieces, int ranks, float *out, size_t groups) {
  constexpr int width = 16 / sizeof(T);
  for (size_t group = firstIndex(); group < groups; group += stride()) {
    uint4 words[maxRanks];
#pragma unroll
    for (int rank = 0; rank < maxRanks; ++rank)
      if (rank < ranks)
        words[rank] = static_cast<const uint4 *>(pieces.of[rank])[group];
    float sums[width] = {};
#pragma unroll
    for (int rank = 0; rank < maxRanks; ++rank)
      if (rank < ranks)
        for (int i = 0; i < width; ++i)
          sums[i] += static_cast<float>(reinterpret_cast<const T *>(&words[rank])[i]);
    for (int i = 0; i < width; i += 4)
      reinterpret_cast<float4 *>(out)[group * (width / 4) + i / 4] =
          make_float4(sums[i], sums[i + 1], sums[i + 2], sums[i + 3]);
  }
}
