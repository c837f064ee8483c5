// SPDX-License-Identifier: Apache-2.0
// Fuzzes the first bytes of plans: each is accepted with a version, or refused with a reason.
#include "tensorrt_backend/plan_header.h"

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "fuzz/fuzz.h"

std::vector<std::string> FuzzSeeds() {
  const std::string rest = std::string(12, '\0') + "d" + std::string(7, '\0');
  return {"ftrt" + rest + "\x0a\x03\x01\x1a" + std::string(36, '\0'),
          "vtrt" + rest + "\x01\x07\x01\x74" + std::string(36, '\0'),
          "PK\x03\x04",
          "<!DOCTYPE html>",
          "version https://git-lfs.github.com/spec/v1",
          std::string(64, '\0')};
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  // A copy of exactly this size, for AddressSanitizer.
  const auto copy = std::make_unique<char[]>(size);
  std::copy_n(reinterpret_cast<const char*>(data), size, copy.get());
  for (const uint64_t file_size : {static_cast<uint64_t>(size), UINT64_MAX, uint64_t{0}}) {
    auto header = nereid::tensorrt::ParsePlanHeader({copy.get(), size}, file_size);
    const std::string text = header.ok() ? header.value().version() : header.TakeError().message();
    if (text.empty()) std::abort();
  }
  return 0;
}
