// SPDX-License-Identifier: Apache-2.0
// Fuzzes the elements of BYTES tensors. The first byte is how many are expected; what is accepted
// has that many, and written again they are the same bytes.
#include "backend_kit/bytes.h"

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "backend_kit/testing/fake_host.h"
#include "fuzz/fuzz.h"

std::vector<std::string> FuzzSeeds() {
  using namespace std::string_literals;
  return {"\0"s, "\1\3\0\0\0abc"s, "\2\0\0\0\0\1\0\0\0x"s, "\1\xff\xff\xff\xff"s};
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  // A copy of exactly this size, for AddressSanitizer.
  const auto copy = std::make_unique<char[]>(size - 1);
  std::copy_n(reinterpret_cast<const char*>(data) + 1, size - 1, copy.get());
  const std::span<const char> tensor(copy.get(), size - 1);
  std::string again(tensor.size(), '\0');
  char* to = again.data();
  int64_t count = 0;
  auto error = nereid::backend::ForEachString(tensor, data[0], "INPUT", [&](std::string_view text) {
    ++count;
    to = nereid::backend::StoreString(to, text);
  });
  if (!error.ok()) {
    if (*error.message() == '\0') std::abort();
    error.Ignore();
    return 0;
  }
  if (count != data[0] || to != again.data() + again.size() ||
      !std::equal(tensor.begin(), tensor.end(), again.begin())) {
    std::abort();
  }
  return 0;
}
