// SPDX-License-Identifier: Apache-2.0
// The server's program, plus the allocator's settings: memory that is not used goes back to the system
// within a second, in the background.
#include "app/server.h"

extern "C" {

__attribute__((visibility("default"))) const char* malloc_conf =
    "background_thread:true,dirty_decay_ms:1000,muzzy_decay_ms:0";

}  // extern "C"

int main(int argc, char** argv) { return nereid::app::RunServer(argc, argv); }
