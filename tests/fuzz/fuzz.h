// SPDX-License-Identifier: Apache-2.0
// The interface of a fuzzer (x_fuzz.cc beside x.cc). With clang and -fsanitize=fuzzer it is a
// libFuzzer target; otherwise replay.cc is its main program, which damages the seeds itself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

// Returns valid inputs to start from.
std::vector<std::string> FuzzSeeds();

// Processes one input. Ends the process on errors that no sanitizer detects.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);
