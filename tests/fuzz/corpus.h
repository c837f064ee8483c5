// SPDX-License-Identifier: Apache-2.0
// The inputs that fuzzing has found worth keeping, in one file for each fuzzer
// (tools/run_fuzzers.py writes it): for each input a line with its size, its bytes, and an end of
// line.
#pragma once

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace nereid::fuzz {

// Adds the inputs of the file to `inputs`; there are none if the file does not exist. Returns false
// if the file is damaged.
inline bool ReadCorpus(const std::string& path, std::vector<std::string>& inputs) {
  std::ifstream file(path, std::ios::binary);
  const std::string all{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  for (size_t at = 0; at < all.size();) {
    const size_t line = all.find('\n', at);
    if (line == std::string::npos) return false;
    const size_t size = std::strtoull(all.c_str() + at, nullptr, 10);
    if (size >= all.size() - line - 1 || all[line + 1 + size] != '\n') return false;
    inputs.push_back(all.substr(line + 1, size));
    at = line + 1 + size + 1;
  }
  return true;
}

}  // namespace nereid::fuzz
