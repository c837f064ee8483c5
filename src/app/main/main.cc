// SPDX-License-Identifier: Apache-2.0
// The program, and the settings of the allocator: unused memory is returned to the system
// within a second, in the background. Threads cache only a few small allocations, so that a thread
// that executes a few requests and ends does not hold a hundred of each size.
#include <malloc.h>

#include <chrono>
#include <utility>

#include "app/server.h"
#include "capi/server.h"
#include "isolation/run.h"

extern "C" {

__attribute__((visibility("default"))) const char* malloc_conf =
    "background_thread:true,dirty_decay_ms:1000,muzzy_decay_ms:0,"
    "tcache_nslots_small_min:8,tcache_nslots_small_max:64,lg_tcache_nslots_mul:-1";

}  // extern "C"

namespace {

// Sets up the C library's own allocator, which jemalloc stands in for. It does so itself at its
// first use, but not safely if two threads are the first. Libraries of backends do use it: OpenVINO
// calls malloc_trim when a model ends, which crashed servers that ended several models at once.
void SetUpAllocatorOfCLibrary() { ::malloc_trim(0); }

// Backends in the process of an isolated model may ask for their server. This one has no models.
TRITONSERVER_Server& EmptyServer() {
  nereid::engine::EngineOptions options;
  return *new TRITONSERVER_Server(std::move(options), std::chrono::seconds(0));
}

}  // namespace

int main(int argc, char** argv) {
  SetUpAllocatorOfCLibrary();
  if (nereid::isolation::IsForIsolatedModel(argc, argv)) {
    return nereid::isolation::RunIsolatedModel(argc, argv, EmptyServer);
  }
  return nereid::app::RunProgram(argc, argv);
}
