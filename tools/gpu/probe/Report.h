// The machine and the measurements as JSON; tables.py makes the tables of it.
#pragma once

#include "tools/gpu/probe/Device.cuh"

#include <dlfcn.h>

inline std::string quoted(const std::string &text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\')
      out += '\\';
    out += static_cast<unsigned char>(c) < ' ' ? ' ' : c;
  }
  return out + '"';
}

/// What the machine is, as a JSON object. NVML is looked up at run time: its header is not in every
/// toolkit.
inline std::string machine(int gpus) {
  int cuda, nccl;
  CHECK(cudaRuntimeGetVersion(&cuda));
  CHECK(ncclGetVersion(&nccl));
  void *nvml = dlopen("libnvidia-ml.so.1", RTLD_NOW);
  auto look = [&](const char *symbol) { return nvml ? dlsym(nvml, symbol) : nullptr; };
  auto init = reinterpret_cast<int (*)()>(look("nvmlInit_v2"));
  auto version = reinterpret_cast<int (*)(char *, unsigned)>(look("nvmlSystemGetDriverVersion"));
  auto find =
      reinterpret_cast<int (*)(const char *, void **)>(look("nvmlDeviceGetHandleByPciBusId_v2"));
  auto linkState =
      reinterpret_cast<int (*)(void *, unsigned, unsigned *)>(look("nvmlDeviceGetNvLinkState"));
  bool known = init && version && find && linkState && init() == 0;
  char driver[96] = "?";
  if (known)
    version(driver, sizeof driver);
  const char *multicast = getenv("NCCL_NVLS_ENABLE");
  std::string out = "{\"driver\": " + quoted(driver) + ", \"cuda\": " + std::to_string(cuda) +
                    ", \"nccl\": " + std::to_string(nccl) +
                    ", \"nccl_built_for\": " + std::to_string(NCCL_VERSION_CODE) +
                    ", \"nccl_nvls_enable\": " + quoted(multicast) + ", \"gpus\": [";
  for (int gpu = 0; gpu < gpus; ++gpu) {
    cudaDeviceProp properties;
    char bus[32];
    void *device;
    CHECK(cudaGetDeviceProperties(&properties, gpu));
    CHECK(cudaDeviceGetPCIBusId(bus, sizeof bus, gpu));
    int links = known && find(bus, &device) == 0 ? 0 : -1; // active ones; -1: NVML does not say
    for (unsigned link = 0, active = 0; links >= 0 && link < 18; ++link)
      if (linkState(device, link, &active) == 0)
        links += active == 1;
    out += std::string(gpu ? ", " : "") + "{\"name\": " + quoted(properties.name) +
           ", \"bus\": " + quoted(bus) + ", \"nvlinks\": " + std::to_string(links) +
           ", \"peer_access\": [";
    for (int peer = 0; peer < gpus; ++peer) {
      int access = 0;
      if (peer != gpu)
        CHECK(cudaDeviceGetP2PAttribute(&access, cudaDevP2PAttrAccessSupported, gpu, peer));
      out += (peer ? ", " : "") + std::to_string(access);
    }
    out += "]}";
  }
  return out + "]}";
}

/// {"failure", "machine", "rows"}; false with errno when the file cannot be written.
inline bool writeJson(const char *path, const Shared &shared, const std::string &failure) {
  FILE *out = fopen(path, "w");
  if (!out)
    return false;
  fprintf(out, "{\"failure\": %s,\n \"machine\": %s,\n \"rows\": [",
          failure.empty() ? "null" : quoted(failure).c_str(),
          shared.machine[0] ? shared.machine : "null");
  for (size_t i = 0; i < shared.rows; ++i)
    fprintf(out, "%s\n  %s", i ? "," : "", shared.row[i]);
  fprintf(out, "\n]}\n");
  return fclose(out) == 0;
}
