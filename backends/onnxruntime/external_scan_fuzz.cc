// SPDX-License-Identifier: Apache-2.0
// Fuzzes ONNX files, as far as they are read for the files that their tensors are in.
#include "onnxruntime_backend/external_scan.h"

#include <algorithm>
#include <memory>

#include "fuzz/fuzz.h"
#include "onnxruntime_backend/testing/messages.h"

using nereid::onnxruntime::Bytes;
using nereid::onnxruntime::Number;

std::vector<std::string> FuzzSeeds() {
  const auto entry = [](const std::string& key, const std::string& value) {
    return Bytes(13, Bytes(1, key) + Bytes(2, value));
  };
  const std::string tensor = Bytes(8, "w") + entry("location", "weights.bin") +
                             entry("offset", "16") + entry("length", "64") + Number(14, 1);
  const std::string branch = Bytes(5, Bytes(1, "then") + Bytes(6, Bytes(5, tensor)));
  const std::string graph = Bytes(5, tensor) + Bytes(1, branch) + Bytes(15, Bytes(1, tensor));
  return {Number(1, 10) + Bytes(7, graph), Bytes(7, Bytes(5, Bytes(8, "w") + Bytes(9, "abcd"))),
          Bytes(25, Bytes(7, branch))};
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  // A copy of exactly this size, for AddressSanitizer.
  const auto copy = std::make_unique<char[]>(size);
  std::copy_n(reinterpret_cast<const char*>(data), size, copy.get());
  nereid::backend::WireReader reader({copy.get(), size});
  std::vector<nereid::onnxruntime::ExternalTensor> found;
  static_cast<void>(nereid::onnxruntime::FindExternalTensors(reader, &found));
  return 0;
}
