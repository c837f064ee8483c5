// SPDX-License-Identifier: Apache-2.0
// The files beside a model in which its tensors lie.
//
// ONNX Runtime maps such files and reads the mapping as long as the session lives. Then whoever
// overwrites a file in place changes the weights of a running model, and whoever cuts one off ends
// the process by SIGBUS. So a session gets its weights from here, copies them, and keeps nothing of
// the files:
//
//   ExternalFiles files = ExternalFiles::Open(model path, tensors)
//   files.AddTo(session options)
//   ... the session is created, which copies ...
//   files.Finish()
//
// What is lent to ONNX Runtime meanwhile is a mapping, guarded by the server, so that at no time
// there are two copies of the weights in memory. Where the server cannot guard it is memory that
// the files were read into.
#pragma once

#include <sys/stat.h>

#include <memory>
#include <string>
#include <vector>

#include "onnxruntime_backend/model_file.h"
#include "onnxruntime_backend/ort.h"

namespace nereid::onnxruntime {

// Thread-compatible.
class ExternalFiles {
 public:
  // Maps the files that `model` names, which must lie in the folder of the model at `path` or, if
  // that is a link, of the file that it leads to, and have the sizes that its tensors need.
  static backend::Result<ExternalFiles> Open(const std::string& path, const ModelFile& model);
  ~ExternalFiles();
  ExternalFiles(ExternalFiles&&) noexcept;
  ExternalFiles& operator=(ExternalFiles&&) = delete;

  // Must outlive the creation of sessions with `options`.
  backend::Error AddTo(OrtSessionOptions* options) const;
  // After the session was created: it keeps no mapping of a file. Fails when the model or one of
  // the files was changed meanwhile, so that the session may have read anything.
  backend::Error Finish() const;

 private:
  class File;

  ExternalFiles(std::string path, const struct stat& model);

  const std::string path_;
  const struct stat model_;  // as it was when it was read
  std::vector<std::unique_ptr<File>> files_;
};

}  // namespace nereid::onnxruntime
