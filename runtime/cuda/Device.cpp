// Opening a GPU, and what it gives and takes back.
#include "runtime/cuda/Device.h"

#include "runtime/report/Units.h"
#include "runtime/support/Integers.h"
#include "runtime/support/ParallelFor.h"
#include "runtime/support/Shown.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace hydra::runtime::cuda {

using namespace hydra::planfile;
using support::fail;

DeviceMemory::DeviceMemory(size_t bytes, const std::string &what) : bytes(bytes) {
  if (bytes > 0)
    driver().check(driver().cuMemAlloc(&address, bytes),
                   fmt::format("{}: cannot take {} of GPU memory", what, report::bytesText(bytes)));
}

DeviceMemory::~DeviceMemory() {
  if (address && release)
    release(address);
  else if (address)
    driver().cuMemFree(address);
}

HostMemory::HostMemory(size_t bytes, const std::string &what, unsigned threads) : bytes(bytes) {
  if (bytes == 0)
    return;
  void *pinned = nullptr;
  driver().check(
      driver().cuMemHostAlloc(&pinned, bytes, 0),
      fmt::format("{}: cannot take {} of the host's memory", what, report::bytesText(bytes)));
  address = static_cast<std::byte *>(pinned);
  constexpr size_t part = size_t{64} << 20;
  const auto parts = static_cast<int64_t>(support::ceilDiv(bytes, part));
  support::parallelFor(threads, parts, [&](int64_t task) {
    const size_t begin = static_cast<size_t>(task) * part;
    std::memset(address + begin, 0, std::min(part, bytes - begin));
  });
}

HostMemory::~HostMemory() {
  if (address)
    driver().cuMemFreeHost(address);
}

Device::Device(const PlanFile &file, int number, bool ranks) {
  const Driver &d = driver();
  int count = 0;
  d.check(d.cuDeviceGetCount(&count), "cannot count GPUs");
  if (ranks && count == 1) // whoever started the ranks has given each its own
    number = 0;
  if (ranks && number >= count)
    fail("{}: there are {} ranks or more on this machine, which has {} GPU{}; each needs one",
         file.origin(), number + 1, count, count == 1 ? "" : "s");
  if (number < 0 || number >= count)
    fail("--device cuda:{}: this machine has {} GPU{}", number, count, count == 1 ? "" : "s");
  d.check(d.cuDeviceGet(&device, number), "cannot open the GPU");
  std::array<char, 256> text{};
  d.check(d.cuDeviceGetName(text.data(), text.size(), device), "cannot ask the GPU for its name");
  name = text.data();
  const int major = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
  const int minor = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  architecture = fmt::format("sm_{}{}", major, minor);
  const std::string wanted = file.plan().target()->sm_arch()->str();
  if (wanted.rfind(architecture, 0) != 0 && wanted.back() == 'a')
    fail("{}: compiled for {} ({}), but GPU {} ({}) is {}; compile the model again for it",
         file.origin(), support::shown(file.plan().target()->name()->string_view()), wanted, number,
         name, architecture);
  d.check(d.cuDevicePrimaryCtxRetain(&context, device), "cannot start the GPU");
  d.check(d.cuCtxSetCurrent(context), "cannot use the GPU");
  uint32_t wantedStreams = 1;
  for (const Program *program : *file.plan().programs())
    wantedStreams = std::max(wantedStreams, program->streams());
  streams.resize(wantedStreams, nullptr);
  for (CUstream &created : streams)
    d.check(d.cuStreamCreate(&created, CU_STREAM_NON_BLOCKING), "cannot make a stream");
  stream = streams.front();
}

Device::~Device() {
  for (CUstream created : streams)
    if (created)
      driver().cuStreamDestroy(created);
  if (context)
    driver().cuDevicePrimaryCtxRelease(device);
}

Device::Memory Device::memory() const {
  Memory memory;
  driver().check(driver().cuMemGetInfo(&memory.free, &memory.total),
                 "cannot ask the GPU for its memory");
  return memory;
}

int Device::attribute(CUdevice_attribute which) const {
  int value = 0;
  driver().check(driver().cuDeviceGetAttribute(&value, which, device), "cannot ask the GPU");
  return value;
}

std::string Device::busId() const {
  std::array<char, 32> text{};
  driver().check(driver().cuDeviceGetPCIBusId(text.data(), text.size(), device),
                 "cannot ask the GPU where it is");
  return text.data();
}

void Device::wait(const std::string &what) const {
  driver().check(driver().cuStreamSynchronize(stream), what);
}

void Device::upload(CUdeviceptr to, std::span<const std::byte> bytes) const {
  driver().check(driver().cuMemcpyHtoDAsync(to, bytes.data(), bytes.size(), stream),
                 "cannot write to the GPU");
}

void Device::download(CUdeviceptr from, std::span<std::byte> bytes) const {
  beginDownload(from, bytes);
  wait("cannot read from the GPU");
}

void Device::beginDownload(CUdeviceptr from, std::span<std::byte> bytes) const {
  driver().check(driver().cuMemcpyDtoHAsync(bytes.data(), from, bytes.size(), stream),
                 "cannot read from the GPU");
}

Event::Event() {
  driver().check(driver().cuEventCreate(&event, CU_EVENT_DEFAULT), "cannot make an event");
}

Event::~Event() {
  if (event)
    driver().cuEventDestroy(event);
}

void Event::record(CUstream stream) const {
  driver().check(driver().cuEventRecord(event, stream), "cannot record an event");
}

void Event::makeWait(CUstream stream) const {
  driver().check(driver().cuStreamWaitEvent(stream, event, 0), "cannot wait for an event");
}

void Event::wait(const std::string &what) const {
  driver().check(driver().cuEventSynchronize(event), what);
}

double Event::secondsSince(const Event &begin) const {
  float milliseconds = 0.0f;
  driver().check(driver().cuEventElapsedTime(&milliseconds, begin.event, event),
                 "cannot read a time");
  return 1e-3 * static_cast<double>(milliseconds);
}

} // namespace hydra::runtime::cuda
