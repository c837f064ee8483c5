// SPDX-License-Identifier: Apache-2.0
// The files beside a model that contain its tensors.
//
// ONNX Runtime maps such files and reads the mapping as long as the session lives. Overwriting a
// file in place would then change the weights of a running model, and truncating it would end the
// process by SIGBUS. So a session gets its weights from here, copies them, and keeps no mapping:
//
//   ExternalFiles files = ExternalFiles::Open(model path, tensors)
//   files.AddTo(session options)
//   ... the session is created, which copies ...
//   files.Finish()
//
// During the creation ONNX Runtime reads a mapping that the server guards, so that there are never
// two copies of the weights in memory. On a server without that guard, the files are read into
// memory instead.
#pragma once

#include <sys/stat.h>

#include <memory>
#include <string>
#include <vector>

#include "onnxruntime_backend/model_file.h"
#include "onnxruntime_backend/ort.h"

namespace nereid::onnxruntime {

class WeightFile;

// The files of one model. Thread-compatible.
class ExternalFiles {
 public:
  // Maps the files that `model` names. They must be in the folder of the model at `path` or, if
  // that is a link, of its target, and have the sizes that its tensors need.
  static backend::Result<ExternalFiles> Open(const std::string& path, const ModelFile& model);
  ~ExternalFiles();
  ExternalFiles(ExternalFiles&&) noexcept;
  ExternalFiles& operator=(ExternalFiles&&) = delete;

  // The size of all files.
  uint64_t byte_size() const;
  // This object must outlive the creation of sessions with `options`.
  backend::Error AddTo(OrtSessionOptions* options) const;
  // Called after the session was created: removes the session's mappings of files. Fails if the
  // model or one of the files was changed in the meantime, because the session may then have read
  // anything.
  backend::Error Finish() const;

 private:
  ExternalFiles(std::string path, const struct stat& model);

  const std::string path_;
  const struct stat model_;  // when it was read
  std::vector<std::unique_ptr<WeightFile>> files_;
};

}  // namespace nereid::onnxruntime
