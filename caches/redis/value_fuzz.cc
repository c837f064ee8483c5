// SPDX-License-Identifier: Apache-2.0
// Fuzzes values that are found in Redis, where other clients can write: what is accepted has
// buffers that fill the value exactly, and MakeValue makes the same beginning for their sizes.
#include "redis_cache/value.h"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <numeric>

#include "fuzz/fuzz.h"

using nereid::redis_cache::MakeValue;
using nereid::redis_cache::ReadValueSizes;
using nereid::redis_cache::ValueHeaderSize;

std::vector<std::string> FuzzSeeds() {
  return {*MakeValue({3}), *MakeValue({1, 2, 300}), std::string(16, '\0')};
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  // A copy of exactly this size, for AddressSanitizer.
  const auto copy = std::make_unique<std::byte[]>(size);
  std::copy_n(reinterpret_cast<const std::byte*>(data), size, copy.get());
  const auto sizes = ReadValueSizes({copy.get(), size});
  if (!sizes) return 0;
  const size_t header = ValueHeaderSize(sizes->size());
  if (std::accumulate(sizes->begin(), sizes->end(), header) != size) std::abort();
  const auto made = MakeValue(*sizes);
  if (!made || made->size() != size ||
      !std::equal(data, data + header, made->begin(),
                  [](uint8_t a, char b) { return a == static_cast<uint8_t>(b); })) {
    std::abort();
  }
  return 0;
}
