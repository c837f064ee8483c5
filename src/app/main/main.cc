// SPDX-License-Identifier: Apache-2.0
// The executable is a call into libtritonserver.so, plus the allocator's settings: memory that is not
// used goes back to the system within a second, in the background.
extern "C" {

__attribute__((visibility("default"))) const char* malloc_conf =
    "background_thread:true,dirty_decay_ms:1000,muzzy_decay_ms:0";

int nereid_main(int argc, char** argv);

}  // extern "C"

int main(int argc, char** argv) { return nereid_main(argc, argv); }
