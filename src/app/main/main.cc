// SPDX-License-Identifier: Apache-2.0
// The server's program, plus the allocator's settings: memory that is not used goes back to the
// system within a second, in the background. Threads keep a few small pieces of memory at a time:
// one that runs a few requests of a model and ends shall not take a hundred of each size along.
#include "app/server.h"

extern "C" {

__attribute__((visibility("default"))) const char* malloc_conf =
    "background_thread:true,dirty_decay_ms:1000,muzzy_decay_ms:0,"
    "tcache_nslots_small_min:8,tcache_nslots_small_max:64,lg_tcache_nslots_mul:-1";

}  // extern "C"

int main(int argc, char** argv) { return nereid::app::RunServer(argc, argv); }
