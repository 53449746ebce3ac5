// A libnvidia-ml.so.1 without a GPU, as a driver of some years ago has it: its reasons have their
// old name, and it counts no energy.

typedef struct nvmlDevice_st *nvmlDevice_t;

static struct nvmlDevice_st {
  char any;
} gpu;

static int begun = 0;

/// How often it was begun and not ended.
int fakeNvmlBegun(void) { return begun; }

int nvmlInit_v2(void) {
  ++begun;
  return 0;
}

int nvmlShutdown(void) {
  --begun;
  return 0;
}

const char *nvmlErrorString(int status) { return status == 3 ? "Not Supported" : "Unknown Error"; }

int nvmlDeviceGetHandleByPciBusId_v2(const char *bus, nvmlDevice_t *device) {
  *device = &gpu;
  return bus[0] == '0' ? 0 : 6;
}

int nvmlDeviceGetMigMode(nvmlDevice_t device, unsigned *current, unsigned *pending) {
  *current = *pending = 0;
  return device == &gpu ? 3 : 2;
}

int nvmlDeviceGetClockInfo(nvmlDevice_t device, int type, unsigned *clock) {
  *clock = 1410;
  return device == &gpu && type == 1 ? 0 : 2;
}

int nvmlDeviceGetPowerUsage(nvmlDevice_t device, unsigned *power) {
  *power = 251500;
  return device == &gpu ? 0 : 2;
}

int nvmlDeviceGetTemperature(nvmlDevice_t device, int sensor, unsigned *temperature) {
  *temperature = 57;
  return device == &gpu && sensor == 0 ? 0 : 2;
}

int nvmlDeviceGetCurrentClocksThrottleReasons(nvmlDevice_t device, unsigned long long *reasons) {
  *reasons = 0x4;
  return device == &gpu ? 0 : 2;
}
