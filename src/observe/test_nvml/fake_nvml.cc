// SPDX-License-Identifier: Apache-2.0
// A replacement for NVML in tests, with two GPUs, of which the second does not report its power.
#include <cstdint>
#include <cstdio>

extern "C" {
#pragma GCC visibility push(default)

int nvmlInit_v2() { return 0; }
int nvmlShutdown() { return 0; }
int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = 2;
  return 0;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
  *device = reinterpret_cast<void*>(static_cast<uintptr_t>(index) + 1);
  return 0;
}
int nvmlDeviceGetUUID(void* device, char* uuid, unsigned size) {
  std::snprintf(uuid, size, "GPU-%d", static_cast<int>(reinterpret_cast<uintptr_t>(device)));
  return 0;
}
int nvmlDeviceGetUtilizationRates(void*, unsigned* rates) {
  rates[0] = 25;
  rates[1] = 50;
  return 0;
}
int nvmlDeviceGetMemoryInfo(void*, unsigned long long* memory) {
  memory[0] = 1000;
  memory[1] = 600;
  memory[2] = 400;
  return 0;
}
int nvmlDeviceGetPowerUsage(void* device, unsigned* milliwatts) {
  *milliwatts = 71500;
  return reinterpret_cast<uintptr_t>(device) == 1 ? 0 : 3;
}
int nvmlDeviceGetPowerManagementLimit(void*, unsigned* milliwatts) {
  *milliwatts = 300000;
  return 0;
}
int nvmlDeviceGetTotalEnergyConsumption(void*, unsigned long long* millijoules) {
  static unsigned long long energy = 5000;
  *millijoules = energy;
  energy += 1000;
  return 0;
}

#pragma GCC visibility pop
}
