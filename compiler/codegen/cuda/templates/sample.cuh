// An id of each row of scores, drawn as runtime/support/Sampling.h says, to the last bit.
//
// Traffic: the scores once, f32. Limit: not bandwidth (512 KiB of 128k ids are 0.1 us of an H200) but the
// number of times that the blocks of a row wait for each other: one for the highest score, two for the sums
// of weights, and six for each of top-k and top-p, whose cuts are found by histograms of 11, 11 and 10 bits
// of the keys. Nothing is sorted; sums are of integers, so that their order does not matter.
//
// A cluster of Blocks has a row, each a piece of it, each warp a piece of that, in rows of 32 ids: a word of
// the bits of ids that were seen. A thread has Each ids, whose keys it holds in registers (Held), or else
// computes again whenever it asks.

constexpr uint32 kNoKey = ~0u;

/// The words of Philox4x32-10 (runtime/support/Philox.h).
__device__ __forceinline__ uint64 philoxBits(const int *draw) {
  uint32 key0 = draw[0], key1 = draw[1], c0 = draw[2], c1 = 0, c2 = draw[3], c3 = 0;
#pragma unroll
  for (int round = 0; round < 10; ++round) {
    const uint32 high0 = __umulhi(0xD2511F53u, c0), low0 = 0xD2511F53u * c0;
    const uint32 high1 = __umulhi(0xCD9E8D57u, c2), low1 = 0xCD9E8D57u * c2;
    c0 = high1 ^ c1 ^ key0;
    c1 = low1;
    c2 = high0 ^ c3 ^ key1;
    c3 = low0;
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
  return ((uint64(c1) << 32 | c0) >> 11 | 1) << 11;
}

/// The weight of a key: `samplingWeight`.
__device__ __forceinline__ uint32 weightOf(uint32 key) {
  const uint64 exponent = uint64(key) * 3098164010u;
  const uint32 whole = exponent >> 58;
  if (whole > 32)
    return 0;
  const uint32 fraction = exponent >> 26;
  uint32 sum = 48550u;
  sum = 639488u - __umulhi(fraction, sum);
  sum = 5712048u - __umulhi(fraction, sum);
  sum = 41304489u - __umulhi(fraction, sum);
  sum = 238387495u - __umulhi(fraction, sum);
  sum = 1031764939u - __umulhi(fraction, sum);
  sum = 2977044471u - __umulhi(fraction, sum);
  const uint64 mantissa = (1ull << 32) - __umulhi(fraction, sum);
  return (mantissa + (1ull << whole)) >> (whole + 1);
}

/// A number in the unit 2^-bits, rounded up, from 0 to 1.
__device__ __forceinline__ uint64 fixedPoint(float x, int bits) {
  return __float2ull_ru(fminf(fmaxf(x, 0.0f), 1.0f) * float(1ull << bits));
}

template <int Blocks> struct Cluster {
  __device__ __forceinline__ static int rank() { return blockIdx.x % Blocks; }
  /// Waits for all threads of all blocks, which see what each other wrote.
  __device__ __forceinline__ static void wait() {
    if constexpr (Blocks == 1) {
      __syncthreads();
    } else {
      asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
      asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
    }
  }
  /// A number in the shared memory of a block.
  __device__ __forceinline__ static uint32 read(const uint32 *own, int block) {
    if constexpr (Blocks == 1) {
      return *own;
    } else {
      uint32 address, value;
      asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(address) : "r"(sharedAddress(own)), "r"(block));
      asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(value) : "r"(address) : "memory");
      return value;
    }
  }
  __device__ __forceinline__ static uint64 read(const uint64 *own, int block) {
    const uint32 *halves = reinterpret_cast<const uint32 *>(own);
    return uint64(read(halves + 1, block)) << 32 | read(halves, block);
  }
};

template <int64 Ids, int Tokens, int Blocks, int Each, bool Held> class Sampler {
  static constexpr int threads = 1024, warps = 32, lanes = 32, bins = 2048;
  static constexpr int64 words = (Ids + lanes - 1) / lanes;
  // A weight's parts, so that sums of those of a block fit 32 bits.
  static constexpr int partBits = Each <= 64 ? 16 : 8, parts = 32 / partBits;
  using Group = Cluster<Blocks>;

  struct Shared {
    uint32 histogram[parts][bins];
    uint64 ofWarp[warps]; // what a warp comes to: a maximum, a sum
    uint32 tiesOfWarp[warps];
    uint64 ofBlock, bestOfBlock;
    uint64 rest;
    uint32 bin;
  };

public:
  __device__ __forceinline__ Sampler(const float *allScores, uint32 *allSeen)
      : row(blockIdx.x / Blocks), lane(threadIdx.x % lanes), warp(threadIdx.x / lanes),
        first(int64(Group::rank()) * threads * Each + int64(warp) * lanes * Each),
        scores(allScores + row * Ids), seen(allSeen + row * words), shared(memory()) {}

  __device__ __forceinline__ void run(const int *tokens, const float *position, const float *settings,
                                      const int *draw, int *token) {
    const float at = position[row];
    const bool writes = Group::rank() == 0 && threadIdx.x == 0;
    if (!(at >= 0.0f)) {
      if (writes)
        token[row] = 0;
      return;
    }
    const float *of = settings + row * 5;
    penalty = of[4];
    markTokens(tokens + row * Tokens, at == 0.0f);
    holdScores();
    const uint64 best = findBest();
    const uint32 ordered = best >> 32;
    const int id = ~uint32(best);
    const bool none = ordered == kNoKey || ordered == orderOf(-INFINITY);
    if (none || !(of[0] > 0.0f)) {
      if (writes)
        token[row] = none ? (ordered == kNoKey ? -1 - id : -1) : id;
      Group::wait(); // others may still read
      return;
    }
    highest = __uint_as_float(ordered & 0x80000000u ? ordered & 0x7fffffffu : ~ordered);
    inverse = fminf(__fdiv_rn(1.0f, of[0]), 3.402823466e38f);
    if constexpr (Held) {
#pragma unroll
      for (int i = 0; i < Each; ++i)
        held[i] = keyOf(__uint_as_float(held[i]));
    }
    if (of[1] >= 1.0f && of[1] < float(Ids))
      keepFirst(uint64(of[1]));
    if (of[2] < 1.0f)
      keepPart(fixedPoint(of[2], 32));
    if (of[3] > 0.0f)
      least = uint32(fixedPoint(of[3], 31));
    pick(philoxBits(draw + row * 4), token + row);
    Group::wait(); // others may still read
  }

private:
  __device__ __forceinline__ static Shared &memory() {
    __shared__ Shared it;
    return it;
  }

  //===-- Scores and keys -------------------------------------------------------------------===//

  /// Sets the bits of the tokens that are ids of the block.
  __device__ __forceinline__ void markTokens(const int *tokens, bool begins) {
    const int64 from = int64(Group::rank()) * threads * Each, to = from + int64(threads) * Each;
    if (begins)
      for (int64 word = from / lanes + threadIdx.x; word < to / lanes && word < words; word += threads)
        seen[word] = 0;
    __syncthreads();
    for (int t = threadIdx.x; t < Tokens; t += threads) {
      const int id = tokens[t];
      if (id >= from && id < to && id < Ids)
        atomicOr(seen + id / lanes, 1u << id % lanes);
    }
    __syncthreads();
  }

  __device__ __forceinline__ int64 idOf(int i) const { return first + int64(i) * lanes + lane; }

  /// That of id `i` of the thread; -inf behind the last.
  __device__ __forceinline__ float scoreAt(int i) const {
    const int64 id = idOf(i);
    return id < Ids ? penalized(scores[id] + 0.0f, id) : -INFINITY; // no -0
  }
  __device__ __forceinline__ float penalized(float score, int64 id) const {
    if (penalty == 1.0f)
      return score;
    const uint32 bits = *reinterpret_cast<const volatile uint32 *>(seen + id / lanes);
    if (!(bits >> lane & 1))
      return score;
    return (score > 0.0f ? __fdiv_rn(score, penalty) : __fmul_rn(score, penalty)) + 0.0f;
  }

  /// All of the thread's scores are on their way before the first is looked at.
  __device__ __forceinline__ void holdScores() {
    if constexpr (Held) {
#pragma unroll
      for (int i = 0; i < Each; ++i)
        held[i] = __float_as_uint(idOf(i) < Ids ? scores[idOf(i)] + 0.0f : -INFINITY); // no -0
      if (penalty == 1.0f)
        return;
#pragma unroll
      for (int i = 0; i < Each; ++i)
        if (idOf(i) < Ids)
          held[i] = __float_as_uint(penalized(__uint_as_float(held[i]), idOf(i)));
    }
  }

  /// A number that is larger for a larger score.
  __device__ __forceinline__ static uint32 orderOf(float score) {
    const uint32 bits = __float_as_uint(score);
    return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
  }

  __device__ __forceinline__ uint32 keyOf(float score) const {
    const float distance = __fmul_rn(__fsub_rn(highest, score), inverse);
    return distance < 32.0f ? __float2uint_rz(distance * 134217728.0f) : kNoKey;
  }
  __device__ __forceinline__ uint32 keyAt(int i) const {
    if constexpr (Held)
      return held[i];
    else
      return keyOf(scoreAt(i));
  }

  /// visit(key) of all ids of the thread.
  template <typename Visit> __device__ __forceinline__ void visitKeys(Visit visit) const {
    if constexpr (Held) {
#pragma unroll
      for (int i = 0; i < Each; ++i)
        visit(held[i]);
    } else {
#pragma unroll 4
      for (int i = 0; i < Each; ++i)
        visit(keyAt(i));
    }
  }

  /// The order of the highest score above the complement of its lowest id. What is no score is higher than
  /// all.
  __device__ __forceinline__ uint64 findBest() {
    uint32 most = 0; // lower than that of any score
    int of = 0;
#pragma unroll (Held ? Each : 4)
    for (int i = 0; i < Each; ++i) {
      const float score = Held ? __uint_as_float(held[i]) : scoreAt(i);
      const uint32 order = score < INFINITY ? orderOf(score) : kNoKey;
      if (idOf(i) < Ids && order > most) {
        most = order;
        of = i;
      }
    }
    uint64 best = most ? uint64(most) << 32 | ~uint32(idOf(of)) : 0;
    auto larger = [](uint64 a, uint64 b) { return a > b ? a : b; };
    best = overBlock(best, larger);
    if (threadIdx.x == 0)
      shared.bestOfBlock = best;
    Group::wait();
    for (int block = 0; block < Blocks; ++block)
      best = larger(best, Group::read(&shared.bestOfBlock, block));
    return best;
  }

  //===-- What threads come to --------------------------------------------------------------===//

  template <typename Join> __device__ __forceinline__ uint64 overBlock(uint64 x, Join join) {
#pragma unroll
    for (int d = lanes / 2; d > 0; d /= 2)
      x = join(x, __shfl_xor_sync(~0u, x, d));
    if (lane == 0)
      shared.ofWarp[warp] = x;
    __syncthreads();
    x = shared.ofWarp[lane];
#pragma unroll
    for (int d = lanes / 2; d > 0; d /= 2)
      x = join(x, __shfl_xor_sync(~0u, x, d));
    __syncthreads(); // free again
    return x;
  }

  __device__ __forceinline__ uint64 sumUpTo(uint64 x) const {
#pragma unroll
    for (int d = 1; d < lanes; d *= 2) {
      const uint64 before = __shfl_up_sync(~0u, x, d);
      x += lane >= d ? before : 0;
    }
    return x;
  }
  /// Over the threads before this one; `all`: over the block.
  __device__ __forceinline__ uint64 sumBefore(uint64 own, uint64 &all) {
    const uint64 end = sumUpTo(own);
    if (lane == lanes - 1)
      shared.ofWarp[warp] = end;
    __syncthreads();
    const uint64 ends = sumUpTo(shared.ofWarp[lane]);
    all = __shfl_sync(~0u, ends, lanes - 1);
    const uint64 before = __shfl_sync(~0u, ends, warp > 0 ? warp - 1 : 0);
    __syncthreads(); // free again
    return end - own + (warp > 0 ? before : 0);
  }

  //===-- Cuts ------------------------------------------------------------------------------===//

  /// Keeps the first ids that have `target` of weight, or of number, together, which all have.
  template <bool Weight> __device__ __forceinline__ void cutAt(uint64 target) {
    uint32 prefix = 0;
    cutBits<Weight, 21, 11>(prefix, target);
    cutBits<Weight, 10, 11>(prefix, target);
    cutBits<Weight, 0, 10>(prefix, target);
    const uint64 each = Weight ? weightOf(prefix) : 1;
    cut = prefix;
    ties = (target + each - 1) / each;
  }

  /// Finds Bits bits of the key at Shift, below those in `prefix`. `target` becomes what those with these
  /// bits have of it.
  template <bool Weight, int Shift, int Bits>
  __device__ __forceinline__ void cutBits(uint32 &prefix, uint64 &target) {
    constexpr int used = Weight ? parts : 1;
    const uint64 above = uint64(prefix) >> (Shift + Bits);
    auto isHere = [&](uint32 key) { return uint64(key) >> (Shift + Bits) == above; };
    auto binOf = [](uint32 key) { return int(key >> Shift & ((1u << Bits) - 1)); };
    for (int part = 0; part < used; ++part)
      for (int bin = threadIdx.x; bin < bins; bin += threads)
        shared.histogram[part][bin] = 0;
    __syncthreads();
    visitKeys([&](uint32 key) {
      if (key >= cut || !isHere(key))
        return;
      const int bin = binOf(key);
      if constexpr (!Weight) {
        atomicAdd(&shared.histogram[0][bin], 1u);
      } else if (const uint32 weight = weightOf(key)) {
#pragma unroll
        for (int part = 0; part < parts; ++part)
          atomicAdd(&shared.histogram[part][bin], weight >> part * partBits & ((1u << partBits) - 1));
      }
    });
    Group::wait();
    uint64 own[2] = {0, 0};
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int bin = 2 * threadIdx.x + half;
      for (int block = 0; block < Blocks; ++block)
        for (int part = 0; part < used; ++part)
          own[half] += uint64(Group::read(&shared.histogram[part][bin], block)) << part * partBits;
      if (ties > 0 && isHere(cut) && binOf(cut) == bin)
        own[half] += ties * (Weight ? weightOf(cut) : 1);
    }
    uint64 all;
    const uint64 before = sumBefore(own[0] + own[1], all);
    if (before < target && target <= before + own[0] + own[1]) {
      const bool second = target > before + own[0];
      shared.bin = 2 * threadIdx.x + second;
      shared.rest = target - before - (second ? own[0] : 0);
    }
    Group::wait(); // all have read the histograms
    prefix |= shared.bin << Shift;
    target = shared.rest;
  }

  /// Over all blocks of the row.
  __device__ __forceinline__ uint64 sumOfRow(uint64 own) {
    own = overBlock(own, [](uint64 a, uint64 b) { return a + b; });
    if (threadIdx.x == 0)
      shared.ofBlock = own;
    Group::wait();
    uint64 sum = 0;
    for (int block = 0; block < Blocks; ++block)
      sum += Group::read(&shared.ofBlock, block);
    Group::wait(); // free again
    return sum;
  }

  __device__ __forceinline__ void keepFirst(uint64 count) {
    uint64 own = 0;
    visitKeys([&](uint32 key) { own += key != kNoKey; });
    if (sumOfRow(own) > count)
      cutAt<false>(count);
  }

  __device__ __forceinline__ void keepPart(uint64 part) {
    uint64 own = 0;
    visitKeys([&](uint32 key) { own += key < cut ? weightOf(key) : 0; });
    const uint64 sum = sumOfRow(own) + (ties > 0 ? ties * weightOf(cut) : 0);
    const uint64 low = (sum & 0xffffffff) * part;
    const uint64 target = (sum >> 32) * part + (low >> 32) + ((low & 0xffffffff) != 0);
    cutAt<true>(target > 1 ? target : 1);
  }

  //===-- The draw --------------------------------------------------------------------------===//

  /// The weight of a key that is lower than that of the cut, if it is kept.
  __device__ __forceinline__ uint32 keptWeight(uint32 key) const {
    const uint32 weight = key < cut ? weightOf(key) : 0;
    return weight >= least ? weight : 0;
  }

  __device__ __forceinline__ void pick(uint64 random, int *token) {
    uint64 own = 0;
    uint32 equal = 0;
    visitKeys([&](uint32 key) {
      own += keptWeight(key);
      equal += key == cut;
    });
#pragma unroll
    for (int d = lanes / 2; d > 0; d /= 2) {
      own += __shfl_xor_sync(~0u, own, d);
      equal += __shfl_xor_sync(~0u, equal, d);
    }
    if (lane == 0) {
      shared.histogram[0][warp] = equal;
      shared.ofWarp[warp] = own;
    }
    Group::wait();
    // A thread for each warp of the row, in the order of ids.
    const bool has = threadIdx.x < Blocks * warps;
    const int block = threadIdx.x / warps, of = threadIdx.x % warps;
    uint64 sum = has ? Group::read(&shared.ofWarp[of], block) : 0;
    const uint32 same = has ? Group::read(&shared.histogram[0][of], block) : 0;
    Group::wait(); // all have read, so sums of the block may lie there
    uint64 all;
    const uint64 sameBefore = sumBefore(same, all);
    const uint64 left = ties > sameBefore ? ties - sameBefore : 0;
    const uint32 atCut = ties > 0 && weightOf(cut) >= least ? weightOf(cut) : 0;
    sum += (same < left ? same : left) * atCut;
    const uint64 before = sumBefore(sum, all);
    const uint64 wanted = __umul64hi(random, all);
    if (has && before <= wanted && wanted < before + sum) {
      shared.bin = threadIdx.x;
      shared.rest = wanted - before;
      shared.ofBlock = left;
    }
    __syncthreads();
    if (shared.bin == Group::rank() * warps + warp)
      pickInWarp(shared.rest, shared.ofBlock, atCut, token);
  }

  /// The id of the warp up to which weights first exceed `wanted`; of those at the cut `left` are kept.
  __device__ __forceinline__ void pickInWarp(uint64 wanted, uint64 left, uint32 atCut, int *token) {
    bool found = false;
    for (int i = 0; i < Each && !found; ++i) {
      uint32 key;
      if constexpr (Held) { // no registers by number
        key = kNoKey;
#pragma unroll
        for (int j = 0; j < Each; ++j)
          key = i == j ? held[j] : key;
      } else {
        key = keyAt(i);
      }
      const uint32 equal = __ballot_sync(~0u, key == cut);
      const bool kept = key == cut && __popc(equal & ((1u << lane) - 1)) < left;
      const uint64 own = kept ? atCut : keptWeight(key), end = sumUpTo(own);
      if (end - own <= wanted && wanted < end)
        *token = int(idOf(i));
      const uint64 all = __shfl_sync(~0u, end, lanes - 1);
      found = wanted < all;
      wanted -= all;
      left -= __popc(equal) < left ? __popc(equal) : left;
    }
  }

  const int64 row;
  const int lane, warp;
  const int64 first; // id of the warp
  const float *scores;
  uint32 *seen;
  Shared &shared;
  float penalty = 1.0f, highest = 0.0f, inverse = 1.0f;
  uint32 cut = kNoKey; // kept are lower keys, and the first `ties` of this one
  uint64 ties = 0;
  uint32 least = 0; // weight
  uint32 held[Held ? Each : 1]; // scores, then their keys
};
