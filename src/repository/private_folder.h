// SPDX-License-Identifier: Apache-2.0
// A folder for the files of a load request: made for one model, removed with it.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/temporary_folder.h"
#include "repository/model_files.h"

namespace nereid::repository {

// One file of a load request.
struct OverrideFile {
  std::string path;  // relative to the model's folder, as the client wrote it
  std::string content;
};

// Owns the folder. Immutable and thread-safe.
class PrivateFolder final : public ModelFiles {
 public:
  // Makes the folder below the system's folder for temporary files, readable by this user only, and
  // writes `files`. No path can leave it: ".." is permitted within it, leading slashes are ignored.
  // Returns the error of the first file that cannot be written; then nothing is left behind.
  static base::Result<std::shared_ptr<PrivateFolder>> Create(
      const std::vector<OverrideFile>& files);

  // Removes the folder.
  ~PrivateFolder() override;
  PrivateFolder(const PrivateFolder&) = delete;
  PrivateFolder& operator=(const PrivateFolder&) = delete;

  const std::string& path() const { return folder_.path; }

 private:
  explicit PrivateFolder(base::TemporaryFolder folder) : folder_(std::move(folder)) {}
  base::Status Write(const OverrideFile& file) const;

  const base::TemporaryFolder folder_;
};

}  // namespace nereid::repository
