// SPDX-License-Identifier: Apache-2.0
#include "engine/directories.h"

#include <dlfcn.h>

#include <filesystem>

namespace nereid::engine {
namespace {

std::string Existing(const std::filesystem::path& directory, const std::string& name) {
  std::error_code error;
  return std::filesystem::is_directory(directory, error) ? directory.string()
                                                         : "/opt/tritonserver/" + name;
}

}  // namespace

std::string DefaultBackendDirectory() {
  Dl_info here = {};
  std::error_code error;
  std::filesystem::path library;
  if (dladdr(reinterpret_cast<const void*>(&DefaultBackendDirectory), &here) != 0) {
    library = std::filesystem::canonical(here.dli_fname, error);
  }
  return Existing(library.parent_path().parent_path() / "backends", "backends");
}

std::string DefaultDirectoryBeside(const std::string& backend_directory, const std::string& name) {
  const auto backends = std::filesystem::path(backend_directory) / "";
  return Existing(backends.parent_path().parent_path() / name, name);
}

}  // namespace nereid::engine
