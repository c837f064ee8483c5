// SPDX-License-Identifier: Apache-2.0
// What an ONNX file says about itself, found without loading it: which other files its tensors lie
// in, and what it is if it is no model at all. Reads as little as it can: weights are skipped.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <string>
#include <vector>

#include "backend_kit/error.h"

namespace nereid::onnxruntime {

// Where the bytes of a tensor lie that are not in the model's own file.
struct ExternalTensor {
  std::string name;
  std::string location;  // a path relative to the model's folder
  uint64_t offset = 0;
  uint64_t length = 0;  // 0: to the end of the file
};

// What is known of a model's file without running it.
struct ModelFile {
  std::vector<ExternalTensor> external_tensors;  // of all graphs
  struct stat facts{};                           // of the file, when it was read
  bool is_ort_format = false;                    // of ONNX Runtime's own format: not looked into

  // Fails with a text that says what the file is when it cannot be a model: empty, cut off, a web
  // page, a pointer of Git LFS, an archive. Whatever else is wrong with it, ONNX Runtime says
  // better.
  static backend::Result<ModelFile> Read(const std::string& path);
};

}  // namespace nereid::onnxruntime
