// SPDX-License-Identifier: Apache-2.0
#include "engine/directories.h"

#include <dlfcn.h>
#include <errno.h>

#include <filesystem>
#include <string_view>

namespace nereid::engine {

std::string DefaultBackendDirectory() {
  Dl_info here = {};
  std::error_code error;
  std::filesystem::path library;
  if (dladdr(reinterpret_cast<const void*>(&DefaultBackendDirectory), &here) != 0) {
    // The loader knows the program only by the name that it was started with, which need not be a
    // path.
    const bool is_program = std::string_view(here.dli_fname) == program_invocation_name;
    library = std::filesystem::canonical(is_program ? "/proc/self/exe" : here.dli_fname, error);
  }
  // The library is PREFIX/lib/libtritonserver.so or BUILD/src/app/libtritonserver.so.
  const std::filesystem::path above = library.parent_path().parent_path();
  for (const std::filesystem::path& prefix : {above, above.parent_path()}) {
    if (std::filesystem::is_directory(prefix / "backends", error)) return prefix / "backends";
  }
  return "/opt/tritonserver/backends";
}

std::string DefaultDirectoryBeside(const std::string& backend_directory, const std::string& name) {
  const auto backends = std::filesystem::path(backend_directory) / "";
  const std::filesystem::path beside = backends.parent_path().parent_path() / name;
  std::error_code error;
  return std::filesystem::is_directory(beside, error) ? beside.string()
                                                      : "/opt/tritonserver/" + name;
}

}  // namespace nereid::engine
