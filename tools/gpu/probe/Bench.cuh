// What every measurement stands on: a rank's streams, buffers and communicators, a transfer by each
// method, its check on random data, and its time.
#pragma once

#include "tools/gpu/probe/Peers.cuh"
#include "tools/gpu/probe/Report.h"

#include <algorithm>

constexpr size_t largest = 512 * MiB; // of every buffer

enum class Operation { AllGather, AllGatherInPlace, AllToAll };
inline const char *name(Operation operation) {
  return operation == Operation::AllGather          ? "all_gather"
         : operation == Operation::AllGatherInPlace ? "all_gather in place"
                                                    : "all_to_all";
}

/// A way to move data. Without a communicator: copies of our own into the memory of peers.
struct Method {
  std::string name;
  ncclComm_t comm;
  Buffers buffers;
  std::string missing; // why it cannot be used here, or empty
};

class Bench {
public:
  explicit Bench(Ranks &ranks) : ranks(ranks), rank(ranks.rank), size(ranks.size) {}
  void setUp();
  void tearDown();

protected:
  struct Together {
    double transfer, matmul; // us of one, while both ran
  };

  ncclComm_t newComm(int maxCtas, bool copyEngines);
  std::string registerWindows(ncclComm_t comm);
  void enqueue(const Method &method, Operation operation, size_t piece, size_t at = 0);
  void fill(char *data, size_t bytes, const uint32_t *counter = nullptr);
  uint64_t countWrong(const char *data, size_t piece, Operation operation, uint32_t usedSeed);
  uint64_t verified(const Method &method, Operation operation, size_t piece,
                    const std::function<void()> &run);
  double median(const std::function<void()> &run, int calls);
  Together together(const Graph *graph, int transfers, const Matmul *matmul, int matmuls);
  void add(const char *section, const char *operation, size_t bytes, const Method &method,
           const char *mode, double us, size_t piece = 0, uint64_t wrong = 0);
  size_t pieceOf(size_t total) const { return total / size / 16 * 16; }
  void synchronize() { CHECK(cudaStreamSynchronize(stream)); }

  Ranks &ranks;
  const int rank, size;
  cudaStream_t stream, compute; // of the highest and of the lowest priority
  cudaEvent_t begin;
  std::vector<cudaEvent_t> transferEvents, matmulEvents;
  Buffers plain, registered, window;
  Peers peers; // of the plain buffers
  float *sums;
  unsigned long long *wrong;
  uint32_t *step, seed = 0;
  std::vector<ncclComm_t> comms;
  std::vector<std::pair<ncclComm_t, ncclWindow_t>> windows;
  Method byMalloc, byRegistration, byWindow, byEngines, byCopies;
  std::vector<Method> restricted;
};

inline ncclComm_t Bench::newComm(int maxCtas, bool copyEngines) {
  ranks.stage("ncclCommInitRankConfig, maxCTAs %d, copy engines %d", maxCtas, copyEngines);
  ncclUniqueId id{};
  if (rank == 0)
    CHECK(ncclGetUniqueId(&id));
  id = ranks.exchange(id)[0];
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  if (maxCtas)
    config.maxCTAs = maxCtas;
#ifdef NCCL_CTA_POLICY_ZERO
  if (copyEngines)
    config.CTAPolicy = NCCL_CTA_POLICY_ZERO;
#endif
  ncclComm_t comm;
  CHECK(ncclCommInitRankConfig(&comm, size, id, rank, &config));
  comms.push_back(comm);
  return comm;
}

/// Makes the window buffers symmetric windows of a communicator; returns why that failed, the same
/// on all ranks.
inline std::string Bench::registerWindows(ncclComm_t comm) {
  ranks.stage("ncclCommWindowRegister");
  ncclResult_t status = ncclSuccess;
  for (char *buffer : {window.send, window.recv}) {
    ncclWindow_t made = nullptr;
    ncclResult_t one =
        ncclCommWindowRegister(comm, buffer, largest, &made, NCCL_WIN_COLL_SYMMETRIC);
    if (one == ncclSuccess && made)
      windows.push_back({comm, made});
    else // NCCL may give no window without an error
      status = one == ncclSuccess ? ncclInvalidUsage : one;
  }
  for (ncclResult_t other : ranks.exchange(status))
    if (other != ncclSuccess)
      return std::string("ncclCommWindowRegister: ") + ncclGetErrorString(other);
  return "";
}

inline void Bench::setUp() {
  ranks.stage("starting CUDA");
  CHECK(cudaSetDevice(rank));
  int lowest, highest;
  CHECK(cudaDeviceGetStreamPriorityRange(&lowest, &highest));
  CHECK(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, highest));
  CHECK(cudaStreamCreateWithPriority(&compute, cudaStreamNonBlocking, lowest));
  CHECK(cudaEventCreate(&begin));
  transferEvents.resize(512);
  matmulEvents.resize(64);
  for (std::vector<cudaEvent_t> *events : {&transferEvents, &matmulEvents})
    for (cudaEvent_t &event : *events)
      CHECK(cudaEventCreate(&event));
  CHECK(cudaMalloc(&plain.send, largest));
  CHECK(cudaMalloc(&plain.recv, largest));
  CHECK(cudaMalloc(&sums, largest));
  CHECK(cudaMalloc(&wrong, sizeof *wrong));
  CHECK(cudaMalloc(&step, sizeof *step));
  for (Buffers *buffers : {&registered, &window})
    for (char **buffer : {&buffers->send, &buffers->recv})
      CHECK(ncclMemAlloc(reinterpret_cast<void **>(buffer), largest));
  ranks.stage("cudaIpcOpenMemHandle");
  peers.open(ranks, plain, highest);
  if (rank == 0)
    ranks.describe(machine(size));

  ncclComm_t comm = newComm(0, false);
  void *handle;
  for (char *buffer : {registered.send, registered.recv})
    CHECK(ncclCommRegister(comm, buffer, largest, &handle));
  byMalloc = {"cudaMalloc", comm, plain, ""};
  byRegistration = {"ncclCommRegister", comm, registered, ""};
  byWindow = {"window", comm, window, registerWindows(comm)};
  byCopies = {"own copies", nullptr, plain, peers.missing};
  comm = newComm(0, true);
  byEngines = {"window, copy engines", comm, window, registerWindows(comm)};
#ifndef NCCL_CTA_POLICY_ZERO
  byEngines.missing = "NCCL before 2.28 has no collectives by copy engines";
#endif
  for (int ctas : {4, 8, 16}) {
    std::string suffix = ", maxCTAs=" + std::to_string(ctas);
    comm = newComm(ctas, false);
    restricted.push_back({byMalloc.name + suffix, comm, plain, ""});
    restricted.push_back({byWindow.name + suffix, comm, window, registerWindows(comm)});
  }
}

/// One operation on pieces of `piece` bytes (multiples of 16), received from byte `at` of the
/// buffer on.
inline void Bench::enqueue(const Method &method, Operation operation, size_t piece, size_t at) {
  char *recv = method.buffers.recv + at;
  const char *send =
      operation == Operation::AllGatherInPlace ? recv + rank * piece : method.buffers.send;
  size_t count = piece / 2; // of bf16
  if (!method.comm) {
    peers.push(send, operation == Operation::AllToAll ? piece : 0, piece, at, stream);
  } else if (operation != Operation::AllToAll) {
    CHECK(ncclAllGather(send, recv, count, ncclBfloat16, method.comm, stream));
  } else {
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 28, 0)
    CHECK(ncclAlltoAll(send, recv, count, ncclBfloat16, method.comm, stream));
#else
    CHECK(ncclGroupStart());
    for (int peer = 0; peer < size; ++peer) {
      CHECK(ncclSend(send + peer * piece, count, ncclBfloat16, peer, method.comm, stream));
      CHECK(ncclRecv(recv + peer * piece, count, ncclBfloat16, peer, method.comm, stream));
    }
    CHECK(ncclGroupEnd());
#endif
  }
}

inline void Bench::fill(char *data, size_t bytes, const uint32_t *counter) {
  fillWords<<<1024, 256, 0, stream>>>(reinterpret_cast<uint32_t *>(data), bytes / 4, seed, counter,
                                      rank);
  CHECK(cudaGetLastError());
}

/// Words on all ranks that are not what was sent under a seed.
inline uint64_t Bench::countWrong(const char *data, size_t piece, Operation operation,
                                  uint32_t usedSeed) {
  unsigned long long found = 0;
  size_t words = piece / 4, first = operation == Operation::AllToAll ? rank * words : 0;
  CHECK(cudaMemsetAsync(wrong, 0, sizeof *wrong, stream));
  checkWords<<<1024, 256, 0, stream>>>(reinterpret_cast<const uint32_t *>(data), words * size,
                                       words, usedSeed, static_cast<uint32_t>(first), wrong);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpyAsync(&found, wrong, sizeof found, cudaMemcpyDeviceToHost, stream));
  synchronize();
  return ranks.sum(found);
}

/// Fresh data, a poisoned buffer, one run: how many words came out wrong.
inline uint64_t Bench::verified(const Method &method, Operation operation, size_t piece,
                                const std::function<void()> &run) {
  ++seed;
  CHECK(cudaMemsetAsync(method.buffers.recv, 0xa5, piece * size, stream));
  if (operation == Operation::AllGatherInPlace)
    fill(method.buffers.recv + rank * piece, piece);
  else
    fill(method.buffers.send, operation == Operation::AllToAll ? piece * size : piece);
  run();
  return countWrong(method.buffers.recv, piece, operation, seed);
}

/// us of one of the `calls` that a run holds: the median of 24 runs after 4, of the slowest rank.
inline double Bench::median(const std::function<void()> &run, int calls) {
  constexpr int warm = 4, runs = 24;
  ranks.barrier();
  for (int i = 0; i < warm; ++i)
    run();
  for (int i = 0; i <= runs; ++i) {
    CHECK(cudaEventRecord(transferEvents[i], stream));
    if (i < runs)
      run();
  }
  synchronize();
  std::vector<float> times(runs);
  for (int i = 0; i < runs; ++i)
    CHECK(cudaEventElapsedTime(&times[i], transferEvents[i], transferEvents[i + 1]));
  std::sort(times.begin(), times.end());
  return ranks.max((times[runs / 2 - 1] + times[runs / 2]) / 2 * 1e3 / calls);
}

/// A row of the report. A method that is missing has no time but says why. With a piece: rates in
/// GB/s (1e9), where the algorithm's counts all pieces and the bus's those that leave or reach a
/// GPU.
inline void Bench::add(const char *section, const char *operation, size_t bytes,
                       const Method &method, const char *mode, double us, size_t piece,
                       uint64_t wrong) {
  char row[512];
  int length = snprintf(
      row, sizeof row,
      "{\"section\": \"%s\", \"operation\": \"%s\", \"bytes\": %zu, \"method\": \"%s\", "
      "\"mode\": \"%s\", \"wrong\": %llu",
      section, operation, bytes, method.name.c_str(), mode, static_cast<unsigned long long>(wrong));
  if (!method.missing.empty())
    snprintf(row + length, sizeof row - length, ", \"missing\": %s}",
             quoted(method.missing).c_str());
  else if (!(us > 0))
    snprintf(row + length, sizeof row - length, ", \"us\": null}");
  else
    snprintf(row + length, sizeof row - length,
             ", \"us\": %.3f, \"algorithm_gb_s\": %.2f, \"bus_gb_s\": %.2f}", us,
             piece * size / us / 1e3, piece * (size - 1) / us / 1e3);
  ranks.add(row, wrong > 0);
}

/// Launches of a graph on one stream beside matmuls on the other (either may be absent): means of
/// those that began and ended while the other stream was at work; NaN when there were none.
inline Bench::Together Bench::together(const Graph *graph, int transfers, const Matmul *matmul,
                                       int matmuls) {
  ranks.barrier();
  CHECK(cudaEventRecord(begin, compute));
  CHECK(cudaStreamWaitEvent(stream, begin, 0));
  CHECK(cudaEventRecord(matmulEvents[0], compute));
  for (int i = 0; i < matmuls; ++i) {
    (*matmul)(compute);
    CHECK(cudaEventRecord(matmulEvents[i + 1], compute));
  }
  CHECK(cudaEventRecord(transferEvents[0], stream));
  for (int i = 0; i < transfers; ++i) {
    graph->launch(stream);
    CHECK(cudaEventRecord(transferEvents[i + 1], stream));
  }
  CHECK(cudaStreamSynchronize(compute));
  synchronize();
  auto times = [&](const std::vector<cudaEvent_t> &events, int count) {
    std::vector<float> out(count + 1);
    for (int i = 0; i <= count; ++i)
      CHECK(cudaEventElapsedTime(&out[i], begin, events[i]));
    return out;
  };
  auto mean = [](const std::vector<float> &own, const std::vector<float> &others) {
    double total = 0;
    int count = 0;
    for (size_t i = 1; i < own.size(); ++i)
      if (others.size() == 1 || (own[i - 1] >= others.front() && own[i] <= others.back())) {
        total += own[i] - own[i - 1];
        ++count;
      }
    return count ? total * 1e3 / count : NAN;
  };
  std::vector<float> ofTransfers = times(transferEvents, transfers),
                     ofMatmuls = times(matmulEvents, matmuls);
  return {ranks.max(mean(ofTransfers, ofMatmuls)), ranks.max(mean(ofMatmuls, ofTransfers))};
}

/// Leaves NCCL in order, as a way out that hangs is a finding too; the process's end frees the
/// rest.
inline void Bench::tearDown() {
  ranks.stage("leaving NCCL");
  CHECK(cudaDeviceSynchronize());
  ranks.barrier();
  for (auto [comm, made] : windows)
    CHECK(ncclCommWindowDeregister(comm, made));
  for (ncclComm_t comm : comms) {
    ncclResult_t state;
    CHECK(ncclCommGetAsyncError(comm, &state));
    CHECK(state);
    CHECK(ncclCommFinalize(comm));
    CHECK(ncclCommDestroy(comm));
  }
  ranks.barrier(); // nobody's memory goes while a peer still maps it
}
