// Activity records of kernels, and callbacks that follow nodes from a captured graph into the
// executable one, whose nodes have numbers of their own.
#include "runtime/cuda/Cupti.h"

#include "runtime/support/SharedLibrary.h"

#include <cupti.h>

#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <unordered_map>

namespace hydra::runtime::cuda {

struct Cupti::Functions {
#define HYDRA_CUPTI_FUNCTIONS(X)                                                                   \
  X(cuptiActivityRegisterCallbacks)                                                                \
  X(cuptiActivityEnable)                                                                           \
  X(cuptiActivityDisable)                                                                          \
  X(cuptiActivityFlushAll)                                                                         \
  X(cuptiActivityGetNextRecord)                                                                    \
  X(cuptiSubscribe)                                                                                \
  X(cuptiUnsubscribe)                                                                              \
  X(cuptiEnableCallback)                                                                           \
  X(cuptiGetGraphNodeId)                                                                           \
  X(cuptiGetResultString)                                                                          \
  X(cuptiGetTimestamp)
  HYDRA_CUPTI_FUNCTIONS(HYDRA_DECLARE_FUNCTION)
};

/// What ranks exchange may be copied by copy engines, without a kernel.
static constexpr std::array kKinds = {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
                                      CUPTI_ACTIVITY_KIND_MEMCPY, CUPTI_ACTIVITY_KIND_MEMCPY2};

/// Callbacks of the activity interface have no argument of their own.
struct Cupti::State {
  static State *current;

  Functions f;
  CUpti_SubscriberHandle subscriber = nullptr;
  std::mutex lock;                             // callbacks come from threads of the library
  std::unordered_map<uint64_t, uint64_t> tags; // by number of a node
  uint64_t firstClone = 0, clones = 0;         // of the graph that is being instantiated
  std::vector<KernelRun> runs;

  static constexpr size_t kBufferBytes = size_t{8} << 20;
  static constexpr size_t kAlignment = 8;

  static void CUPTIAPI giveBuffer(uint8_t **buffer, size_t *size, size_t *records) {
    *buffer = static_cast<uint8_t *>(std::aligned_alloc(kAlignment, kBufferBytes));
    *size = *buffer ? kBufferBytes : 0;
    *records = 0; // as many as fit
  }

  static void CUPTIAPI takeBuffer(CUcontext, uint32_t, uint8_t *buffer, size_t, size_t valid) {
    if (current)
      current->readRecords(buffer, valid);
    std::free(buffer);
  }

  void readRecords(uint8_t *buffer, size_t valid) {
    CUpti_Activity *record = nullptr;
    const std::lock_guard guard(lock);
    while (f.cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS) {
      if (record->kind == CUPTI_ACTIVITY_KIND_MEMCPY)
        readCopy(*reinterpret_cast<const CUpti_ActivityMemcpy6 *>(record));
      else if (record->kind == CUPTI_ACTIVITY_KIND_MEMCPY2)
        readCopy(*reinterpret_cast<const CUpti_ActivityMemcpyPtoP4 *>(record));
      if (record->kind != CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL)
        continue;
      const auto &kernel = *reinterpret_cast<const CUpti_ActivityKernel10 *>(record);
      const auto tag = tags.find(kernel.graphNodeId);
      const auto size = [](int32_t x, int32_t y, int32_t z) {
        return std::array<uint32_t, 3>{static_cast<uint32_t>(x), static_cast<uint32_t>(y),
                                       static_cast<uint32_t>(z)};
      };
      runs.push_back(
          {kernel.start, kernel.end, tag == tags.end() ? kUnknownNode : tag->second,
           kernel.correlationId, kernel.streamId, size(kernel.gridX, kernel.gridY, kernel.gridZ),
           size(kernel.blockX, kernel.blockY, kernel.blockZ), kernel.name ? kernel.name : ""});
    }
  }

  /// Copies outside of graphs are the executor's own, and no part of a step.
  template <typename Record> void readCopy(const Record &copy) {
    if (const auto tag = tags.find(copy.graphNodeId); copy.graphNodeId && tag != tags.end())
      runs.push_back({copy.start,
                      copy.end,
                      tag->second,
                      copy.correlationId,
                      copy.streamId,
                      {},
                      {},
                      "copy",
                      copy.bytes});
  }

  static void CUPTIAPI onResource(void *self, CUpti_CallbackDomain domain, CUpti_CallbackId id,
                                  const void *data) {
    if (domain != CUPTI_CB_DOMAIN_RESOURCE || id != CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED)
      return;
    const auto *resource = static_cast<const CUpti_ResourceData *>(data);
    const auto *graph = static_cast<const CUpti_GraphData *>(resource->resourceDescriptor);
    auto &state = *static_cast<State *>(self);
    uint64_t original = 0, copy = 0;
    if (state.f.cuptiGetGraphNodeId(graph->originalNode, &original) != CUPTI_SUCCESS ||
        state.f.cuptiGetGraphNodeId(graph->node, &copy) != CUPTI_SUCCESS)
      return;
    const std::lock_guard guard(state.lock);
    if (state.clones == 0)
      state.firstClone = copy;
    const uint64_t number = state.firstClone + state.clones++;
    if (const auto known = state.tags.find(original); known != state.tags.end()) {
      const uint64_t tag = known->second;
      state.tags[copy] = tag;
      // Kernels in cases of a switch are recorded as if the cases' nodes stood behind those of the
      // graph around them, in the order in which they are made.
      state.tags[number] = tag;
    }
  }
};

Cupti::State *Cupti::State::current = nullptr;

Cupti::Cupti() : state(std::make_unique<State>()) {}

std::unique_ptr<Cupti> Cupti::load(std::string &why) {
  const support::SharedLibrary library({"libcupti.so.13", "/usr/local/cuda/lib64/libcupti.so.13",
                                        "/usr/local/cuda/extras/CUPTI/lib64/libcupti.so.13"});
  if (!library) {
    why = "there is no libcupti.so.13 of CUDA 13";
    return nullptr;
  }
  std::unique_ptr<Cupti> cupti(new Cupti);
  State &state = *cupti->state;
#define HYDRA_LOAD(name)                                                                           \
  if (!library.find(state.f.name, #name)) {                                                        \
    why = "libcupti.so.13 has no " #name;                                                          \
    return nullptr;                                                                                \
  }
  HYDRA_CUPTI_FUNCTIONS(HYDRA_LOAD)
#undef HYDRA_LOAD
  const auto ok = [&](CUptiResult status) {
    const char *text = nullptr;
    if (status != CUPTI_SUCCESS && state.f.cuptiGetResultString(status, &text) == CUPTI_SUCCESS)
      why = std::string("CUPTI does not start: ") + text;
    return status == CUPTI_SUCCESS;
  };
  State::current = &state;
  if (!ok(state.f.cuptiSubscribe(&state.subscriber, State::onResource, &state)) ||
      !ok(state.f.cuptiEnableCallback(1, state.subscriber, CUPTI_CB_DOMAIN_RESOURCE,
                                      CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED)) ||
      !ok(state.f.cuptiActivityRegisterCallbacks(State::giveBuffer, State::takeBuffer)) ||
      // Nodes of graphs are seen one by one only if this is on when the graph is made.
      !std::ranges::all_of(
          kKinds, [&](CUpti_ActivityKind kind) { return ok(state.f.cuptiActivityEnable(kind)); }))
    return nullptr;
  return cupti;
}

Cupti::~Cupti() {
  if (state->subscriber) {
    for (const CUpti_ActivityKind kind : kKinds)
      state->f.cuptiActivityDisable(kind);
    state->f.cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
    state->f.cuptiUnsubscribe(state->subscriber);
  }
  State::current = nullptr;
}

void Cupti::beginGraph() {
  const std::lock_guard guard(state->lock);
  state->clones = 0;
}

void Cupti::noteNode(CUgraphNode node, uint64_t tag) {
  uint64_t number = 0;
  if (state->f.cuptiGetGraphNodeId(node, &number) != CUPTI_SUCCESS)
    return;
  const std::lock_guard guard(state->lock);
  state->tags[number] = tag;
}

void Cupti::start() {
  state->f.cuptiActivityFlushAll(0);
  const std::lock_guard guard(state->lock);
  state->runs.clear();
}

uint64_t Cupti::now() const {
  uint64_t time = 0;
  state->f.cuptiGetTimestamp(&time);
  return time;
}

std::vector<KernelRun> Cupti::stop() {
  state->f.cuptiActivityFlushAll(0);
  const std::lock_guard guard(state->lock);
  std::vector<KernelRun> runs = std::move(state->runs);
  state->runs.clear();
  std::ranges::sort(runs, {}, &KernelRun::begin);
  return runs;
}

} // namespace hydra::runtime::cuda
