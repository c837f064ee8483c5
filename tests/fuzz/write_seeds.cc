// SPDX-License-Identifier: Apache-2.0
// Gives a libFuzzer program its seeds: with the variable NEREID_FUZZ_SEEDS it writes them into that
// folder, each into a file, and ends.
#include <cstdlib>
#include <fstream>

#include "fuzz/fuzz.h"

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  const char* const folder = std::getenv("NEREID_FUZZ_SEEDS");
  if (folder == nullptr) return 0;
  int number = 0;
  for (const std::string& seed : FuzzSeeds()) {
    std::ofstream file(std::string(folder) + "/seed-" + std::to_string(number++), std::ios::binary);
    file << seed;
  }
  std::exit(0);
}
