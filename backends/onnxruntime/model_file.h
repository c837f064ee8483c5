// SPDX-License-Identifier: Apache-2.0
// Reads the description of an ONNX file without loading it: which other files contain its tensors,
// and which format it has if it is not a model. Skips weights and reads as little as possible.
#pragma once

#include <sys/stat.h>

#include <string>
#include <vector>

#include "backend_kit/error.h"
#include "onnxruntime_backend/external_scan.h"

namespace nereid::onnxruntime {

// The properties of a model's file.
struct ModelFile {
  std::vector<ExternalTensor> external_tensors;  // of all graphs
  struct stat facts{};                           // of the file, when it was read
  bool is_ort_format = false;  // ONNX Runtime's own format, whose content is not inspected

  // Fails with a description of the file if it cannot be a model: empty, truncated, a web page, a
  // pointer of Git LFS, an archive. Other errors are left to ONNX Runtime, which describes them
  // better.
  static backend::Result<ModelFile> Read(const std::string& path);
};

}  // namespace nereid::onnxruntime
