// SPDX-License-Identifier: Apache-2.0
// One of the files beside a model that contain its tensors, during the creation of a session.
#pragma once

#include <sys/stat.h>

#include <cstddef>
#include <string>
#include <utility>

#include "backend_kit/error.h"
#include "nereid/guarded_memory.h"
#include "onnxruntime_backend/external_scan.h"

namespace nereid::onnxruntime {

// Whether these are facts of one file that was not changed between them.
bool IsSameContent(const struct stat& a, const struct stat& b);

// The content of one file. Thread-compatible.
class WeightFile {
 public:
  // `location` is its name in the model.
  WeightFile(std::string location, std::string path)
      : location_(std::move(location)), path_(std::move(path)) {}
  ~WeightFile();
  WeightFile(const WeightFile&) = delete;
  WeightFile& operator=(const WeightFile&) = delete;

  // Maps the file, or reads it into memory on a server that cannot guard mappings.
  backend::Error Map();
  // Checks that the tensor lies in the file.
  backend::Error Check(const ExternalTensor& tensor) const;
  // Replaces all mappings of the file except ours, and checks that the file has not changed.
  backend::Error Finish() const;

  const std::string& location() const { return location_; }
  char* data() const { return data_; }
  size_t size() const { return static_cast<size_t>(facts_.st_size); }

 private:
  backend::Error Changed() const;

  const std::string location_;
  const std::string path_;
  int fd_ = -1;
  struct stat facts_{};
  char* data_ = nullptr;
  NEREIDBACKEND_MemoryGuard* guard_ = nullptr;
};

}  // namespace nereid::onnxruntime
