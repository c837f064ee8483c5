// SPDX-License-Identifier: Apache-2.0
#include "repository/private_folder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>

#include <fmt/format.h>

#include "base/log.h"
#include "base/unique_fd.h"
#include "base/write_all.h"

namespace nereid::repository {
namespace {

base::Status CannotWrite(const OverrideFile& file, int error) {
  return base::InvalidArgumentError(
      fmt::format("Invalid file parameter 'file:{}': {}", file.path, std::strerror(error)));
}

// Splits a path into its parts, without "." and with ".." resolved. Fails if it leaves the folder
// or names no file.
base::Result<std::vector<std::string>> SplitPath(const OverrideFile& file) {
  const auto wrong = [&] {
    return base::InvalidArgumentError(fmt::format(
        "Invalid file parameter 'file:{}' must stay within model directory.", file.path));
  };
  if (file.path.empty() || file.path.back() == '/' || file.path.find('\0') != std::string::npos) {
    return wrong();
  }
  std::vector<std::string> parts;
  std::string_view rest = file.path;
  while (!rest.empty()) {
    const size_t end = rest.find('/');
    const std::string_view part = rest.substr(0, end);
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
    if (part.empty() || part == ".") continue;
    if (part != "..") {
      parts.emplace_back(part);
    } else if (parts.empty()) {
      return wrong();
    } else {
      parts.pop_back();
    }
  }
  if (parts.empty()) return wrong();
  return parts;
}

}  // namespace

base::Result<std::shared_ptr<PrivateFolder>> PrivateFolder::Create(
    const std::vector<OverrideFile>& files) {
  NEREID_ASSIGN_OR_RETURN(base::TemporaryFolder made, base::MakeTemporaryFolder("model"));
  std::shared_ptr<PrivateFolder> folder(new PrivateFolder(std::move(made)));
  for (const OverrideFile& file : files) NEREID_RETURN_IF_ERROR(folder->Write(file));
  return folder;
}

PrivateFolder::~PrivateFolder() {
  std::error_code error;
  std::filesystem::remove_all(folder_.path, error);
  if (error) NEREID_LOG(kError, "failed to remove folder '{}': {}", folder_.path, error.message());
}

base::Status PrivateFolder::Write(const OverrideFile& file) const {
  NEREID_ASSIGN_OR_RETURN(const std::vector<std::string> parts, SplitPath(file));
  std::string path = folder_.path;
  for (size_t i = 0; i + 1 < parts.size(); ++i) {
    path += "/" + parts[i];
    if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) return CannotWrite(file, errno);
  }
  path += "/" + parts.back();
  const base::UniqueFd fd(
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd.valid()) return CannotWrite(file, errno);
  return base::WriteAll(fd.get(), file.content) ? base::OkStatus() : CannotWrite(file, errno);
}

}  // namespace nereid::repository
