// SPDX-License-Identifier: Apache-2.0
// Fuzzes TensorFlow's SavedModel and GraphDef files, as far as they are read without TensorFlow.
#include "tensorflow_backend/graph_parser.h"

#include <algorithm>
#include <memory>

#include "fuzz/fuzz.h"

namespace {

// A field of bytes with a number below 16 and a length below 128.
std::string Field(int number, const std::string& value) {
  return std::string{static_cast<char>(number << 3 | 2), static_cast<char>(value.size())} + value;
}

}  // namespace

std::vector<std::string> FuzzSeeds() {
  const std::string shape = Field(7, Field(2, std::string("\x08\x04", 2)));
  const std::string attribute = Field(5, Field(1, "shape") + Field(2, shape));
  const std::string type = Field(5, Field(1, "dtype") + Field(2, std::string("\x30\x01", 2)));
  const std::string node = Field(1, "x") + Field(2, "Placeholder") + attribute + type;
  const std::string graph =
      Field(1, node) + Field(1, Field(1, "y") + Field(2, "Identity") + Field(3, "x"));
  const std::string tensor =
      Field(1, "x:0") + std::string("\x10\x01", 2) + Field(3, Field(2, "\x08\x04"));
  const std::string signature =
      Field(1, Field(1, "a") + Field(2, tensor)) + Field(3, "tensorflow/serving/predict");
  const std::string meta = Field(1, Field(4, "serve")) + Field(2, graph) +
                           Field(5, Field(1, "serving_default") + Field(2, signature));
  return {graph, std::string("\x08\x01", 2) + Field(2, graph), meta};
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  // A copy of exactly this size, for AddressSanitizer.
  const auto copy = std::make_unique<char[]>(size);
  std::copy_n(reinterpret_cast<const char*>(data), size, copy.get());
  nereid::backend::WireReader saved_model({copy.get(), size});
  static_cast<void>(nereid::tensorflow::ParseSavedModel(saved_model));
  nereid::backend::WireReader graph({copy.get(), size});
  static_cast<void>(nereid::tensorflow::ParseGraphDef(graph));
  return 0;
}
