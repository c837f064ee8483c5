// SPDX-License-Identifier: Apache-2.0
// What a fuzzer (x_fuzz.cc beside x.cc) provides. With clang and -fsanitize=fuzzer it is a
// libFuzzer target; otherwise replay.cc is its main program, which damages the seeds itself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

// Inputs that are in order, to start from.
std::vector<std::string> FuzzSeeds();

// Reads one input. Ends the process when something is wrong that no sanitizer sees.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);
