// SPDX-License-Identifier: Apache-2.0
// Finds the tensors of an ONNX model that are outside of its file, without reading the others.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "backend_kit/wire_reader.h"

namespace nereid::onnxruntime {

// The location of a tensor outside of the model's own file.
struct ExternalTensor {
  std::string name;
  std::string location;  // a path relative to the model's folder
  uint64_t offset = 0;
  uint64_t length = 0;  // 0: to the end of the file
};

// Adds the external tensors of all graphs of the model to `found`. Stops where the file is not
// protobuf, which the reader then says. Returns what is wrong if the external data of a tensor has
// an invalid number, or graphs are nested too deeply; otherwise empty.
std::string FindExternalTensors(backend::WireReader& reader, std::vector<ExternalTensor>* found);

}  // namespace nereid::onnxruntime
