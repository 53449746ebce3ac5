// What the links between the GPUs of one host give: all-gather and all-to-all by NCCL's kernels, by
// its copy engines and by copies of our own; the same under a matmul; reductions to shards; long
// replays of a captured graph. Every result is checked on random data. `tools/gpu/probe.sh` builds
// and runs it.
//
// One process a GPU, as hydra-run has it: captures and launches of a rank wait for no thread of
// another rank, windows and peers' memory go through the same exports between processes, and a rank
// that hangs can be killed. NVLink multicast stays off unless NCCL_NVLS_ENABLE in the environment
// asks for it.
#include "tools/gpu/probe/Bench.cuh"

#include <memory>

namespace {

class Probe : Bench {
public:
  using Bench::Bench, Bench::setUp, Bench::tearDown;
  void transfers();
  void overlap();
  template <typename T>
  void reductions(const char *operation, ncclDataType_t type, float tolerance);
  void replays(int count);
};

void Probe::transfers() {
  ranks.stage("waking the clocks of GPUs and links");
  for (int i = 0; i < 200; ++i)
    enqueue(byMalloc, Operation::AllGather, pieceOf(largest));
  synchronize();
  for (Operation operation :
       {Operation::AllGather, Operation::AllGatherInPlace, Operation::AllToAll})
    for (size_t bytes : {MiB >> 10, MiB >> 4, MiB, 4 * MiB, 16 * MiB, 64 * MiB, 256 * MiB, largest})
      for (const Method *method : {&byMalloc, &byRegistration, &byWindow, &byEngines, &byCopies})
        for (bool captured : {false, true}) {
          size_t piece = pieceOf(bytes);
          int calls = bytes <= MiB ? 20 : bytes <= 16 * MiB ? 10 : 2;
          const char *mode = captured ? "captured" : "eager";
          ranks.stage("%s of %zu bytes, %s, %s", name(operation), bytes, method->name.c_str(),
                      mode);
          double us = NAN;
          uint64_t wrongWords = 0;
          if (method->missing.empty()) {
            std::function<void()> run = [&] {
              for (int i = 0; i < calls; ++i)
                enqueue(*method, operation, piece);
            };
            std::unique_ptr<Graph> graph;
            if (captured) { // after the eager one, which made NCCL's connections
              graph = std::make_unique<Graph>(stream, run);
              run = [&] { graph->launch(stream); };
            }
            wrongWords = verified(*method, operation, piece, run);
            us = median(run, calls);
          }
          add("transfer", name(operation), bytes, *method, mode, us, piece, wrongWords);
        }
}

void Probe::overlap() {
  ranks.stage("a matmul alone");
  Matmul matmul(rank);
  constexpr int matmuls = 40;
  together(nullptr, 0, &matmul, 5);
  double matmulAlone = together(nullptr, 0, &matmul, matmuls).matmul;
  add("overlap", "matmul", 0, {"cuBLASLt", nullptr, plain, ""}, "matmul", matmulAlone);
  std::vector<const Method *> methods{&byMalloc, &byWindow, &byEngines, &byCopies};
  for (const Method &method : restricted)
    methods.push_back(&method);
  for (Operation operation : {Operation::AllGather, Operation::AllToAll})
    for (size_t bytes : {64 * MiB, 256 * MiB})
      for (const Method *method : methods) {
        ranks.stage("%s of %zu bytes under a matmul, %s", name(operation), bytes,
                    method->name.c_str());
        size_t piece = pieceOf(bytes);
        double alone = NAN;
        Together both{NAN, NAN};
        uint64_t wrongWords = 0;
        if (method->missing.empty()) {
          auto once = [&] { enqueue(*method, operation, piece); };
          wrongWords = verified(*method, operation, piece, once);
          Graph graph(stream, once);
          together(&graph, 4, nullptr, 0);
          alone = together(&graph, 24, nullptr, 0).transfer;
          // Enough to last as long as the matmuls, or longer.
          int transfers =
              std::clamp(static_cast<int>(1.3 * matmuls * matmulAlone / alone), 24, 500);
          both = together(&graph, transfers, &matmul, matmuls);
        }
        add("overlap", name(operation), bytes, *method, "alone", alone, piece, wrongWords);
        add("overlap", name(operation), bytes, *method, "with matmul", both.transfer, piece);
        add("overlap", name(operation), bytes, *method, "matmul", both.matmul);
      }
}

/// Sums to shards: all-to-all and adds in rank order; adds that load the pieces from the peers'
/// send buffers, without a receive buffer; ncclReduceScatter, which has its own order and the
/// wire's type as its result, held to `tolerance` a rank.
template <typename T>
void Probe::reductions(const char *operation, ncclDataType_t type, float tolerance) {
  for (size_t bytes : {16 * MiB, 64 * MiB, 256 * MiB}) {
    size_t piece = pieceOf(bytes), count = piece / sizeof(T);
    auto adds = [&](auto pieceOfRank) {
      Pieces pieces{};
      for (int r = 0; r < size; ++r)
        pieces.of[r] = pieceOfRank(r);
      addInRankOrder<T><<<1056, 256, 0, stream>>>(pieces, size, sums, piece / 16);
      CHECK(cudaGetLastError());
    };
    enum Result { InSums, InReceived, Unchecked };
    auto measure = [&](const Method &method, const char *mode, Result result,
                       const std::function<void()> &once) {
      ranks.stage("%s, %zu bytes of %s, %s", mode, bytes, operation, method.name.c_str());
      double us = NAN;
      unsigned long long found = 0;
      if (method.missing.empty()) {
        ++seed;
        CHECK(cudaMemsetAsync(method.buffers.recv, 0xff, bytes, stream));
        CHECK(cudaMemsetAsync(sums, 0xff, count * sizeof(float), stream));
        fillSummands<<<1024, 256, 0, stream>>>(reinterpret_cast<T *>(method.buffers.send),
                                               count * size, seed, rank);
        CHECK(cudaGetLastError());
        once(); // NCCL connects before capture
        synchronize();
        constexpr int calls = 4;
        Graph graph(stream, [&] {
          for (int i = 0; i < calls; ++i)
            once();
        });
        auto run = [&] { graph.launch(stream); };
        run();
        CHECK(cudaMemsetAsync(wrong, 0, sizeof *wrong, stream));
        uint32_t first = static_cast<uint32_t>(rank * count);
        const T *received = reinterpret_cast<const T *>(method.buffers.recv);
        if (result == InSums) // the same bits
          checkSums<T><<<1024, 256, 0, stream>>>(sums, count, seed, size, first, 0, wrong);
        if (result == InReceived)
          checkSums<T><<<1024, 256, 0, stream>>>(received, count, seed, size, first,
                                                 tolerance * size, wrong);
        CHECK(cudaGetLastError());
        CHECK(cudaMemcpyAsync(&found, wrong, sizeof found, cudaMemcpyDeviceToHost, stream));
        synchronize();
        us = median(run, calls);
      }
      add("reduce", operation, bytes, method, mode, us, piece, ranks.sum(found));
    };
    for (const Method *method : {&byMalloc, &byWindow, &byEngines, &byCopies})
      measure(*method, "all_to_all + adds", InSums, [&] {
        enqueue(*method, Operation::AllToAll, piece);
        adds([&](int r) { return method->buffers.recv + r * piece; });
      });
    measure(byMalloc, "adds alone", Unchecked,
            [&] { adds([&](int r) { return plain.send + r * piece; }); });
    measure(byCopies, "adds from peers", InSums, [&] {
      peers.synchronize(false, stream);
      adds([&](int r) { return peers.send[r] + rank * piece; });
      peers.synchronize(true, stream);
    });
    for (const Method *method : {&byMalloc, &byWindow})
      measure(*method, "ncclReduceScatter", InReceived, [&] {
        CHECK(ncclReduceScatter(method->buffers.send, method->buffers.recv, count, type, ncclSum,
                                method->comm, stream));
      });
  }
}

void Probe::replays(int count) {
  constexpr size_t bytes = 16 * MiB, second = largest / 2; // where the all-to-all is received
  const size_t piece = pieceOf(bytes);
  for (const Method *method : {&byMalloc, &byRegistration, &byWindow, &byEngines, &byCopies}) {
    double us = NAN;
    uint64_t wrongWords = 0;
    if (method->missing.empty()) {
      const Buffers &buffers = method->buffers;
      auto once = [&] { // every replay sends other data than the one before
        nextStep<<<1, 1, 0, stream>>>(step);
        CHECK(cudaGetLastError());
        fill(buffers.send, piece * size, step);
        enqueue(*method, Operation::AllGather, piece);
        enqueue(*method, Operation::AllToAll, piece, second);
      };
      ranks.stage("before replays, %s", method->name.c_str());
      CHECK(cudaMemsetAsync(step, 0, sizeof *step, stream));
      once();
      once();
      synchronize();
      const uint32_t captured = seed += 2;
      Graph graph(stream, once);
      seed += count; // the graph keeps its seed
      CHECK(cudaMemsetAsync(step, 0, sizeof *step, stream));
      CHECK(cudaMemsetAsync(buffers.recv, 0xa5, largest, stream));
      std::vector<float> times;
      for (int done = 0; done < count;) {
        int next = done == 0 ? 1 : count / (done < count / 2 ? 2 : 1); // to be checked
        int run = std::min(next - done, 250);
        ranks.stage("replay %d of %d, %s", done, count, method->name.c_str());
        CHECK(cudaEventRecord(transferEvents[0], stream));
        for (int i = 0; i < run; ++i)
          graph.launch(stream);
        CHECK(cudaEventRecord(transferEvents[1], stream));
        synchronize();
        float elapsed;
        CHECK(cudaEventElapsedTime(&elapsed, transferEvents[0], transferEvents[1]));
        times.push_back(elapsed * 1e3f / run);
        done += run;
        if (done == next) {
          wrongWords += countWrong(buffers.recv, piece, Operation::AllGather, captured + done);
          wrongWords +=
              countWrong(buffers.recv + second, piece, Operation::AllToAll, captured + done);
        }
      }
      std::sort(times.begin(), times.end());
      us = ranks.max(times[times.size() / 2]);
    }
    add("replay", (std::to_string(count) + " replays").c_str(), bytes, *method, "graph", us, 0,
        wrongWords);
  }
}

} // namespace

int main(int argc, char **argv) {
  if (argc != 2) {
    fprintf(stderr, "link-probe: found %d arguments, expected one: the JSON file to write\n",
            argc - 1);
    return 1;
  }
  setenv("NCCL_NVLS_ENABLE", "0", /*overwrite=*/0);
  void *memory =
      mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    fprintf(stderr, "link-probe: no shared memory: %s\n", strerror(errno));
    return 1;
  }
  Shared &shared = *new (memory) Shared{};
  std::string failure = runRanks(shared, 1, [&](int) { CHECK(cudaGetDeviceCount(&shared.gpus)); });
  if (failure.empty() && shared.gpus < 2)
    failure = "found " + std::to_string(shared.gpus) + " GPU, expected at least 2";
  if (!failure.empty()) {
    fprintf(stderr, "link-probe: %s\n", failure.c_str());
    return 1;
  }
  int64_t start = milliseconds();
  int size = std::min(shared.gpus, maxRanks);
  failure = runRanks(shared, size, [&](int rank) {
    Ranks ranks(shared, rank, size);
    Probe probe(ranks);
    auto section = [&](const char *title) {
      if (rank == 0)
        fprintf(stderr, "%5.1f s  %s\n", (milliseconds() - start) / 1e3, title);
    };
    section("setting up");
    probe.setUp();
    section("transfers");
    probe.transfers();
    section("transfers under a matmul");
    probe.overlap();
    section("reductions");
    probe.reductions<__nv_bfloat16>("bf16", ncclBfloat16, 0x1p-7f);
    probe.reductions<float>("f32", ncclFloat32, 0x1p-20f);
    section("replays");
    probe.replays(10000);
    probe.tearDown();
    section("done");
  });
  if (failure.empty() && shared.wrongRows)
    failure = "measurements with wrong results: " + std::to_string(shared.wrongRows);
  if (!writeJson(argv[1], shared, failure)) {
    fprintf(stderr, "link-probe: %s: %s\n", argv[1], strerror(errno));
    return 1;
  }
  if (!failure.empty())
    fprintf(stderr, "link-probe: %s\n", failure.c_str());
  return failure.empty() ? 0 : 1;
}
