// Transfers without NCCL: the memory of other processes' GPUs, copies into it by the copy engines,
// and a barrier between streams that takes no multiprocessor.
#pragma once

#include "tools/gpu/probe/Device.cuh"

#include <cudaTypedefs.h>

struct Buffers {
  char *send, *recv;
};

class Peers {
public:
  /// Exports this rank's buffers (of cudaMalloc) and maps those of all others. `missing` says why
  /// that is not possible.
  void open(Ranks &ranks, Buffers own, int streamPriority) {
    rank = ranks.rank;
    size = ranks.size;
    for (int peer = 0; peer < size; ++peer) {
      CHECK(cudaStreamCreateWithPriority(&streams[peer], cudaStreamNonBlocking, streamPriority));
      CHECK(cudaEventCreateWithFlags(&joined[peer], cudaEventDisableTiming));
    }
    CHECK(cudaEventCreateWithFlags(&forked, cudaEventDisableTiming));
    uint32_t *flags;
    CHECK(cudaMalloc(&flags, 2 * MiB)); // a block of its own, as it is exported
    CHECK(cudaMemset(flags, 0, 2 * MiB));
    CHECK(cudaDeviceSynchronize());
    cudaDriverEntryPointQueryResult found;
    CHECK(cudaGetDriverEntryPointByVersion("cuStreamBatchMemOp",
                                           reinterpret_cast<void **>(&batchMemOp), 11070,
                                           cudaEnableDefault, &found));
    if (found != cudaDriverEntryPointSuccess)
      throw std::runtime_error("the driver has no cuStreamBatchMemOp");

    Memory mine{};
    mine.status = cudaIpcGetMemHandle(&mine.handles[0], own.send);
    if (mine.status == cudaSuccess)
      mine.status = cudaIpcGetMemHandle(&mine.handles[1], own.recv);
    if (mine.status == cudaSuccess)
      mine.status = cudaIpcGetMemHandle(&mine.handles[2], flags);
    std::vector<Memory> all = ranks.exchange(mine);
    cudaError_t status = mine.status;
    for (int peer = 0; peer < size; ++peer) {
      void *opened[3] = {own.send, own.recv, flags};
      bool shown = peer != rank && all[peer].status == cudaSuccess;
      for (int i = 0; i < 3 && shown && status == cudaSuccess; ++i)
        status =
            cudaIpcOpenMemHandle(&opened[i], all[peer].handles[i], cudaIpcMemLazyEnablePeerAccess);
      send[peer] = static_cast<char *>(opened[0]);
      recv[peer] = static_cast<char *>(opened[1]);
      flagsOf[peer] = static_cast<uint32_t *>(opened[2]);
    }
    (void)cudaGetLastError(); // `missing` tells it
    for (cudaError_t other : ranks.exchange(status))
      if (other != cudaSuccess)
        missing = std::string("cudaIpc: ") + cudaGetErrorString(other);
  }

  /// Tells every other rank that this one is ready (or done) and waits until all have told. The
  /// stream itself writes 1 to the peers' flags, waits for 1 in its own, and clears them. A rank
  /// writes a flag again only after it saw the other flag of all its peers, which they write after
  /// clearing this one.
  void synchronize(bool done, cudaStream_t stream) const {
    std::vector<CUstreamBatchMemOpParams> operations;
    auto add = [&](CUstreamBatchMemOpType operation, uint32_t *address, uint32_t value) {
      CUstreamBatchMemOpParams &parameters = operations.emplace_back();
      if (operation == CU_STREAM_MEM_OP_WRITE_VALUE_32) {
        parameters.writeValue.address = reinterpret_cast<CUdeviceptr>(address);
        parameters.writeValue.value = value;
        parameters.writeValue.flags = CU_STREAM_WRITE_VALUE_DEFAULT;
      } else {
        parameters.waitValue.address = reinterpret_cast<CUdeviceptr>(address);
        parameters.waitValue.value = value;
        parameters.waitValue.flags = CU_STREAM_WAIT_VALUE_EQ;
      }
      parameters.operation = operation;
    };
    uint32_t *mine = flagsOf[rank] + done * maxRanks;
    for (int peer = 0; peer < size; ++peer)
      if (peer != rank)
        add(CU_STREAM_MEM_OP_WRITE_VALUE_32, flagsOf[peer] + done * maxRanks + rank, 1);
    for (int peer = 0; peer < size; ++peer)
      if (peer != rank)
        add(CU_STREAM_MEM_OP_WAIT_VALUE_32, mine + peer, 1);
    for (int peer = 0; peer < size; ++peer)
      if (peer != rank)
        add(CU_STREAM_MEM_OP_WRITE_VALUE_32, mine + peer, 0);
    CHECK(batchMemOp(stream, operations.size(), operations.data(), 0));
  }

  /// Pushes a piece to every rank, from `source` + rank * `distance`, to byte `at` of its receive
  /// buffer plus this rank's piece; one stream a peer, so that several engines can work. The copies
  /// name no devices: an address from cudaIpcOpenMemHandle belongs to this process, and the engines
  /// are those of cudaMemcpyPeerAsync.
  void push(const char *source, size_t distance, size_t piece, size_t at,
            cudaStream_t stream) const {
    auto copy = [&](int peer, cudaStream_t on) {
      char *to = recv[peer] + at + rank * piece;
      if (to != source + peer * distance)
        CHECK(cudaMemcpyAsync(to, source + peer * distance, piece, cudaMemcpyDeviceToDevice, on));
    };
    synchronize(false, stream);
    CHECK(cudaEventRecord(forked, stream));
    copy(rank, stream);
    for (int step = 1; step < size; ++step) {
      int peer = (rank + step) % size;
      CHECK(cudaStreamWaitEvent(streams[peer], forked, 0));
      copy(peer, streams[peer]);
      CHECK(cudaEventRecord(joined[peer], streams[peer]));
      CHECK(cudaStreamWaitEvent(stream, joined[peer], 0));
    }
    synchronize(true, stream);
  }

  char *send[maxRanks], *recv[maxRanks]; // the buffers of every rank
  std::string missing;

private:
  struct Memory {
    cudaIpcMemHandle_t handles[3]; // send, recv, flags
    cudaError_t status;
  };
  int rank, size;
  cudaStream_t streams[maxRanks];
  cudaEvent_t forked, joined[maxRanks];
  uint32_t *flagsOf[maxRanks]; // [ready or done, from rank]
  PFN_cuStreamBatchMemOp_v11070 batchMemOp;
};
